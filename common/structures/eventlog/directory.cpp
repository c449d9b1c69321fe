#include "common/structures/eventlog/directory.hpp"

#include "common/base/bytes.hpp"
#include "common/primitives/seal.hpp"
#include "common/structures/eventlog/format.hpp"

namespace mcds {

void LogDirectory::add(std::string_view value) {
  while (!value.empty()) {
    const std::string_view text = take_line(value);
    const auto line = parse_directory_line(text);
    if (!line) {
      ++(unseal(text) ? unknown_ : damaged_);
    } else if (line->named) {
      named_.try_emplace({line->name, std::string(line->incarnation)}, line->at);
    } else {
      withdrawn_.emplace(line->name, line->incarnation);
    }
  }
}

std::vector<NamedPart> LogDirectory::named(std::int64_t chunk, WallTime until) const {
  std::vector<NamedPart> found;
  for (auto entry = named_.lower_bound({{chunk, 0}, ""}); entry != named_.end(); ++entry) {
    if (entry->first.first.chunk != chunk) break;
    if (entry->second <= until && !withdrawn_.contains(entry->first)) found.push_back(entry->first);
  }
  return found;
}

std::int64_t LogDirectory::last_part_of(std::int64_t chunk) const {
  const auto after = named_.lower_bound({{chunk + 1, 0}, ""});
  if (after == named_.begin()) return -1;
  const PartName& last = std::prev(after)->first.first;
  return last.chunk == chunk ? last.part : -1;
}

}  // namespace mcds
