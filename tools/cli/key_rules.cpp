#include "tools/cli/key_rules.hpp"

#include <algorithm>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/json.hpp"
#include "common/base/text.hpp"
#include "common/cluster/request.hpp"
#include "common/primitives/key_names.hpp"

namespace mcds {

namespace {

bool fits(std::string_view key, bool any_byte) {
  return !key.empty() && key.size() <= max_key_size && (any_byte || is_one_word(key));
}

bool is_taken(const Placement& placement, const std::string& key, bool sent) {
  const Owners owners = placement.owners_of(key);
  return std::ranges::all_of(owners.list, [&](const Owner& owner) {
    return fits(owner.wire_key.empty() ? key : owner.wire_key, !sent && placement.takes_any_byte());
  });
}

}  // namespace

std::string KeyRules::checked(const std::string& text) const {
  std::string whole = prefix + text;
  if (fits(whole, false)) return whole;
  if (placements.empty()) return whole_key(prefix, text);
  for (const auto& placement : placements) {
    if (text.empty() || !is_taken(*placement, whole, sent)) return whole_key(prefix, text);
  }
  return whole;
}

std::string KeyRules::of_line(std::string line, bool ends_with_nul) const {
  if (prefix.empty() && fits(line, false) && line.front() != '{') return line;
  const auto named = key_in_json(line);
  const std::string& key = named ? *named : line;
  if ((named || ends_with_nul) && !key.empty() && fits(prefix + key, true)) return prefix + key;
  return checked(key);
}

std::optional<std::string> key_in_json(std::string_view line) {
  if (!line.starts_with('{')) return std::nullopt;
  if (const auto plain = json_field(line, "key")) return json_unquote(*plain);
  const auto encoded = json_field(line, "key_b64");
  const auto digits = encoded ? json_unquote(*encoded) : std::nullopt;
  return digits ? parse_base64(*digits) : std::nullopt;
}

std::vector<std::string> labels_of(const Pool& pool, std::span<const std::size_t> servers, bool for_people) {
  std::vector<std::string> labels;
  for (const std::size_t server : servers)
    labels.push_back(for_people ? visible(pool[server].label()) : pool[server].address());
  return labels;
}

std::size_t server_named(const Pool& pool, const std::string& text, const char* option) {
  auto found = std::ranges::find(pool, text, &Server::name);
  if (found == pool.end())
    found = std::ranges::find(pool, parse_pool(text).front().address(), &Server::address);
  if (found != pool.end()) return static_cast<std::size_t>(found - pool.begin());
  throw InvalidInput(std::string(option) + ": '" + text + "' is not in the server list");
}

}  // namespace mcds
