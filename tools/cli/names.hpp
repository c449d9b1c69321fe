// How a verb handles several names: the words of its command line, or for `-` the lines of standard input.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/base/errors.hpp"
#include "tools/cli/exit_status.hpp"

namespace mcds {

class Session;

struct NameTasks {
  // Throws InvalidInput for an unusable name.
  using Check = std::function<void(const std::string& name)>;
  // Of the i-th name.
  using Fail = std::function<void(std::size_t i, const Failure& failure)>;
  // Prints the answers for these names, in their order; the worst status of those that did not fail.
  using Act = std::function<ExitStatus(std::span<const std::string> names, const Fail& fail)>;
  Check check;
  Act act;
};

// The worst of all names, failed ones included. Lines are taken a window at a time.
ExitStatus for_names(Session& session, const std::vector<std::string>& names, const NameTasks& tasks);

struct NamedNumber {
  std::string name;
  std::uint64_t number;
};
// A line `NAME` or `NAME NUMBER`, with `otherwise` for a missing number. Throws Failure(bad_data), which
// tells the `form`.
NamedNumber name_and_number(std::string line, std::uint64_t otherwise, const char* form);

}  // namespace mcds
