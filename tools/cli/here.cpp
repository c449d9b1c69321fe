#include "tools/cli/here.hpp"

#include <pwd.h>
#include <unistd.h>

#include <array>

namespace mcds {

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string user_name() {
  const passwd* entry = getpwuid(geteuid());
  return entry != nullptr ? entry->pw_name : std::to_string(geteuid());
}

}  // namespace mcds
