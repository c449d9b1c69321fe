// How a verb handles several names: the words of its command line, or for `-` the lines of standard input.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/cli/batch.hpp"

namespace mcds {

// Throws InvalidInput for an unusable name.
using CheckName = std::function<void(const std::string& name)>;
// Prints the answers for these names, in their order.
using AnswerNames = std::function<void(const Window<std::string>& names)>;

// The worst of all names, failed ones included. Lines are taken a window at a time.
ExitStatus for_names(Session& session, const std::vector<std::string>& names, const CheckName& check,
                     const AnswerNames& answer);

// The verb `where`: a line for each key of each name.
using KeysOfName = std::function<std::vector<std::string>(const std::string& name)>;
ExitStatus where_names(Session& session, const std::vector<std::string>& names, const KeysOfName& keys_of);

struct NamedNumber {
  std::string name;
  std::uint64_t number;
};
// A line `NAME` or `NAME NUMBER`, with `otherwise` for a missing number. Throws Failure(bad_data), which
// tells the `form`.
NamedNumber name_and_number(std::string line, std::uint64_t otherwise, const char* form);

}  // namespace mcds
