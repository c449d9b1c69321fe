// mcds counter: parsing and printing; the algorithm is in common/structures/counter/counter.cpp.
#include "common/structures/counter/counter.hpp"

#include <map>
#include <memory>

#include "common/base/bytes.hpp"
#include "tools/cli/batch.hpp"
#include "tools/cli/copy_list.hpp"
#include "tools/cli/names.hpp"
#include "tools/cli/program.hpp"
#include "tools/cli/session.hpp"
#include "tools/cli/where_keys.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/counter_limit.hpp"

namespace mcds {

namespace {

constexpr std::uint64_t largest_exact_json = std::uint64_t{1} << 53;

struct CounterOptions {
  std::string name;
  std::vector<std::string> names;
  std::optional<std::uint64_t> delta;
  std::uint64_t value = 0, initial = 0;
  std::optional<std::uint64_t> otherwise;
  std::optional<Duration> ttl;
  bool exact = false, plain = false, whole_key = false, if_absent = false, fail_fast = false;
};

using Options = std::shared_ptr<CounterOptions>;

Counter counter_of(Session& session, const CounterOptions& options, const char* one_copy = nullptr) {
  if (options.whole_key) one_copy = "--key";
  return Counter(
      one_copy != nullptr ? context_with_one_copy(session, one_copy) : session.context_with_copies(),
      options.whole_key ? Counter::Names::whole_keys : Counter::Names::counters);
}

const char* plain_of(const CounterOptions& options) {
  return options.plain ? "--plain" : nullptr;
}

void check_ttl(const std::optional<Duration>& ttl) {
  if (ttl && *ttl <= Duration::zero())
    throw InvalidInput("--ttl must be longer than 0; omit it for a counter that does not expire");
}

// jq and JavaScript round numbers above 2^53: those come as text too.
JsonObject& add_value(JsonObject& object, std::string_view name, std::uint64_t value) {
  object.number(name, value);
  if (value > largest_exact_json) object.bytes(std::string(name) + "_str", std::to_string(value));
  return object;
}

JsonObject increment_line(Session& session, const std::string& name, std::uint64_t delta,
                          const CounterValue& value) {
  JsonObject line;
  line.bytes("counter", name);
  add_value(line, "value", value.value).number("delta", delta).boolean("created", value.created);
  if (value.exact) line.boolean("exact", true);
  line.bytes("server", session.server_address(value.server));
  add_copies_or_one(line, session, value.copies);
  return line;
}

ExitStatus not_found(Session& session, const std::string& name, std::size_t server,
                     std::span<const CopyOutcome> copies = {}) {
  JsonObject line;
  line.bytes("counter", name).boolean("found", false).bytes("server", session.server_address(server));
  add_copies(line, session, copies);
  if (session.output().mode() != OutputMode::value) session.output().answer(line, {});
  return ExitStatus::no;
}

IncrOptions incr_options(const CounterOptions& options) {
  check_ttl(options.ttl);
  if (options.exact && options.plain) throw InvalidInput("give either --exact or --plain");
  return {options.ttl, options.initial, options.exact};
}

void answer_increments(Session& session, const Window<Increment>& window, const IncrementResults& results) {
  for (const IncrementResult& result : results.of_names) {
    if (!result.value) continue;
    session.output().answer(increment_line(session, result.name, result.delta, *result.value),
                            std::to_string(result.value->value));
  }
  for (std::size_t i = 0; i < results.of_lines.size(); ++i) {
    const auto& failure = results.of_names[results.of_lines[i]].failure;
    if (failure) window.fail(i, *failure);
  }
}

// Increments from standard input: equal names of one window are one increment.
ExitStatus incr_lines(Session& session, const CounterOptions& options) {
  const IncrOptions how = incr_options(options);
  Counter counter = counter_of(session, options, plain_of(options));
  Batch<Increment> batch;
  batch.parse = [&](std::string line) -> std::optional<Increment> {
    if (line.empty()) return std::nullopt;
    NamedNumber increment = name_and_number(std::move(line), 1, "NAME or NAME DELTA");
    static_cast<void>(counter.key_of(increment.name));
    return Increment{std::move(increment.name), increment.number};
  };
  batch.run = [&](const Window<Increment>& window) -> Answers {
    const auto sent = std::make_shared<Counter::Incrementing>(counter.begin_incr(window.items, how));
    return [&session, &window, sent] { answer_increments(session, window, sent->finish()); };
  };
  return batch.of_lines(session, {.fail_fast = options.fail_fast}).worst;
}

ExitStatus incr(Session& session, const CounterOptions& options) {
  if (options.name == "-") {
    if (options.delta)
      throw InvalidInput("with -, the deltas come from standard input: one NAME DELTA per line");
    return incr_lines(session, options);
  }
  const std::uint64_t delta = options.delta.value_or(1);
  const IncrOptions how = incr_options(options);
  const CounterValue value = counter_of(session, options, plain_of(options)).incr(options.name, delta, how);
  session.output().answer(increment_line(session, options.name, delta, value), std::to_string(value.value));
  return ExitStatus::ok;
}

ExitStatus decr(Session& session, const CounterOptions& options) {
  Counter counter = counter_of(session, options);
  const std::uint64_t delta = options.delta.value_or(1);
  const auto value = counter.decr(options.name, delta);
  if (!value)
    return not_found(session, options.name, session.placement()->server_of(counter.key_of(options.name)));
  JsonObject line;
  line.bytes("counter", options.name);
  add_value(line, "value", value->value).signed_number("delta", -static_cast<std::int64_t>(delta));
  if (value->exact) line.boolean("exact", true);
  line.bytes("server", session.server_address(value->server));
  add_copies_or_one(line, session, value->copies);
  session.output().answer(line, std::to_string(value->value));
  return ExitStatus::ok;
}

ExitStatus print_reading(Session& session, const CounterOptions& options, const std::string& name,
                         const CounterReading& reading) {
  if (!reading.value && !options.otherwise) return not_found(session, name, reading.server, reading.copies);
  JsonObject line;
  line.bytes("counter", name);
  const std::uint64_t value = reading.value ? reading.value->value : *options.otherwise;
  add_value(line, "value", value).boolean("found", reading.value.has_value());
  if (reading.value && reading.value->exact) line.boolean("exact", true);
  line.bytes("server", session.server_address(reading.server));
  add_copies(line, session, reading.value ? reading.value->copies : reading.copies);
  session.output().answer(line, std::to_string(value));
  return ExitStatus::ok;
}

// One window of names; each must be good for a key.
NameTasks tasks_of(Counter& counter, NameTasks::Act act) {
  return {[&counter](const std::string& name) { static_cast<void>(counter.key_of(name)); }, std::move(act)};
}

ExitStatus get(Session& session, const CounterOptions& options) {
  Counter counter = counter_of(session, options);
  const auto act = [&](std::span<const std::string> names, const NameTasks::Fail& fail) {
    const auto readings = counter.get(names);
    ExitStatus status = ExitStatus::ok;
    for (std::size_t i = 0; i < readings.size(); ++i) {
      if (readings[i].failure)
        fail(i, *readings[i].failure);
      else
        status = worse(status, print_reading(session, options, names[i], readings[i]));
    }
    return status;
  };
  return for_names(session, options.names, tasks_of(counter, act));
}

ExitStatus set(Session& session, const CounterOptions& options) {
  check_ttl(options.ttl);
  const SetResult result =
      counter_of(session, options).set(options.name, options.value, options.ttl, options.if_absent);
  JsonObject line;
  line.bytes("counter", options.name).boolean("stored", result.stored);
  add_value(line, "value", result.value).bytes("server", session.server_address(result.server));
  add_copies_or_one(line, session, result.copies);
  session.output().answer(line, std::to_string(result.value));
  return result.stored ? ExitStatus::ok : ExitStatus::no;
}

ExitStatus take(Session& session, const CounterOptions& options) {
  Counter counter = counter_of(session, options, "take");
  const auto taken = counter.take(options.name);
  if (!taken)
    return not_found(session, options.name, session.placement()->server_of(counter.key_of(options.name)));
  JsonObject line;
  line.bytes("counter", options.name);
  add_value(line, "taken", taken->value).bytes("server", session.server_address(taken->server));
  add_copies_or_one(line, session, {});
  session.output().answer(line, std::to_string(taken->value));
  return ExitStatus::ok;
}

ExitStatus print_removal(Session& session, const std::string& name, const CounterRemoval& removal) {
  JsonObject line;
  line.bytes("counter", name)
      .boolean("removed", removal.removed)
      .bytes("server", session.server_address(removal.server));
  add_copies_or_one(line, session, removal.copies);
  session.output().answer(line, removal.removed ? "1" : "0");
  return removal.removed ? ExitStatus::ok : ExitStatus::no;
}

ExitStatus remove(Session& session, const CounterOptions& options) {
  Counter counter = counter_of(session, options);
  const auto act = [&](std::span<const std::string> names, const NameTasks::Fail& fail) {
    const auto removals = counter.remove(names);
    ExitStatus status = ExitStatus::ok;
    for (std::size_t i = 0; i < removals.size(); ++i) {
      if (removals[i].failure)
        fail(i, *removals[i].failure);
      else
        status = worse(status, print_removal(session, names[i], removals[i]));
    }
    return status;
  };
  return for_names(session, options.names, tasks_of(counter, act));
}

ExitStatus where(Session& session, const CounterOptions& options) {
  Counter counter = counter_of(session, options);
  const auto act = [&](std::span<const std::string> names, const NameTasks::Fail&) {
    std::vector<std::string> keys;
    for (const std::string& name : names) keys.push_back(counter.key_of(name));
    return print_where(session, keys);
  };
  return for_names(session, options.names, tasks_of(counter, act));
}

ExitStatus recopy(Session& session, const CounterOptions& options) {
  const auto [found, before] = Counter::recopy(session.context_with_copies(), options.name);
  JsonObject line;
  line.bytes("counter", options.name);
  return answer_recopied(session, std::move(line), found, before);
}

using VerbFunction = ExitStatus (*)(Session&, const CounterOptions&);

void finish(Verb& verb, const Options& options, VerbFunction function) {
  verb.flag("--key", "NAME is a whole memcached key: an application's own counter", options->whole_key);
  verb.action([options, function](Session& session) { return function(session, *options); });
}

constexpr const char* ttl_help = "ttl of a counter that is created; an existing one keeps its own";

void declare_incr(Command& counter, const Options& options) {
  Verb& incr_verb =
      counter.verb("incr", "add to a counter, creating it if it is missing")
          .example("mcds counter incr hits")
          .example("mcds counter incr bytes:in 1500 --ttl 1h")
          .example("cut -d' ' -f1 access.log | mcds counter incr - >/dev/null")
          .argument("NAME", "the counter; - reads lines of NAME[ DELTA] and sums equal names", &options->name)
          .dash()
          .optional_argument("DELTA", "a whole number; default 1", &options->delta)
          .option("--ttl", "D", ttl_help, &options->ttl)
          .option("--init", "N", "the value from which a missing counter starts; default 0",
                  &options->initial)
          .flag("--exact", "create an exact counter, which can look up the outcome after a lost reply",
                options->exact)
          .flag("--plain", "create a plain counter, which has one copy", options->plain)
          .flag("--fail-fast", "stop at the first line that fails", options->fail_fast)
          .answer("counter value value_str? delta created exact? server @copies");
  finish(incr_verb, options, incr);
}

}  // namespace

void declare_counter(Command& counter) {
  const auto options = std::make_shared<CounterOptions>();
  declare_incr(counter, options);
  finish(counter.verb("decr", "subtract from a counter; stops at 0")
             .example("mcds counter decr stock:44")
             .answer("counter value value_str? delta exact? server @copies")
             .answer("counter found server @copies")
             .argument("NAME", "the counter", &options->name)
             .optional_argument("DELTA", "a whole number; default 1", &options->delta),
         options, decr);
  finish(counter.verb("get", "print the values of counters")
             .example("mcds counter get hits")
             .answer("counter value value_str? found exact? server @copies")
             .answer("counter found server @copies")
             .example("mcds counter get hits misses --default 0 -o value")
             .argument("NAME", "the counters; - reads one per line", &options->names)
             .dash()
             .option("--default", "N", "print N for a missing counter instead of exiting with 1",
                     &options->otherwise),
         options, get);
  finish(counter.verb("set", "set a counter to a value")
             .example("mcds counter set stock:44 120")
             .answer("counter stored value value_str? server @copies")
             .argument("NAME", "the counter", &options->name)
             .argument("VALUE", "a whole number", &options->value)
             .option("--ttl", "D", "the ttl", &options->ttl)
             .flag("--if-absent", "only if there is no such counter; otherwise exit 1", options->if_absent),
         options, set);
  finish(counter.verb("take", "read and reset to 0, losing no increment")
             .example("mcds counter take hits -o value")
             .answer("counter taken taken_str? server @copies")
             .answer("counter found server @copies")
             .argument("NAME", "the counter", &options->name),
         options, take);
  declare_counter_limit(counter);
  finish(counter.verb("remove", "remove counters")
             .example("mcds counter remove hits")
             .answer("counter removed server @copies")
             .argument("NAME", "the counters; - reads one per line", &options->names)
             .dash(),
         options, remove);
  counter.verb("recopy", "keep a counter in as many copies as --copies says, while others use it")
      .example("mcds counter recopy orders --copies 3")
      .answer("counter @recopied")
      .answer("counter found")
      .argument("NAME", "the counter", &options->name)
      .action([options](Session& session) { return recopy(session, *options); });
  finish(counter.verb("where", "print the servers of counters")
             .example("mcds counter where hits")
             .answer("@where")
             .argument("NAME", "the counters; - reads one per line", &options->names)
             .dash(),
         options, where);
}

}  // namespace mcds
