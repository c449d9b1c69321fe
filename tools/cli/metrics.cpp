#include "tools/cli/metrics.hpp"

#include <algorithm>

#include "common/base/bytes.hpp"
#include "common/base/text.hpp"

namespace mcds {

namespace {

std::string label_value(std::string_view bytes) {
  std::string text;
  for (const char byte : visible(bytes)) {
    if (byte == '\\' || byte == '"') text += '\\';
    text += byte;
  }
  return text;
}

}  // namespace

void Metrics::add(std::string_view name, std::string_view help, const Labels& labels,
                  const std::string& value) {
  auto family = std::ranges::find(families_, name, &Family::name);
  if (family == families_.end()) {
    const std::string own(name);
    families_.push_back({own,
                         "# HELP " + own + ' ' + std::string(help) + "\n# TYPE " + own +
                             (own.ends_with("_total") ? " counter\n" : " gauge\n"),
                         {}});
    family = std::prev(families_.end());
  }
  std::string& line = family->samples += name;
  for (std::size_t i = 0; i < labels.size(); ++i)
    line += (i == 0 ? "{" : ",") + std::string(labels[i].first) + "=\"" + label_value(labels[i].second) + '"';
  line += (labels.empty() ? " " : "} ") + value + '\n';
}

std::string Metrics::text() const {
  std::string text;
  for (const Family& family : families_) text += family.head + family.samples;
  return text + "# EOF\n";
}

}  // namespace mcds
