// Which whole keys a verb accepts, as the given clients do.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "common/placement/placement.hpp"

namespace mcds {

struct KeyRules {
  const std::string& prefix;  // the namespace, put before every key
  std::span<const std::shared_ptr<const Placement>> placements;
  bool sent;  // servers will be asked for it, not only the client's rule

  // The whole key. Where all clients of `placements` send servers a fitting key in its stead, a longer one or one with
  // spaces is a key as well; and such as they send as they are, unless servers will be asked. Throws InvalidInput.
  std::string checked(const std::string& text) const;
};

// A server as the pool has it: by its name, or by its address however it is written. Throws InvalidInput, naming `option`.
std::size_t server_named(const Pool& pool, const std::string& text, const char* option);

}  // namespace mcds
