// mcds where --down: where the client goes for a key while servers are dead.
#include "tools/commands/where/options.hpp"

namespace mcds {

namespace {

using Down = std::vector<bool>;  // per server of the pool

Down down_of(const Pool& pool, const std::string& list) {
  Down down(pool.size());
  for (const std::string_view word : split(list, ','))
    down[server_named(pool, std::string(word), "--down")] = true;
  return down;
}

// For people its address; in JSON its place in the list, too.
void add_then(Session& session, JsonObject& line, std::optional<std::size_t> then) {
  if (session.output().mode() == OutputMode::text)
    line.bytes("then", then ? session.server_address(*then) : "-");
  else if (then)
    line.object("then", JsonObject("server", session.server_address(*then)).number("index", *then));
  else
    line.raw("then", "null");
}

// False: the client has nowhere to go.
bool print(Session& session, const Placement& placement, const Down& down, const std::string& key) {
  const Placement::Place place = placement.place_of(key);
  const auto then = placement.server_of_when_down(key, down);
  JsonObject line = PlacedLines(session, placement).line(key, place);
  add_then(session, line.boolean("down", down[place.server]), then);
  session.output().answer(line, then ? session.server_address(*then) : "-");
  return then.has_value();
}

}  // namespace

ExitStatus where_down(Session& session, const WhereOptions& options, const Placements& placements) {
  const Down down = down_of(placements.front()->pool(), *options.down);
  const auto print_key = [&](const std::string& key) {
    ExitStatus status = ExitStatus::ok;
    for (const auto& placement : placements) {
      if (!print(session, *placement, down, key)) status = ExitStatus::no;
    }
    return status;
  };
  return for_each_key(session, placements, options, print_key, [] { return ExitStatus::ok; });
}

}  // namespace mcds
