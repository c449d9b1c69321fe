// Which of the keys that servers list a command is about. The same words select everywhere: what one step of
// a procedure looked at is what the next one removes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mcds {

struct KeySelection {
  std::string key_prefix = {};              // the namespace
  std::optional<std::string> prefix = {};   // of what follows the namespace
  std::optional<std::string> pattern = {};  // the same: * any bytes, ? one, [a-z] one of these

  bool has(std::string_view key) const;
};

// Whether a pattern leaves nothing out for what it says: it is empty, as an unset variable is, or made of *
// and ? alone.
bool takes_everything(std::string_view pattern);

}  // namespace mcds
