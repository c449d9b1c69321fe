#include "common/structures/elements/table.hpp"

namespace mcds {

Elements::Answers Table::begin_add(std::span<const std::string> members, bool relist,
                                   std::optional<Duration> ttl) {
  const auto elements = std::make_shared<std::vector<Element>>();
  elements->reserve(members.size());
  for (const std::string& member : members) elements->push_back({member, "1"});
  return [elements, answers = elements_.begin_set(*elements, relist, ttl)] { return answers(); };
}

}  // namespace mcds
