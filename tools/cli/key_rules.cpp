#include "tools/cli/key_rules.hpp"

#include <algorithm>

#include "common/base/errors.hpp"
#include "common/cluster/request.hpp"
#include "common/primitives/key_names.hpp"

namespace mcds {

namespace {

bool fits(std::string_view key, bool any_byte) {
  const auto unsafe = [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7f; };
  return !key.empty() && key.size() <= max_key_size &&
         (any_byte || std::none_of(key.begin(), key.end(), unsafe));
}

bool is_taken(const Placement& placement, const std::string& key, bool sent) {
  const Owners owners = placement.owners_of(key);
  return std::all_of(owners.list.begin(), owners.list.end(), [&](const Owner& owner) {
    return fits(owner.wire_key.empty() ? key : owner.wire_key, !sent && placement.takes_any_byte());
  });
}

}  // namespace

std::string KeyRules::checked(const std::string& text) const {
  std::string whole = prefix + text;
  if (fits(whole, false)) return whole;
  for (const auto& placement : placements) {
    if (text.empty() || !is_taken(*placement, whole, sent)) return whole_key(prefix, text);
  }
  return whole;
}

std::size_t server_named(const Pool& pool, const std::string& text, const char* option) {
  for (std::size_t i = 0; i < pool.size(); ++i) {
    if (pool[i].name == text) return i;
  }
  const std::string address = parse_pool(text).front().address();
  for (std::size_t i = 0; i < pool.size(); ++i) {
    if (pool[i].address() == address) return i;
  }
  throw InvalidInput(std::string(option) + ": '" + text + "' is not in the server list");
}

}  // namespace mcds
