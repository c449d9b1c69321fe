// Who runs this program, and where.
#pragma once

#include <optional>
#include <string>

namespace mcds {

std::string host_name();
std::string user_name();
// nullopt: the variable is not set, or empty.
std::optional<std::string> environment(const std::string& name);
// A file of this user: below the folder that `variable` names, else below $HOME/`otherwise`; empty: neither
// is an absolute path.
std::string users_file(const char* variable, const std::string& otherwise, const std::string& file);

}  // namespace mcds
