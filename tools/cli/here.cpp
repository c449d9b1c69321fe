#include "tools/cli/here.hpp"

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace mcds {

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string user_name() {
  const passwd* entry = getpwuid(geteuid());
  return entry != nullptr ? entry->pw_name : std::to_string(geteuid());
}

std::optional<std::string> environment(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

std::string users_file(const char* variable, const std::string& otherwise, const std::string& file) {
  const std::string base = environment(variable).value_or(""), home = environment("HOME").value_or("");
  if (base.starts_with('/')) return base + file;
  return home.starts_with('/') ? home + otherwise + file : std::string();
}

}  // namespace mcds
