#include "tools/cli/where_keys.hpp"

#include "common/primitives/copies.hpp"
#include "tools/cli/session.hpp"

namespace mcds {

JsonObject placed_line(Session& session, const Placement& placement, std::string_view key,
                       const Placement::Place& place) {
  JsonObject line;
  line.bytes("key", key).bytes("server", session.server_address(place.server)).number("index", place.server);
  return line.bytes("hash", std::to_string(place.hash)).bytes("profile", placement.profile());
}

JsonObject where_line(Session& session, const Placement& placement, const PlacedKey& key,
                      const Placement::Place& place) {
  JsonObject line = placed_line(session, placement, key.key, place);
  if (session.copies() == 1) return line;
  std::vector<JsonObject> list;
  for (const std::size_t server : copy_servers(placement, session.copies(), key.placed_by())) {
    list.push_back(JsonObject().bytes("server", session.server_address(server)).number("index", server));
  }
  return line.objects("copies", list);
}

ExitStatus print_where(Session& session, std::span<const PlacedKey> keys) {
  const Placement& placement = *session.placement();
  for (const PlacedKey& key : keys) {
    const Placement::Place place = placement.place_of(key.placed_by());
    session.output().answer(where_line(session, placement, key, place), session.server_address(place.server));
  }
  return ExitStatus::ok;
}

ExitStatus print_where(Session& session, std::span<const std::string> keys) {
  std::vector<PlacedKey> placed;
  for (const std::string& key : keys) placed.push_back({key});
  return print_where(session, placed);
}

}  // namespace mcds
