// Who runs this program, and where.
#pragma once

#include <string>

namespace mcds {

std::string host_name();
std::string user_name();

}  // namespace mcds
