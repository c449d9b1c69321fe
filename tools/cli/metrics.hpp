// Figures in the exposition format of OpenMetrics, as node_exporter's textfile collector and Prometheus read
// it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mcds {

class Metrics {
 public:
  using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

  // A counter if the name ends with _total, else a gauge. Samples of one name come together, in the order of
  // their first ones.
  void add(std::string_view name, std::string_view help, const Labels& labels, const std::string& value);
  // With the end mark.
  std::string text() const;

 private:
  struct Family {
    std::string name, head, samples;
  };
  std::vector<Family> families_;
};

}  // namespace mcds
