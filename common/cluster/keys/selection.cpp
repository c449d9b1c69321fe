#include "common/cluster/keys/selection.hpp"

#include <fnmatch.h>

namespace mcds {

bool KeySelection::has(std::string_view key) const {
  if (!key.starts_with(key_prefix)) return false;
  const std::string_view name = key.substr(key_prefix.size());
  if (prefix && !name.starts_with(*prefix)) return false;
  // A pattern cannot see behind a NUL, so it never matches a key that has one.
  return !pattern || (name.find('\0') == std::string_view::npos &&
                      fnmatch(pattern->c_str(), std::string(name).c_str(), 0) == 0);
}

bool takes_everything(std::string_view pattern) {
  const bool only_wild = pattern.find_first_not_of("*?") == std::string_view::npos;
  return pattern.empty() || (only_wild && pattern.find('*') != std::string_view::npos);
}

}  // namespace mcds
