#include "tools/cli/where_keys.hpp"

#include "common/base/bytes.hpp"
#include "common/base/text.hpp"
#include "common/replication/copies.hpp"
#include "tools/cli/session.hpp"

namespace mcds {

const PlacedLines::PerServer& PlacedLines::per_server(std::size_t index) {
  if (index >= servers_.size()) servers_.resize(index + 1);
  PerServer& server = servers_[index];
  if (!server.before_hash.empty()) return server;
  const std::string before =
      JsonObject("server", session_.server_address(index)).number("index", index).text();
  append_visible_json(server.before_hash, before.substr(1, before.size() - 2) + ",\"hash\":\"");
  const std::string behind = JsonObject("profile", placement_.profile()).text();
  append_visible_json(server.behind_hash, "\"," + behind.substr(1, behind.size() - 2));
  return server;
}

bool PlacedLines::print(const PlacedKey& key, const Placement::Place& place) {
  if (!prints_)
    prints_ = session_.output().mode() == OutputMode::json && placement_.has_plain_owners() &&
              !keeps_copies(session_, placement_, session_.copies());
  if (!*prints_ || !is_plain_json(key.key)) return false;
  const PerServer& server = per_server(place.server);
  session_.output().answer_pieces({"{\"key\":\"", key.key, "\",", server.before_hash,
                                   std::to_string(place.hash), server.behind_hash, "}"});
  return true;
}

JsonObject& PlacedLines::line(std::string_view key, const Placement::Place& place) {
  const PerServer& server = per_server(place.server);
  line_.cut(0);
  return line_.bytes("key", key).fields({server.before_hash, std::to_string(place.hash), server.behind_hash});
}

bool keeps_copies(Session& session, const Placement& placement, std::size_t copies) {
  return !has_single_copy(copies) && (!placement.replicates() || session.options().copies);
}

JsonObject& PlacedLines::line(const PlacedKey& key, const Placement::Place& place,
                              std::optional<std::size_t> copies) {
  JsonObject& line = this->line(key.key, place);
  const std::size_t number = copies ? *copies : session_.copies();
  if (!keeps_copies(session_, placement_, number)) return line;
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
  const bool one_name =
      std::ranges::count(wire_keys, wire_keys.front()) == static_cast<std::ptrdiff_t>(wire_keys.size());
  if (!one_name) line.strings("wire_keys", wire_keys);
  if (one_name && wire_keys.front() != key) line.bytes("wire_key", wire_keys.front());
}

Owners key_owners(Session& session, const Placement& placement, const PlacedKey& placed) {
  const std::string& key = placed.placed_by();
  std::size_t copies = session.copies();
  if (key.starts_with(session.key_prefix())) {
    const auto name = structure_named(std::string_view(key).substr(session.key_prefix().size()));
    if (name) copies = std::min(name->copies_or(copies), placement.pool().size());
  }
  if (!keeps_copies(session, placement, copies)) return placement.owners_of(key);
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

ExitStatus print_where(Session& session, std::span<const std::string> keys,
                       std::optional<std::size_t> copies) {
  std::vector<PlacedKey> placed;
  for (const std::string& key : keys) placed.push_back({key});
  return print_where(session, placed, copies);
}

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

std::string KeyRules::checked(const std::string& text, bool any_byte) const {
  std::string whole = prefix + text;
  if (fits(whole, any_byte && !text.empty())) return whole;
  if (placements.empty()) return whole_key(prefix, text);
  for (const auto& placement : placements) {
    if (text.empty() || !is_taken(*placement, whole, sent)) return whole_key(prefix, text);
  }
  return whole;
}

std::string KeyRules::of_line(std::string line, bool ends_with_nul) const {
  if (prefix.empty() && fits(line, false) && line.front() != '{') return line;
  const auto named = key_in_json(line);
  return checked(named ? *named : line, named || ends_with_nul);
}

std::optional<std::string> key_in_json(std::string_view line) {
  if (!line.starts_with('{')) return std::nullopt;
  auto key = json_bytes(line, "key");
  if (!key && json_field(line, "key")) throw InvalidInput("the key of a JSON object is a string");
  return key;
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
