// Implements mcds servers --stats: prints the statistics as the servers report them.
#include <set>

#include "common/cluster/statistics.hpp"
#include "tools/commands/servers/condition.hpp"

namespace mcds {

namespace {

constexpr std::uint64_t max_exact = 1ULL << 53;

// Arguments that change something or list keys.
constexpr std::array refused{"reset", "detail", "sizes_enable", "sizes_disable", "cachedump"};

void check(const std::string& argument) {
  const bool word = !argument.empty() && std::ranges::all_of(argument, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_';
  });
  if (!word)
    throw InvalidInput("--stats: '" + visible(argument) + "' is not the name of statistics, such as items");
  if (std::ranges::find(refused, argument) != refused.end())
    throw InvalidInput("--stats only reads, but 'stats " + argument + "' changes the server");
}

struct Statistic {
  std::string_view name, value;
};

std::vector<Statistic> statistics_in(std::string_view lines) {
  std::vector<Statistic> all;
  for_each_statistic(lines, [&](std::string_view name, std::string_view value) {
    all.push_back({name, value});
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
    session.output().answer(line, bare);
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
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    if (conditions[i].error.empty()) continue;
    JsonObject line = server_line(pool[i], i, conditions[i]);
    session.output().answer(line.bytes("error", conditions[i].error), {});
  }
}

}  // namespace

ExitStatus servers_stats(Session& session, const ServersOptions& options) {
  if (options.argument) check(*options.argument);
  const std::vector<Condition> conditions = ask_servers(session.cluster(), {options.argument.value_or("")});
  session.output().mode() == OutputMode::text ? print_table(session, conditions)
                                              : print_lines(session, conditions);
  ExitStatus status = status_of(conditions);
  for (const Condition& condition : conditions)
    if (condition.refused) status = worse(status, ExitStatus::refused);
  return status;
}

}  // namespace mcds
