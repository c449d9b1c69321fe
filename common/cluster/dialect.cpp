#include "common/cluster/dialect.hpp"

#include <utility>

#include "common/base/bytes.hpp"

namespace mcds {

void Dialect::take_version(std::string text) {
  version = std::move(text);
  release = 0;
  std::uint32_t number = 0;
  std::string_view rest = version;
  for (int part = 0; part < 3; ++part) {
    const std::string_view digits = rest.substr(0, rest.find_first_not_of("0123456789"));
    const auto value = parse_u64(digits);
    if (!value || *value > 99) return;
    number = number * 100 + static_cast<std::uint32_t>(*value);
    rest.remove_prefix(digits.size());
    if (part == 2) break;
    if (!rest.starts_with('.')) return;
    rest.remove_prefix(1);
  }
  release = number;
}

}  // namespace mcds
