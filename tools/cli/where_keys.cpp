#include "tools/cli/where_keys.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "common/primitives/parts.hpp"
#include "common/primitives/several/copies.hpp"
#include "common/primitives/structure_names.hpp"
#include "tools/cli/session.hpp"

namespace mcds {

JsonObject& PlacedLines::line(std::string_view key, const Placement::Place& place) {
  if (place.server >= servers_.size()) servers_.resize(place.server + 1);
  OfServer& server = servers_[place.server];
  if (server.before_hash.empty()) {
    JsonObject before, behind;
    before.bytes("server", session_.server_address(place.server)).number("index", place.server);
    server.before_hash = before.text().substr(1);
    server.before_hash.back() = ',';
    server.before_hash += "\"hash\":\"";
    server.behind_hash = "\"," + behind.bytes("profile", placement_.profile()).text().substr(1);
    server.behind_hash.pop_back();
  }
  std::array<char, 20> digits;
  const char* end = std::to_chars(digits.data(), digits.data() + digits.size(), place.hash).ptr;
  line_.cut(0);
  return line_.bytes("key", key)
      .fields({server.before_hash, std::string_view(digits.data(), end), server.behind_hash});
}

JsonObject& PlacedLines::line(const PlacedKey& key, const Placement::Place& place,
                              std::optional<std::size_t> copies) {
  JsonObject& line = this->line(key.key, place);
  const std::size_t number = copies ? *copies : session_.copies();
  if (number == 1 || (placement_.replicates() && !session_.options().copies)) return line;
  std::vector<JsonObject> list;
  for (const std::size_t server : copy_servers(placement_, number, key.placed_by())) {
    list.push_back(JsonObject("server", session_.server_address(server)).number("index", server));
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
  PlacedLines lines(session, placement);
  for (const PlacedKey& key : keys) {
    const Placement::Place place = placement.place_of(key.placed_by());
    session.output().answer(lines.line(key, place, copies), session.server_address(place.server));
  }
  return ExitStatus::ok;
}

ExitStatus print_where(Session& session, std::span<const std::string> keys) {
  std::vector<PlacedKey> placed;
  for (const std::string& key : keys) placed.push_back({key});
  return print_where(session, placed);
}

}  // namespace mcds
