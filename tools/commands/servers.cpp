// mcds servers: one line per server, the dead ones too.
#include <map>
#include <optional>

#include "common/base/bytes.hpp"
#include "common/base/json.hpp"
#include "tools/cli/program.hpp"
#include "tools/cli/session.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

namespace {

struct Condition {
  bool up = false;
  std::string version;
  std::map<std::string, std::string, std::less<>> stats;
  std::optional<std::chrono::microseconds> round_trip;
  std::string error;
  bool denied = false;
};

std::map<std::string, std::string, std::less<>> parse_stats(std::string_view lines) {
  std::map<std::string, std::string, std::less<>> stats;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    if (const std::size_t space = line.find(' '); space != std::string_view::npos)
      stats.emplace(line.substr(0, space), line.substr(space + 1));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return stats;
}

// Versions and statistics of all servers, each in one round trip to all of them; a proxy that closes the
// connection on `stats` is up all the same.
std::vector<Condition> ask(Cluster& cluster, std::size_t count) {
  std::vector<Request> versions, statistics;
  for (std::size_t i = 0; i < count; ++i) versions.push_back(Request::version(i));
  std::vector<Reply> replies = cluster.execute(versions);
  std::vector<Condition> conditions(count);
  for (std::size_t i = 0; i < count; ++i) {
    conditions[i].up = !replies[i].failed();
    if (conditions[i].up) {
      conditions[i].version = std::move(replies[i].value);
      statistics.push_back(Request::stats(i));
    } else {
      conditions[i].error = replies[i].failure->message;
      conditions[i].denied = replies[i].is(ReplyFailure::Kind::denied);
    }
  }
  if (statistics.empty()) return conditions;
  for (const Reply& reply : cluster.execute(statistics)) {
    if (reply.failed())
      conditions[reply.server].error = "no statistics: " + reply.failure->message;
    else
      conditions[reply.server].stats = parse_stats(reply.value);
  }
  return conditions;
}

// One at a time, so that no server's time contains another's.
void measure(Cluster& cluster, const Clock& clock, std::vector<Condition>& conditions) {
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    if (!conditions[i].up || !conditions[i].error.empty()) continue;
    const SteadyTime before = clock.steady();
    if (cluster.execute(Request::version(i)).failed()) continue;
    conditions[i].round_trip = std::chrono::duration_cast<std::chrono::microseconds>(clock.steady() - before);
  }
}

void number(JsonObject& line, std::string_view name, const Condition& condition, std::string_view stat) {
  const auto found = condition.stats.find(stat);
  if (found == condition.stats.end()) return;
  if (const auto value = parse_u64(found->second)) line.number(name, *value);
}

JsonObject describe(const Server& server, std::size_t index, const Condition& condition) {
  JsonObject line;
  line.bytes("server", server.address()).number("index", index);
  if (!server.name.empty()) line.bytes("name", server.name);
  line.boolean("up", condition.up);
  if (condition.up) line.bytes("version", condition.version);
  number(line, "uptime_s", condition, "uptime");
  number(line, "items", condition, "curr_items");
  number(line, "used_bytes", condition, "bytes");
  number(line, "limit_bytes", condition, "limit_maxbytes");
  number(line, "evictions", condition, "evictions");
  number(line, "connections", condition, "curr_connections");
  number(line, "max_connections", condition, "max_connections");
  if (condition.round_trip) line.number("rtt_us", static_cast<std::uint64_t>(condition.round_trip->count()));
  if (!condition.error.empty()) line.bytes("error", condition.error);
  return line;
}

ExitStatus show_servers(Session& session) {
  const Pool& pool = session.placement()->pool();
  std::vector<Condition> conditions = ask(session.cluster(), pool.size());
  measure(session.cluster(), session.clock(), conditions);
  std::size_t down = 0, denied = 0;
  for (std::size_t i = 0; i < pool.size(); ++i) {
    down += conditions[i].up ? 0 : 1;
    denied += conditions[i].denied ? 1 : 0;
    session.output().answer(describe(pool[i], i, conditions[i]), conditions[i].up ? "up" : "down");
  }
  if (down == 0) return ExitStatus::ok;
  if (denied == pool.size()) return ExitStatus::access_denied;
  return down == pool.size() ? ExitStatus::unavailable : ExitStatus::problem;
}

}  // namespace

void declare_servers(Command& command) {
  command.itself()
      .example("mcds servers")
      .example("mcds servers -o text")
      .example("mcds -s 10.0.0.1,10.0.0.2:11212 servers --connect-timeout 100ms")
      .action([](Session& session) { return show_servers(session); });
}

}  // namespace mcds
