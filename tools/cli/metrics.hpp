// Formats numbers as OpenMetrics text, for node_exporter's textfile collector and Prometheus.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mcds {

class Metrics {
 public:
  using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

  // Adds a sample: of a counter if the name ends with _total, else of a gauge. Samples of one name are
  // printed together, in the order in which the names were first added.
  void add(std::string_view name, std::string_view help, const Labels& labels, const std::string& value);
  // Returns the text, including the end mark.
  std::string text() const;

 private:
  struct Family {
    std::string name, head, samples;
  };
  std::vector<Family> families_;
};

}  // namespace mcds
