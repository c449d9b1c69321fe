// Which whole keys a verb accepts, as the given clients do.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/placement/placement.hpp"

namespace mcds {

struct KeyRules {
  const std::string& prefix;  // the namespace, put before every key
  std::span<const std::shared_ptr<const Placement>> placements;
  bool sent;  // servers will be asked for it, not only the client's rule

  // The whole key. Where all clients of `placements` send servers a fitting key in its stead, a longer one or
  // one with spaces is a key as well; and such as they send as they are, unless servers will be asked. Throws
  // InvalidInput.
  std::string checked(const std::string& text) const;
  // The same of a line of input: a JSON object as our commands print it, with the field key or key_b64, or
  // the key itself.
  // The keys of JSON, and those of lists that end names with a NUL, may have any bytes.
  std::string of_line(std::string line, bool ends_with_nul) const;
};

// The key that a JSON object names; nullopt: `line` is not one.
std::optional<std::string> key_in_json(std::string_view line);

// These servers of the pool: by their addresses, or as people call them.
std::vector<std::string> labels_of(const Pool& pool, std::span<const std::size_t> servers,
                                   bool for_people = false);
// A server as the pool has it: by its name, or by its address however it is written. Throws InvalidInput,
// naming `option`.
std::size_t server_named(const Pool& pool, const std::string& text, const char* option);

}  // namespace mcds
