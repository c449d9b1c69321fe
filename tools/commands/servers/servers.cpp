// Implements mcds servers: one line per server, including those that are down.
#include "common/cluster/credentials.hpp"
#include "common/cluster/statistics.hpp"
#include "tools/commands/servers/condition.hpp"

namespace mcds {

namespace {

constexpr Duration certificate_warning = std::chrono::days(14);

// Measures one trip to each server on open connections, all at once: each reply is timed on its own.
void measure(Cluster& cluster, std::vector<Condition>& conditions) {
  std::vector<Request> requests;
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    if (conditions[i].up && conditions[i].error.empty()) requests.push_back(Request::version(i));
  }
  if (requests.empty()) return;
  for (const Reply& reply : cluster.execute(requests)) {
    if (!reply.failed()) conditions[reply.server].round_trip = reply.round_trip;
  }
}

void number(JsonObject& line, std::string_view name, const Condition& condition, std::string_view stat) {
  if (const auto value = statistic_number(condition.stats.front(), stat)) line.number(name, *value);
}

// The expiry of the certificate of each server that was reached with TLS.
using CertificateEnds = std::map<std::size_t, WallTime>;

void warn_of_certificates(const Session& session, const Pool& pool, const CertificateEnds& ends,
                          WallTime now) {
  for (const auto& [index, end] : ends) {
    const auto days = std::chrono::duration_cast<std::chrono::days>(end - now).count();
    if (end - now >= certificate_warning) continue;
    session.output().warning(pool[index].address() + ": the certificate expires at " + format_time(end) +
                             ", " + (days < 1 ? "within a day" : "in " + std::to_string(days) + " days") +
                             "; renew it");
  }
}

void add_bar(JsonObject& line) {
  const std::string text = line.text();
  const auto used = parse_double(json_field(text, "used_bytes").value_or(""));
  const auto limit = parse_double(json_field(text, "limit_bytes").value_or(""));
  if (used && limit && *limit > 0) line.bytes("bar", bar(*used / *limit, 10));
}

JsonObject describe(const Server& server, std::size_t index, const Condition& condition,
                    const CertificateEnds& ends, bool for_people) {
  JsonObject line = server_line(server, index, condition);
  if (!condition.version.empty()) line.bytes("version", condition.version);
  number(line, "uptime_s", condition, "uptime");
  number(line, "items", condition, "curr_items");
  number(line, "used_bytes", condition, "bytes");
  number(line, "limit_bytes", condition, "limit_maxbytes");
  if (for_people) add_bar(line);
  number(line, "evictions", condition, "evictions");
  number(line, "connections", condition, "curr_connections");
  number(line, "max_connections", condition, "max_connections");
  if (condition.round_trip) line.number("rtt_us", static_cast<std::uint64_t>(condition.round_trip->count()));
  if (credentials_of(server).login) line.boolean("login_in_clear", login_in_clear(server));
  if (const auto end = ends.find(index); end != ends.end()) line.time("certificate_ends_at", end->second);
  if (!condition.error.empty()) line.bytes("error", condition.error);
  return line;
}

ExitStatus show_servers(Session& session) {
  const Pool& pool = session.placement()->pool();
  CertificateEnds ends;
  ConnectOptions connecting = session.connect_options();
  connecting.certificate = [&ends](std::size_t server, WallTime end) { ends[server] = end; };
  const auto cluster = connect(session.placement(), connecting);
  const bool metrics = session.output().mode() == OutputMode::openmetrics;
  using Arguments = std::vector<std::string>;
  std::vector<Condition> conditions =
      ask_servers(*cluster, metrics ? Arguments{"", "slabs", "items"} : Arguments{""});
  measure(*cluster, conditions);
  if (metrics && !session.options().quiet) session.output().raw(server_metrics(pool, conditions, ends));
  for (std::size_t i = 0; i < pool.size(); ++i)
    session.output().answer(
        describe(pool[i], i, conditions[i], ends, session.output().mode() == OutputMode::text),
        conditions[i].up ? "up" : "down");
  warn_of_certificates(session, pool, ends, session.clock().wall());
  return status_of(conditions);
}

ExitStatus run(Session& session, const ServersOptions& options) {
  if (options.stats + options.every.has_value() + options.clients > 1)
    throw InvalidInput("--every, --stats and --clients cannot be combined");
  if (options.argument && !options.stats)
    throw InvalidInput("'" + *options.argument +
                       "' is not expected here; --stats takes the name of statistics");
  if (options.count && !options.every) throw InvalidInput("-n needs --every");
  if ((options.hot || options.find) && !options.every) throw InvalidInput("--hot and --find need --every");
  if ((options.every || options.stats || options.clients) &&
      session.output().mode() == OutputMode::openmetrics)
    throw InvalidInput("-o openmetrics cannot be combined with --every, --stats or --clients");
  if (options.stats) return servers_stats(session, options);
  if (options.clients) return servers_clients(session);
  return options.every ? servers_every(session, options) : show_servers(session);
}

}  // namespace

void declare_servers(Command& command) {
  command.exits(
      "2 some servers are down|69 all servers are down|75 the deadline passed|76 a server does not report "
      "the statistics that --every or --stats needs|77 all servers deny access|78");
  const auto options = std::make_shared<ServersOptions>();
  command.itself()
      .answer(
          "server index name? up version? uptime_s? @sizes evictions? rtt_us? login_in_clear? "
          "certificate_ends_at? error?")
      .answer("server up at interval_s? restarted? @rates rtt_us? error?")
      .answer("server up at @rates servers:integer servers_up")
      .answer("key events_per_s server")
      .answer("prefix events_per_s")
      .answer("finding severity servers")
      .answer("server client connections:integer idle_min_s idle_max_s states")
      .field("error string why the server is down, or gives no statistics")
      .field("at time the time of the line")
      .field("server string the address; *: the sum of all servers that answered")
      .field("servers string[] the servers that a finding is about, or how many there are")
      .field("restarted boolean true: the server was restarted in this interval, so there are no rates")
      .field("prefix bytes a prefix that was used much")
      .field("key bytes a key that was used much")
      .field(
          "client string the address of the client, without its port; unix: all clients by a socket's path")
      .answer("server index name? up error? *")
      .example("mcds servers -o text")
      .example("mcds servers --every 1s -n 2")
      .example("mcds servers --every 1s -n 1 --hot --find")
      .example("mcds servers -o openmetrics")
      .example("mcds servers --stats settings")
      .example("mcds -s 10.0.0.1,10.0.0.2:11212 servers --connect-timeout 100ms")
      .option("--every", "D", "print rates over each interval of this length until a signal ends it",
              &options->every)
      .option("-n,--count", "N", "with --every: end after N intervals", &options->count)
      .flag("--hot",
            "with --every: also print the keys and prefixes that are used most, as item hot does, which "
            "costs the servers time",
            options->hot)
      .flag("--find",
            "with --every: also print the problems and warnings of doctor; asks every server some 13 times "
            "more",
            options->find)
      .flag(
          "--clients",
          "print the clients of each server, how many connections each has, and for how long they were idle",
          options->clients)
      .flag("--stats", "print all statistics under the names that the servers give them", options->stats)
      .optional_argument("ARG", "with --stats: which statistics: settings, items, slabs, ...",
                         &options->argument)
      .metrics()
      .action(run, options);
}

}  // namespace mcds
