#include "common/structures/elements/table.hpp"

namespace mcds {

std::vector<ElementResult> Table::add(std::span<const std::string> members, bool relist,
                                      std::optional<Duration> ttl) {
  std::vector<Element> elements;
  for (const std::string& member : members) elements.push_back({member, "1"});
  return elements_.set(elements, relist, ttl);
}

}  // namespace mcds
