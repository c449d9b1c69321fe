#include "tools/cli/where_keys.hpp"

#include <algorithm>

#include "common/primitives/parts.hpp"
#include "common/primitives/several/copies.hpp"
#include "common/primitives/structure_names.hpp"
#include "tools/cli/session.hpp"

namespace mcds {

JsonObject placed_line(Session& session, const Placement& placement, std::string_view key,
                       const Placement::Place& place) {
  JsonObject line = JsonObject("key", key)
                        .bytes("server", session.server_address(place.server))
                        .number("index", place.server);
  return line.bytes("hash", std::to_string(place.hash)).bytes("profile", placement.profile());
}

JsonObject where_line(Session& session, const Placement& placement, const PlacedKey& key,
                      const Placement::Place& place, std::optional<std::size_t> copies) {
  JsonObject line = placed_line(session, placement, key.key, place);
  const std::size_t number = copies.value_or(session.copies());
  if (number == 1 || (placement.replicates() && !session.options().copies)) return line;
  std::vector<JsonObject> list;
  for (const std::size_t server : copy_servers(placement, number, key.placed_by())) {
    list.push_back(JsonObject("server", session.server_address(server)).number("index", server));
  }
  return line.objects("copies", list);
}

void add_owners(Session& session, JsonObject& line, const Placement& placement, std::string_view key) {
  if (placement.has_plain_owners()) return;
  const Owners owners = placement.owners_of(key);
  std::vector<std::string> servers, wire_keys;
  for (const Owner& owner : owners.list) {
    servers.push_back(session.server_address(owner.server));
    wire_keys.push_back(owner.wire_key.empty() ? std::string(key) : owner.wire_key);
  }
  if (owners.list.size() > 1) line.strings("servers", servers).bytes("policy", name_of(owners.policy));
  const bool one_name = std::count(wire_keys.begin(), wire_keys.end(), wire_keys.front()) ==
                        static_cast<std::ptrdiff_t>(wire_keys.size());
  if (!one_name) line.strings("wire_keys", wire_keys);
  if (one_name && wire_keys.front() != key) line.bytes("wire_key", wire_keys.front());
}

Owners key_owners(Session& session, const Placement& placement, const PlacedKey& placed) {
  const std::string& key = placed.placed_by();
  std::size_t copies = session.copies();
  if (key.starts_with(session.key_prefix())) {
    const auto name = structure_named(std::string_view(key).substr(session.key_prefix().size()));
    if (name && name->copies > 1) copies = std::min(name->copies, placement.pool().size());
  }
  if (placement.replicates() || copies == 1) return placement.owners_of(key);
  Owners owners = copies_on(placement.servers_of(key, copies));
  for (Owner& owner : owners.list) owner.must = !is_segment(placed);
  return owners;
}

ExitStatus print_where(Session& session, std::span<const PlacedKey> keys, std::optional<std::size_t> copies) {
  const Placement& placement = *session.placement();
  for (const PlacedKey& key : keys) {
    const Placement::Place place = placement.place_of(key.placed_by());
    session.output().answer(where_line(session, placement, key, place, copies),
                            session.server_address(place.server));
  }
  return ExitStatus::ok;
}

ExitStatus print_where(Session& session, std::span<const std::string> keys) {
  std::vector<PlacedKey> placed;
  for (const std::string& key : keys) placed.push_back({key});
  return print_where(session, placed);
}

}  // namespace mcds
