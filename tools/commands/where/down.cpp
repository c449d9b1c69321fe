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

class Foretelling {
 public:
  Foretelling(Session& session, const Placements& placements, Down down)
      : session_(session), placements_(placements), down_(std::move(down)) {}

  // Exit 1 when a client has nowhere to go.
  ExitStatus print(const std::string& key) {
    ExitStatus status = ExitStatus::ok;
    for (const auto& placement : placements_) {
      if (!print(*placement, key)) status = ExitStatus::no;
    }
    return status;
  }

 private:
  bool print(const Placement& placement, const std::string& key) {
    const Placement::Place place = placement.place_of(key);
    const auto then = placement.server_of_when_down(key, down_);
    JsonObject line = PlacedLines(session_, placement).line(key, place);
    line.boolean("down", down_[place.server]);
    add_then(line, then);
    session_.output().answer(line, then ? session_.server_address(*then) : "-");
    return then.has_value();
  }

  void add_then(JsonObject& line, std::optional<std::size_t> then) {
    if (session_.output().mode() == OutputMode::text) {
      line.bytes("then", then ? session_.server_address(*then) : "-");
    } else if (then) {
      line.object("then", JsonObject("server", session_.server_address(*then)).number("index", *then));
    } else {
      line.raw("then", "null");
    }
  }

  Session& session_;
  const Placements& placements_;
  Down down_;
};

}  // namespace

ExitStatus where_down(Session& session, const WhereOptions& options, const Placements& placements) {
  Foretelling foretelling(session, placements, down_of(placements.front()->pool(), *options.down));
  return for_each_key(
      session, placements, options, [&](const std::string& key) { return foretelling.print(key); },
      [] { return ExitStatus::ok; });
}

}  // namespace mcds
