// Implements mcds servers: one line per server, including those that are down; --clients and --stats.
#include "tools/commands/servers/condition.hpp"

namespace mcds {

namespace {

constexpr Duration certificate_warning = std::chrono::days(14);

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
  const std::vector<Condition> conditions =
      ask_servers(session, *cluster, metrics ? Arguments{"", "slabs", "items"} : Arguments{""});
  if (metrics && !session.options().quiet) session.output().raw(server_metrics(pool, conditions, ends));
  for (std::size_t i = 0; i < pool.size(); ++i)
    session.output().answer(
        describe(pool[i], i, conditions[i], ends, session.output().mode() == OutputMode::text),
        conditions[i].up ? "up" : "down");
  warn_of_certificates(session, pool, ends, session.clock().wall());
  return status_of(conditions);
}

// Prints a line for each server that gives no statistics.
void print_errors(Session& session, const std::vector<Condition>& conditions) {
  const Pool& pool = session.placement()->pool();
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    if (conditions[i].error.empty()) continue;
    session.output().answer(server_line(pool[i], i, conditions[i]).bytes("error", conditions[i].error), {});
  }
}

// Implements --clients: shows which clients are connected to the servers.
ExitStatus show_clients(Session& session) {
  const Pool& pool = session.placement()->pool();
  const bool binary = session.connect_options().protocol == ConnectOptions::Protocol::binary;
  std::vector<Condition> conditions = ask_servers(session, session.cluster(), {"conns"});
  struct Row {
    std::size_t server;
    ClientConnections client;
  };
  std::vector<Row> rows;
  for (std::size_t i = 0; i < pool.size(); ++i) {
    std::vector<ClientConnections> clients = clients_in(conditions[i].stats[0]);
    if (clients.empty() && conditions[i].error.empty()) {  // not even our own
      conditions[i].error = binary ? "the binary protocol lists no connections; omit --protocol binary"
                                   : "the server lists no connections";
      conditions[i].refused = true;
    }
    for (ClientConnections& client : clients) rows.push_back({i, std::move(client)});
  }
  std::ranges::stable_sort(rows, std::greater{}, [](const Row& row) { return row.client.connections; });
  session.output().keep_column("connections");
  for (const auto& [server, client] : rows) {
    JsonObject line("server", pool[server].address()), states;
    line.bytes("client", client.address).number("connections", client.connections);
    line.number("idle_min_s", client.idle_min_s).number("idle_max_s", client.idle_max_s);
    for (const auto& [state, count] : client.states) states.number(state, count);
    session.output().answer(line.object("states", states), client.address);
  }
  print_errors(session, conditions);
  return status_of_statistics(conditions);
}

// Implements --stats: prints the statistics as the servers report them.

constexpr std::uint64_t max_exact = 1ULL << 53;

// Arguments that change something.
constexpr std::array refused{"reset", "detail", "sizes_enable", "sizes_disable"};

void check_argument(const std::string& argument) {
  const bool word = !argument.empty() && std::ranges::all_of(argument, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_';
  });
  if (!word)
    throw InvalidInput("--stats: '" + visible(argument) + "' is not the name of statistics, such as items");
  if (argument == "cachedump")
    throw InvalidInput(
        "--stats: 'stats cachedump' holds the server's cache locked; list keys with item list");
  if (std::ranges::find(refused, argument) != refused.end())
    throw InvalidInput("--stats only reads, but 'stats " + argument + "' changes the server");
}

struct Statistic {
  std::string_view name, value;
};

std::vector<Statistic> statistics_in(std::string_view lines) {
  std::vector<Statistic> all;
  std::map<std::string_view, std::size_t> places;  // many readers of JSON refuse a name that comes twice
  for_each_statistic(lines, [&](std::string_view name, std::string_view value) {
    const auto [place, is_new] = places.emplace(name, all.size());
    if (is_new) all.emplace_back();
    all[place->second] = {name, value};
  });
  return all;
}

// Adds a value as a number if readers of JSON keep it exactly.
void add(JsonObject& line, const Statistic& statistic) {
  const auto number = parse_u64(statistic.value);
  const bool exact = number ? *number <= max_exact && std::to_string(*number) == statistic.value
                            : statistic.value.find('.') != std::string_view::npos &&
                                  parse_double(std::string(statistic.value)) && is_json(statistic.value);
  if (exact)
    line.raw(statistic.name, statistic.value);
  else
    line.bytes(statistic.name, statistic.value);
}

void print_lines(Session& session, const std::vector<Condition>& conditions) {
  const Pool& pool = session.placement()->pool();
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    JsonObject line = server_line(pool[i], i, conditions[i]);
    if (!conditions[i].error.empty()) line.bytes("error", conditions[i].error);
    JsonObject stats;
    std::string bare;
    for (const Statistic& statistic : statistics_in(conditions[i].stats[0])) {
      add(stats, statistic);
      append_all(bare, {bare.empty() ? "" : "\n", visible(statistic.name), " ", visible(statistic.value)});
    }
    if (conditions[i].error.empty()) line.object("stats", stats);
    if (!bare.empty() || session.output().mode() != OutputMode::value) session.output().answer(line, bare);
  }
}

// Prints a table for people: one row per statistic, one column per server.
void print_table(Session& session, const std::vector<Condition>& conditions) {
  const Pool& pool = session.placement()->pool();
  std::vector<std::vector<Statistic>> columns;
  std::vector<std::string_view> names;
  std::set<std::string_view> known;
  for (const Condition& condition : conditions) {
    columns.push_back(statistics_in(condition.stats[0]));
    for (const Statistic& statistic : columns.back()) {
      if (known.insert(statistic.name).second) names.push_back(statistic.name);
    }
  }
  for (const std::string_view name : names) {
    JsonObject row("statistic", name);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const auto found = std::ranges::find(columns[i], name, &Statistic::name);
      if (found != columns[i].end()) row.bytes(pool[i].label(), found->value);
    }
    session.output().answer(row, {});
  }
  print_errors(session, conditions);
}

ExitStatus show_statistics(Session& session, const ServersOptions& options) {
  if (options.argument) check_argument(*options.argument);
  const std::vector<Condition> conditions =
      ask_servers(session, session.cluster(), {options.argument.value_or("")});
  session.output().mode() == OutputMode::text ? print_table(session, conditions)
                                              : print_lines(session, conditions);
  return status_of_statistics(conditions);
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
  if (options.stats) return show_statistics(session, options);
  if (options.clients) return show_clients(session);
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
