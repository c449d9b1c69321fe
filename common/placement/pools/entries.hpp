// Lists in the files of other programs, on their way to parse_pool.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mcds {

// Without blanks and quotes around it.
std::string_view without_quotes(std::string_view text);
// What stands between any of the separators, the same way; nothing that is empty.
std::vector<std::string_view> entries_of(std::string_view text, std::string_view separators);
// With commas between them.
std::string joined(const std::vector<std::string>& entries);

}  // namespace mcds
