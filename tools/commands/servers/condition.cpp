#include "tools/commands/servers/condition.hpp"

namespace mcds {

std::vector<Condition> ask_servers(Cluster& cluster, const std::vector<std::string>& arguments) {
  const std::size_t count = cluster.placement().pool().size();
  std::vector<Request> versions, statistics;
  for (std::size_t i = 0; i < count; ++i) versions.push_back(Request::version(i));
  std::vector<Reply> replies = cluster.execute(versions);
  std::vector<Condition> conditions(count);
  for (std::size_t i = 0; i < count; ++i) {
    Condition& condition = conditions[i];
    condition.stats.resize(arguments.size());
    condition.up = !replies[i].failed();
    if (condition.up) {
      condition.version = std::move(replies[i].value);
      for (const std::string& argument : arguments) statistics.push_back(Request::stats(i, argument));
    } else {
      condition.error = replies[i].failure->message;
      condition.denied = replies[i].is(ReplyFailure::Kind::denied);
    }
  }
  if (statistics.empty()) return conditions;
  replies = cluster.execute(statistics);
  for (std::size_t i = 0; i < replies.size(); ++i) {
    Condition& condition = conditions[replies[i].server];
    const std::size_t argument = i % arguments.size();
    if (!replies[i].failed()) {
      condition.stats[argument] = std::move(replies[i].value);
    } else if (argument == 0) {
      condition.error = "no statistics: " + replies[i].failure->message;
      condition.refused = true;
    }
  }
  return conditions;
}

JsonObject server_line(const Server& server, std::size_t index, const Condition& condition) {
  JsonObject line;
  line.bytes("server", server.address()).number("index", index);
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

}  // namespace mcds
