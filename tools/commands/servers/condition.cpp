#include "tools/commands/servers/condition.hpp"

namespace mcds {

std::vector<Condition> ask_servers(Cluster& cluster, const std::vector<std::string>& arguments,
                                   const std::vector<Condition>& before) {
  const std::size_t count = cluster.placement().pool().size();
  std::vector<Request> requests;
  for (std::size_t i = 0; i < count; ++i) requests.push_back(Request::version(i));
  std::vector<Reply> replies = cluster.execute(requests);
  std::vector<Condition> conditions(count);
  std::vector<bool> asked(count);
  for (std::size_t i = 0; i < count; ++i) {
    Condition& condition = conditions[i];
    condition.stats.resize(arguments.size());
    condition.up = !replies[i].failed();
    if (condition.up) {
      condition.version = std::move(replies[i].value);
      condition.round_trip = replies[i].round_trip;
      condition.refused = !before.empty() && before[i].refused;
      if (condition.refused) condition.error = before[i].error;
    } else {
      condition.error = replies[i].failure->message;
      condition.denied = replies[i].is(ReplyFailure::Kind::denied);
    }
    // A server that does not know `version` is up if it answers this request.
    asked[i] = condition.error.empty() || replies[i].is(ReplyFailure::Kind::refused);
  }
  for (std::size_t argument = 0; argument < arguments.size(); ++argument) {
    requests.clear();
    for (std::size_t i = 0; i < count; ++i) {
      if (asked[i]) requests.push_back(Request::stats(i, arguments[argument]));
    }
    if (requests.empty()) break;
    for (Reply& reply : cluster.execute(requests)) {
      Condition& condition = conditions[reply.server];
      if (!reply.failed()) {
        condition.stats[argument] = std::move(reply.value);
        if (!condition.up) condition.error.clear();
        condition.up = true;
      } else if (argument == 0) {
        asked[reply.server] = false;
        if (!condition.up) continue;
        condition.error = "no statistics: " + reply.failure->message;
        condition.refused = true;
      }
    }
  }
  return conditions;
}

JsonObject server_line(const Server& server, std::size_t index, const Condition& condition) {
  JsonObject line = JsonObject("server", server.address()).number("index", index);
  if (!server.name.empty()) line.bytes("name", server.name);
  return line.boolean("up", condition.up);
}

ExitStatus status_of(const std::vector<Condition>& conditions) {
  std::size_t down = 0, denied = 0;
  for (const Condition& condition : conditions) {
    down += condition.up ? 0 : 1;
    denied += condition.denied ? 1 : 0;
  }
  if (down == 0) return ExitStatus::ok;
  if (denied == conditions.size()) return ExitStatus::access_denied;
  return down == conditions.size() ? ExitStatus::unavailable : ExitStatus::problem;
}

ExitStatus status_of_statistics(const std::vector<Condition>& conditions) {
  const bool refused = std::ranges::any_of(conditions, &Condition::refused);
  return refused ? worse(status_of(conditions), ExitStatus::refused) : status_of(conditions);
}

}  // namespace mcds
