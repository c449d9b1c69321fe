// Implements mcds capacity: estimates the hit ratio with more or less memory.
#include "common/operations/capacity/capacity.hpp"

#include "tools/commands/commands.hpp"

namespace mcds {

namespace {

constexpr auto min_measurement = std::chrono::seconds(1);
constexpr auto max_cost_measurement = std::chrono::seconds(5);
constexpr std::size_t curve_width = 30;
constexpr double min_factor = 0.01, max_factor = 16;

struct CapacityOptions {
  Duration watched = std::chrono::seconds(60);
  std::string factors = "0.5,1,2,4";
  std::string max_cost = "10%";
};

std::vector<double> factors_in(const std::string& list) {
  std::vector<double> factors;
  for (const std::string_view word : split(list, ',')) {
    const auto factor = parse_double(std::string(word));
    if (!factor || *factor < min_factor || *factor > max_factor)
      throw InvalidInput("--at: '" + visible(word) + "' is not a factor from 0.01 to 16; write 0.5,1,2,4");
    factors.push_back(*factor);
  }
  return factors;
}

std::uint64_t times(std::uint64_t bytes, double factor) {
  return static_cast<std::uint64_t>(static_cast<double>(bytes) * factor);
}

JsonObject& add_ratio(JsonObject& line, std::string_view name, double ratio) {
  return line.raw(name, format_fixed(ratio, 4));
}

JsonObject add_range(JsonObject object, const capacity::Estimate& estimate) {
  add_ratio(add_ratio(object, "hit_ratio", estimate.hit_ratio), "low", estimate.low);
  return add_ratio(object, "high", estimate.high);
}

JsonObject describe(const capacity::Estimate& estimate, std::uint64_t memory) {
  return add_range(
      JsonObject().real("factor", estimate.factor).number("memory_bytes", times(memory, estimate.factor)),
      estimate);
}

// Adds the curve: one row for each size of memory, with a bar.
void add_curve(std::vector<JsonObject>& rows, const std::string& server, const capacity::PerServer& result) {
  const auto add = [&](JsonObject row, double ratio) {
    rows.push_back(add_ratio(row, "hit_ratio", ratio).bytes("bar", bar(ratio, curve_width)));
  };
  for (const capacity::Estimate& one : result.estimates)
    add(JsonObject("curve", server)
            .real("factor", one.factor)
            .number("memory_bytes", times(result.memory_bytes, one.factor)),
        one.hit_ratio);
  if (result.one_lost)
    add(JsonObject("curve", server).bytes("factor", "one lost"), result.one_lost->hit_ratio);
}

void print(Session& session, const std::string& server, const capacity::PerServer& result) {
  JsonObject line("server", server);
  if (result.memory_bytes != 0) line.number("memory_bytes", result.memory_bytes);
  if (result.hit_ratio) add_ratio(line, "hit_ratio", *result.hit_ratio).number("gets", result.gets);
  std::string bare = server;
  if (session.output().mode() == OutputMode::json) {
    std::vector<JsonObject> estimates;
    for (const capacity::Estimate& one : result.estimates)
      estimates.push_back(describe(one, result.memory_bytes));
    if (!estimates.empty()) line.objects("estimate", estimates);
    if (result.one_lost) line.object("estimate_if_one_is_lost", add_range({}, *result.one_lost));
  } else {
    for (const capacity::Estimate& one : result.estimates)
      bare += ' ' + json_real(one.factor) + '=' + format_fixed(one.hit_ratio, 4);
  }
  if (result.coverage) add_ratio(line, "coverage", *result.coverage);
  if (result.cost) add_ratio(line, "cost", *result.cost);
  // In text mode the notes are printed in full after the row.
  const bool in_text = session.output().mode() == OutputMode::text;
  if (!result.notes.empty()) line.strings(in_text ? "explain" : "notes", result.notes);
  if (!result.failure.empty()) line.bytes("error", result.failure);
  session.output().answer(line, bare);
}

ExitStatus run_capacity(Session& session, const CapacityOptions& options) {
  capacity::Options measuring;
  measuring.factors = factors_in(options.factors);
  measuring.max_cost = parse_share(options.max_cost, "--max-cost");
  measuring.watched = options.watched;
  if (options.watched < min_measurement) throw InvalidInput("--for must be at least 1s");
  measuring.measured = std::min<Duration>(max_cost_measurement, options.watched / 4);
  if (session.clock().steady() + options.watched + 3 * measuring.measured > session.deadline())
    throw InvalidInput("--for, and the time to measure the cost, must be shorter than --deadline");
  measuring.connecting = session.connect_options();
  Countdown countdown(session, options.watched + 3 * measuring.measured, Pause::Signals::end_wait);
  measuring.wait = [&](Duration time) { return countdown.wait(time); };
  const auto results = capacity::measure(session.placement(), session.clock(), measuring);
  ExitStatus status = ExitStatus::ok;
  std::vector<JsonObject> curve;
  for (std::size_t i = 0; i < results.size(); ++i) {
    print(session, session.server_address(i), results[i]);
    add_curve(curve, session.server_address(i), results[i]);
    if (!results[i].failure.empty()) status = ExitStatus::problem;
  }
  if (status != ExitStatus::ok && !countdown.wait(Duration::zero())) status = ExitStatus::try_again;
  if (const auto pool = capacity::of_pool(results); results.size() > 1 && pool.hit_ratio) {
    print(session, "*", pool);
    add_curve(curve, "*", pool);
  }
  for (const JsonObject& row : curve) {
    if (session.output().mode() == OutputMode::text) session.output().detail(row);
  }
  return status;
}

}  // namespace

void declare_capacity(Command& command) {
  command.exits("2 there is no estimate for some servers|75|76|78");
  const auto options = std::make_shared<CapacityOptions>();
  command.itself()
      .answer(
          "server memory_bytes? hit_ratio? gets? estimate? estimate_if_one_is_lost? coverage? cost? "
          "notes:string[]? error?")
      .field("error string why there is no estimate")
      .field("server string the address; *: the pool")
      .field("memory_bytes integer memory that the server may use")
      .field("hit_ratio number hit ratio that the server counted while it was watched")
      .field("coverage number share of the events that was seen")
      .field("notes string[] what makes the estimate worse")
      .example("mcds capacity --for 4s -o text")
      .example("mcds capacity --for 2s --at 0.5,2 --max-cost 30%")
      .option("--for", "D", "how long keys are watched; default 60s, at least 1s", &options->watched)
      .option("--at", "F,...",
              "sizes, as factors from 0.01 to 16 of the memory that a server has; default 0.5,1,2,4",
              &options->factors)
      .option("--max-cost", "P",
              "stop at a server if watching makes a request dearer than this share; default 10%",
              &options->max_cost)
      .action(run_capacity, options);
}

}  // namespace mcds
