// Lists in the files of other programs, on their way to parse_pool.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.hpp"

namespace mcds {

// Without blanks and quotes around it.
std::string_view without_quotes(std::string_view text);
// What stands between any of the separators, the same way; nothing that is empty.
std::vector<std::string_view> entries_of(std::string_view text, std::string_view separators);
// With commas between them, or what else; of each what `text_of` says.
template <typename Range, typename TextOf = std::identity>
std::string joined(const Range& entries, std::string_view separator = ",", TextOf text_of = {}) {
  std::string list;
  for (const auto& entry : entries)
    append_all(list, {list.empty() ? "" : separator, std::invoke(text_of, entry)});
  return list;
}

}  // namespace mcds
