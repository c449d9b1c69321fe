// mcds servers: one line per server, the dead ones too.
#include "common/cluster/credentials.hpp"
#include "common/cluster/statistics.hpp"
#include "tools/commands/servers/condition.hpp"

namespace mcds {

namespace {

constexpr Duration certificate_warning = std::chrono::days(14);

// One at a time, by connections that are open: no server's time contains another's.
void measure(Cluster& cluster, const Clock& clock, std::vector<Condition>& conditions) {
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    if (!conditions[i].up || !conditions[i].error.empty()) continue;
    const SteadyTime before = clock.steady();
    if (cluster.execute(Request::version(i)).failed()) continue;
    conditions[i].round_trip = std::chrono::duration_cast<std::chrono::microseconds>(clock.steady() - before);
  }
}

void number(JsonObject& line, std::string_view name, const Condition& condition, std::string_view stat) {
  if (const auto value = statistic_number(condition.stats.front(), stat)) line.number(name, *value);
}

// Of those that were reached by TLS: when their certificates end.
using CertificateEnds = std::map<std::size_t, WallTime>;

void warn_of_certificates(const Session& session, const Pool& pool, const CertificateEnds& ends,
                          WallTime now) {
  for (const auto& [index, end] : ends) {
    const auto days = std::chrono::duration_cast<std::chrono::days>(end - now).count();
    if (end - now >= certificate_warning) continue;
    session.output().warning(pool[index].address() + ": its certificate ends at " + format_time(end) + ", " +
                             (days < 1 ? "within a day" : "in " + std::to_string(days) + " days") +
                             "; renew it");
  }
}

JsonObject describe(const Server& server, std::size_t index, const Condition& condition,
                    const CertificateEnds& ends) {
  JsonObject line = server_line(server, index, condition);
  if (!condition.version.empty()) line.bytes("version", condition.version);
  number(line, "uptime_s", condition, "uptime");
  number(line, "items", condition, "curr_items");
  number(line, "used_bytes", condition, "bytes");
  number(line, "limit_bytes", condition, "limit_maxbytes");
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
  measure(*cluster, session.clock(), conditions);
  if (metrics && !session.options().quiet) session.output().raw(server_metrics(pool, conditions, ends));
  for (std::size_t i = 0; i < pool.size(); ++i)
    session.output().answer(describe(pool[i], i, conditions[i], ends), conditions[i].up ? "up" : "down");
  warn_of_certificates(session, pool, ends, session.clock().wall());
  return status_of(conditions);
}

ExitStatus run(Session& session, const ServersOptions& options) {
  if (options.stats + options.every.has_value() + options.clients > 1)
    throw InvalidInput("give one of --every, --stats and --clients");
  if (options.argument && !options.stats)
    throw InvalidInput("'" + *options.argument +
                       "' is not expected here; --stats takes the name of statistics");
  if (options.count && !options.every) throw InvalidInput("-n needs --every");
  if ((options.hot || options.find) && !options.every) throw InvalidInput("--hot and --find need --every");
  if ((options.every || options.stats || options.clients) &&
      session.output().mode() == OutputMode::openmetrics)
    throw InvalidInput("-o openmetrics prints one look; leave out --every, --stats and --clients");
  if (options.stats) return servers_stats(session, options);
  if (options.clients) return servers_clients(session);
  return options.every ? servers_every(session, options) : show_servers(session);
}

}  // namespace

void declare_servers(Command& command) {
  command.exits("2 some servers are down|69 all servers are down|75|76|77|78");
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
      .field("client string the address of the client, without its port; unix for those by a socket's path")
      .answer("server index name? up error? *")
      .example("mcds servers -o text")
      .example("mcds servers --every 1s -n 2")
      .example("mcds servers --every 1s -n 1 --hot --find")
      .example("mcds servers -o openmetrics")
      .example("mcds servers --stats settings")
      .example("mcds -s 10.0.0.1,10.0.0.2:11212 servers --connect-timeout 100ms")
      .option("--every", "D", "print rates over each interval of this length", &options->every)
      .option("-n,--count", "N", "with --every: end after N intervals", &options->count)
      .flag("--hot", "with --every: also the hottest keys and prefixes, as item hot", options->hot)
      .flag("--find", "with --every: also what doctor finds", options->find)
      .flag("--clients", "print who has connections to the servers, how many and how long idle",
            options->clients)
      .flag("--stats", "print all statistics as the servers give them", options->stats)
      .optional_argument("ARG", "with --stats: which statistics: settings, items, slabs, ...",
                         &options->argument)
      .metrics()
      .action(run, options);
}

}  // namespace mcds
