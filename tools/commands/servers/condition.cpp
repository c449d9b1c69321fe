#include "tools/commands/servers/condition.hpp"

namespace mcds {

namespace {

const std::string no_statistics = "no statistics: ";

}  // namespace

std::vector<Condition> ask_servers(Session& session, Cluster& cluster,
                                   const std::vector<std::string>& arguments) {
  session.expect_time();
  session.try_always();
  const std::size_t count = cluster.placement().pool().size(), each = arguments.size() + 1;
  std::vector<Request> requests;
  for (std::size_t i = 0; i < count; ++i) {
    requests.push_back(Request::version(i));
    for (const std::string& argument : arguments) requests.push_back(Request::stats(i, argument));
  }
  std::vector<Reply> replies = cluster.execute(requests);
  requests.clear();
  std::vector<Condition> conditions(count);
  for (std::size_t i = 0; i < count; ++i) {
    Condition& condition = conditions[i];
    const std::span<Reply> own = std::span(replies).subspan(i * each, each);
    // A server that does not know `version` is up if it answers the other requests.
    condition.up = !std::ranges::all_of(own, &Reply::failed);
    condition.denied = own[0].is(ReplyFailure::Kind::denied);
    condition.refused = condition.up && own[1].failed();
    const bool late =
        std::ranges::any_of(own, [](const Reply& reply) { return reply.failed() && reply.failure->late; });
    condition.cut = late && session.is_too_late();
    if (own[1].failed())
      condition.error = condition.up ? no_statistics + own[1].failure->message : own[0].failure->message;
    if (!own[0].failed()) {
      condition.version = std::move(own[0].value);
      condition.round_trip = own[0].round_trip;
    }
    for (Reply& reply : own.subspan(1))
      condition.stats.push_back(reply.failed() ? std::string() : std::move(reply.value));
    if (!condition.denied && !late) requests.push_back(Request::version(i));
  }
  if (requests.empty() || session.is_too_late()) return conditions;
  for (Reply& reply : cluster.execute(requests)) {
    Condition& condition = conditions[reply.server];
    if (reply.failed()) continue;
    condition.round_trip = reply.round_trip;
    if (std::exchange(condition.up, true)) continue;
    condition.version = std::move(reply.value);
    condition.error = no_statistics + condition.error;
    condition.refused = true;
  }
  return conditions;
}

JsonObject server_line(const Server& server, std::size_t index, const Condition& condition) {
  JsonObject line = JsonObject("server", server.address()).number("index", index);
  if (!server.name.empty()) line.bytes("name", server.name);
  return line.boolean("up", condition.up);
}

ExitStatus status_of(const std::vector<Condition>& conditions) {
  if (std::ranges::any_of(conditions, &Condition::cut)) return ExitStatus::try_again;
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
