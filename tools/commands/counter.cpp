// Implements mcds counter: parsing and printing. The algorithm is in common/structures/counter/counter.cpp.

#include "common/structures/counter/counter.hpp"

#include "tools/commands/commands.hpp"

namespace mcds {

namespace {

constexpr std::uint64_t max_exact_json = std::uint64_t{1} << 53;

struct CounterOptions {
  std::string name;
  std::vector<std::string> names;
  std::optional<std::uint64_t> delta;
  std::uint64_t value = 0, initial = 0;
  std::optional<std::uint64_t> otherwise;
  std::optional<Duration> ttl;
  bool exact = false, whole_key = false, if_absent = false, as_object = false;

  std::optional<std::uint64_t> max;  // of limit
  Duration period{};
  std::uint64_t cost = 1;
  bool sliding = false, peek = false;
  std::string wait, if_down;
};

Counter counter_of(Session& session, const CounterOptions& options, const char* one_copy = nullptr) {
  if (options.whole_key) one_copy = "--key";
  if (options.sliding) one_copy = "--sliding";
  return Counter(
      one_copy != nullptr ? context_with_one_copy(session, one_copy) : session.context_with_copies(),
      options.whole_key ? Counter::Names::whole_keys : Counter::Names::counters);
}

void check_ttl(const std::optional<Duration>& ttl) {
  if (ttl && *ttl <= Duration::zero())
    throw InvalidInput("--ttl must be longer than 0; omit it for a counter that does not expire");
}

// Adds a value, also as text if it exceeds 2^53, because jq and JavaScript round such numbers.
JsonObject& add_value(JsonObject& object, std::string_view name, std::uint64_t value) {
  object.number(name, value);
  if (value > max_exact_json) object.bytes(std::string(name) + "_str", std::to_string(value));
  return object;
}

JsonObject value_line(const std::string& name, const CounterAnswer& answer) {
  JsonObject line("counter", name);
  add_value(line, "value", answer.value);
  return line;  // returning add_value's reference would copy the line
}

AnswerFrom from(const CounterAnswer& answer) {
  return {.server = answer.server, .copies = answer.copies, .or_one = true};
}

ExitStatus answer_value(Session& session, JsonObject& line, const CounterAnswer& answer) {
  if (answer.exact) line.boolean("exact", true);
  answer_from(session, line, from(answer), std::to_string(answer.value));
  return ExitStatus::ok;
}

ExitStatus answer_increment(Session& session, const Counter& counter, const std::string& name,
                            std::uint64_t delta, const CounterAnswer& answer) {
  JsonObject line = value_line(name, answer);
  line.number("delta", delta).boolean("created", answer.created);
  if (session.has_lost() && session.has_lost(counter.key_of(name))) line.boolean("lost_or_dropped", true);
  return answer_value(session, line, answer);
}

IncrOptions incr_options(const CounterOptions& options) {
  check_ttl(options.ttl);
  return {options.ttl, options.initial, options.exact};
}

void answer_increments(Session& session, const Counter& counter, const Window<Increment>& window,
                       const IncrementResults& results) {
  std::vector<std::uint64_t> ends;
  for (const IncrementResult& result : results.of_names) {
    if (!result.answer.failure) answer_increment(session, counter, result.name, result.delta, result.answer);
    ends.push_back(session.output().end());
  }
  for (std::size_t i = 0; i < results.of_lines.size(); ++i) {
    const std::size_t name = results.of_lines[i];
    const auto& failure = results.of_names[name].answer.failure;
    failure ? window.fail(i, *failure) : window.done(i, ExitStatus::ok, ends[name]);
  }
}

// Reads increments from standard input. Equal names in one window become one increment.
// Lets a change wait for its server, so that one whose reply was lost is looked up. The other servers of
// several copies answer at once.
void hold_for_one_copy(Session& session) {
  if (has_single_copy(session.copies())) session.hold_for_unhealthy();
}

ExitStatus incr_lines(Session& session, const CounterOptions& options) {
  const IncrOptions how = incr_options(options);
  Counter counter = counter_of(session, options);
  Batch<Increment> batch;
  batch.parse = [&](std::string line) -> std::optional<Increment> {
    if (line.empty()) return std::nullopt;
    NamedNumber increment = name_and_number(std::move(line), 1, "NAME or NAME DELTA");
    static_cast<void>(counter.key_of(increment.name));
    return Increment{std::move(increment.name), increment.number};
  };
  batch.begin = [&](const Window<Increment>& window) -> Answers {
    return [&session, &counter, &window, finish = counter.begin_incr(window.items, how)] {
      answer_increments(session, counter, window, finish());
    };
  };
  return batch.of_lines(session, {}).worst;
}

ExitStatus incr(Session& session, const CounterOptions& options) {
  if (options.name == "-") {
    if (options.delta)
      throw InvalidInput("with -, the deltas come from standard input: one NAME DELTA per line");
    return incr_lines(session, options);
  }
  const std::uint64_t delta = options.delta.value_or(1);
  const IncrOptions how = incr_options(options);
  hold_for_one_copy(session);
  Counter counter = counter_of(session, options);
  return answer_increment(session, counter, options.name, delta, counter.incr(options.name, delta, how));
}

ExitStatus not_found(Session& session, const std::string& name, const CounterAnswer& answer) {
  return answer_missing(session, JsonObject("counter", name), {answer.server});
}

ExitStatus decr(Session& session, const CounterOptions& options) {
  const std::uint64_t delta = options.delta.value_or(1);
  hold_for_one_copy(session);
  const CounterAnswer answer = counter_of(session, options).decr(options.name, delta);
  if (!answer.done) return not_found(session, options.name, answer);
  JsonObject line = value_line(options.name, answer);
  return answer_value(session, line.signed_number("delta", -static_cast<std::int64_t>(delta)), answer);
}

ExitStatus print_reading(Session& session, const CounterOptions& options, const std::string& name,
                         const CounterAnswer& reading) {
  const AnswerFrom read_from{reading.server, reading.copies};
  JsonObject line("counter", name);
  if (!reading.done && !options.otherwise) return answer_missing(session, line, read_from);
  const std::uint64_t value = reading.done ? reading.value : *options.otherwise;
  add_value(line, "value", value).boolean("found", reading.done);
  if (reading.exact) line.boolean("exact", true);
  answer_from(session, line, read_from, std::to_string(value));
  return ExitStatus::ok;
}

ExitStatus add_reading(ObjectAnswer& object, const CounterOptions& options, const std::string& name,
                       const CounterAnswer& reading) {
  const bool known = reading.done || options.otherwise;
  object.add(name, known ? std::to_string(reading.done ? reading.value : *options.otherwise) : "null");
  return known ? ExitStatus::ok : ExitStatus::no;
}

ExitStatus get(Session& session, const CounterOptions& options) {
  Counter counter = counter_of(session, options);
  ObjectAnswer object(session.output());
  const ExitStatus status = for_names(
      session, options.names, [&](const std::string& name) { counter.key_of(name); },
      [&](const Window<std::string>& window) {
        answer_each(window, counter.get(window.items), [&](const std::string& name, const auto& reading) {
          return options.as_object ? add_reading(object, options, name, reading)
                                   : print_reading(session, options, name, reading);
        });
      });
  if (options.as_object) object.end();
  return status;
}

ExitStatus set(Session& session, const CounterOptions& options) {
  check_ttl(options.ttl);
  hold_for_one_copy(session);
  const CounterAnswer answer =
      counter_of(session, options).set(options.name, options.value, options.ttl, options.if_absent);
  JsonObject line("counter", options.name);
  add_value(line.boolean("stored", answer.done), "value", answer.value);
  answer_from(session, line, from(answer), std::to_string(answer.value));
  return answer.done ? ExitStatus::ok : ExitStatus::no;
}

ExitStatus take(Session& session, const CounterOptions& options) {
  session.hold_for_unhealthy();
  const CounterAnswer taken = counter_of(session, options, "take").take(options.name);
  if (!taken.done) return not_found(session, options.name, taken);
  JsonObject line("counter", options.name);
  try {
    answer_from(session, add_value(line, "taken", taken.value), from(taken), std::to_string(taken.value));
  } catch (const Failure& failure) {
    // The value is in no counter any more. The user can add it from the message.
    throw Failure(failure.code(), "taken: " + std::to_string(taken.value) + "; but " + failure.what());
  }
  return ExitStatus::ok;
}

ExitStatus remove(Session& session, const CounterOptions& options) {
  Counter counter = counter_of(session, options);
  return for_names(
      session, options.names, [&](const std::string& name) { counter.key_of(name); },
      [&](const Window<std::string>& window) {
        answer_each(window, counter.remove(window.items), [&](const std::string& name, const auto& removal) {
          JsonObject line("counter", name);
          return answer_yes(session, line.boolean("removed", removal.done), removal.done, from(removal));
        });
      });
}

ExitStatus where(Session& session, const CounterOptions& options) {
  const Counter counter = counter_of(session, options);
  return where_names(session, options.names,
                     [&](const std::string& name) { return std::vector{counter.key_of(name)}; });
}

constexpr const char* key_help =
    "use NAME as the whole memcached key, for a counter that an application owns";
constexpr const char* ttl_help =
    "let a counter that is created expire after D; an existing one keeps its expiry";

void declare_values(Command& counter, const std::shared_ptr<CounterOptions>& options) {
  counter.verb("incr", "add to a counter, creating it if it is missing", incr, options)
      .example("mcds counter incr hits")
      .example("mcds counter incr bytes:in 1500 --ttl 1h")
      .example("cut -d' ' -f1 access.log | mcds counter incr - >/dev/null")
      .argument("NAME", "the counter; - reads lines of NAME[ DELTA] and sums equal names",
                dash(&options->name))
      .optional_argument("DELTA", "a whole number; default 1", &options->delta)
      .option("--ttl", "D", ttl_help, &options->ttl)
      .option("--init", "N", "start a missing counter from N; default 0", &options->initial)
      .flag("--exact",
            "create a missing counter as an exact one, whose changes can be looked up after a lost reply",
            options->exact)
      .answer("counter value value_str? delta created lost_or_dropped? exact? server @copies")
      .field("value integer the value now")
      .flag("--key", key_help, options->whole_key);
  counter.verb("decr", "subtract from a counter; stops at 0", decr, options)
      .example("mcds counter decr stock:44")
      .answer("counter value value_str? delta exact? server @copies")
      .field("value integer the value now")
      .answer("counter found server @copies")
      .argument("NAME", "the counter", &options->name)
      .optional_argument("DELTA", "a whole number; default 1", &options->delta)
      .flag("--key", key_help, options->whole_key);
  counter.verb("get", "print the values of counters", get, options)
      .example("mcds counter get hits")
      .answer("counter value value_str? found exact? server @copies")
      .field("value integer the value now")
      .answer("counter found server @copies")
      .example("mcds counter get hits misses --default 0 -o value")
      .argument("NAME", "the counters; - reads one per line", dash(&options->names))
      .option("--default", "N", "print N for a missing counter instead of exiting with 1",
              &options->otherwise)
      .flag("--as-object",
            "print one JSON object, {\"NAME\":VALUE,...}; null: it is missing; absent: its server did not "
            "answer",
            options->as_object)
      .flag("--key", key_help, options->whole_key);
  counter.verb("set", "set a counter to a value", set, options)
      .example("mcds counter set stock:44 120")
      .answer("counter stored value value_str? server @copies")
      .field("value integer the value now")
      .argument("NAME", "the counter", &options->name)
      .argument("VALUE", "a whole number", &options->value)
      .option("--ttl", "D", "let the counter expire after D", &options->ttl)
      .flag("--if-absent", "do not change an existing counter: print its value and exit with 1",
            options->if_absent)
      .flag("--key", key_help, options->whole_key);
  counter.verb("take", "read and reset to 0, losing no increment", take, options)
      .example("mcds counter take hits -o value")
      .answer("counter taken taken_str? server @copies")
      .answer("counter found server @copies")
      .argument("NAME", "the counter", &options->name)
      .flag("--key", key_help, options->whole_key);
}

// Implements mcds counter limit.

// Adds a random delay, so that waiters that are allowed at the same moment do not all retry at once.
constexpr Duration max_jitter = std::chrono::milliseconds(50);

// Returns true if --if-down decides instead of the server.
bool answers_despite(const CounterOptions& options, const Failure& failure) {
  return may_pass(failure.code()) && !options.if_down.empty();
}

ExitStatus print_despite(Session& session, const CounterOptions& options, const std::string& name,
                         const Failure& failure) {
  const bool allowed = options.if_down == "allow";
  JsonObject line("counter", name);
  line.boolean("allowed", allowed).number("max", *options.max).bytes("if_down", options.if_down);
  if (!failure.server().empty()) line.bytes("server", failure.server());
  return answer_yes(session, line.bytes("error", failure.what()), allowed);
}

// Prints the answer to a use, or its failure if --if-down decides.
ExitStatus print_use(Session& session, const CounterOptions& options, const std::string& name,
                     const LimitResult& result, std::optional<Duration> waited = {}) {
  if (result.failure) return print_despite(session, options, name, *result.failure);
  JsonObject line("counter", name);
  line.boolean("allowed", result.allowed).number("used", result.used).number("max", *options.max);
  if (options.peek) line.boolean("peek", true);
  if (waited) add_seconds(line, "waited_s", std::chrono::floor<std::chrono::milliseconds>(*waited));
  if (!result.allowed)
    add_seconds(line, "retry_after_s", std::chrono::ceil<std::chrono::milliseconds>(result.retry_after));
  return answer_yes(session, line, result.allowed,
                    {.server = result.server, .copies = result.copies, .or_one = true});
}

// Returns the time until a retry, or nullopt if the answer is final, or no retry could succeed within `left`.
std::optional<Duration> pause_after(Session& session, const LimitResult& result, Duration period,
                                    Duration left) {
  const bool contended = result.failure && result.failure->code() == ErrorCode::try_again;
  if (result.allowed || (result.failure && !contended) || result.retry_after >= left) return std::nullopt;
  const Duration most = std::min(max_jitter, period / 4);
  const auto jitter = session.random().below(static_cast<std::uint64_t>(most.count()) + 1);
  return std::min(left, result.retry_after + Duration(static_cast<Duration::rep>(jitter)));
}

LimitRule rule_of(const CounterOptions& options) {
  if (options.max.value_or(0) == 0)
    throw InvalidInput("--max: give the number of uses allowed in one period, at least 1");
  if (options.period <= Duration::zero()) throw InvalidInput("--per: give a period longer than 0");
  if (!options.wait.empty() && options.name == "-")
    throw InvalidInput("--wait: give one NAME; lines of standard input do not wait");
  if (!options.wait.empty() && options.peek) throw InvalidInput("--wait and --peek cannot be combined");
  return {*options.max, options.period, options.sliding, options.peek};
}

Duration wait_of(Session& session, const CounterOptions& options) {
  if (options.wait.empty()) return Duration::zero();
  const bool forever = options.wait == "inf";
  return std::min(forever ? Duration::max() : parse_duration(options.wait, "--wait"), session.time_left());
}

// Decides the uses of standard input.
ExitStatus limit_lines(Session& session, const CounterOptions& options, Counter& counter,
                       const LimitRule& rule) {
  Batch<LimitUse> batch;
  batch.parse = [&](std::string line) -> std::optional<LimitUse> {
    if (line.empty()) return std::nullopt;
    NamedNumber use = name_and_number(std::move(line), options.cost, "NAME or NAME COST");
    counter.check_limit({use.name, use.number}, rule);
    return LimitUse{std::move(use.name), use.number};
  };
  batch.run = [&](const Window<LimitUse>& window) {
    const auto results = counter.limit(window.items, rule);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i].failure && !answers_despite(options, *results[i].failure))
        window.fail(i, *results[i].failure);
      else
        window.done(i, print_use(session, options, window.items[i].name, results[i]));
    }
  };
  return batch.of_lines(session, {}).worst;
}

// Decides one use, or those of standard input, and prints the answers. Throws the failure of one use, unless
// --if-down decides instead.
ExitStatus limit(Session& session, const CounterOptions& options) {
  Counter counter = counter_of(session, options);
  const LimitRule rule = rule_of(options);
  const Duration wait = wait_of(session, options);
  if (options.name == "-") return limit_lines(session, options, counter, rule);
  const LimitUse use{options.name, options.cost};
  counter.check_limit(use, rule);
  const SteadyTime began = session.clock().steady();
  const Waiting waiting(session, "waiting for the next use");
  for (;;) {
    const LimitResult result = counter.limit(std::span(&use, 1), rule).front();
    const Duration waited = session.clock().steady() - began;
    if (const auto pause = pause_after(session, result, rule.period, wait - waited)) {
      session.clock().sleep_for(*pause);
      continue;
    }
    if (result.failure && !answers_despite(options, *result.failure)) raise(*result.failure);
    return print_use(session, options, use.name, result,
                     options.wait.empty() ? std::nullopt : std::optional(waited));
  }
}

void declare_limit(Command& counter, const std::shared_ptr<CounterOptions>& options) {
  counter.verb("limit", "allow at most N uses per period; exit 1 over the limit", limit, options)
      .answer("counter allowed used max peek? waited_s? retry_after_s? server @copies")
      .answer("counter allowed max if_down server? error")
      .field("error string why the server gave no answer")
      .example("mcds counter limit mail:user7 --max 5 --per 1h && send-mail user7")
      .example("mcds counter limit login:10.1.2.3 --sliding --max 5 --per 1m --if-down deny")
      .example("mcds counter limit api --max 9 --per 1s -w 1m && curl https://api.example/")
      .example("cut -f1 clients | mcds counter limit - --max 100 --per 1m --peek")
      .argument("NAME", "what is limited; - reads NAME[ COST] lines", dash(&options->name))
      .option("--max", "N", "allow N uses per period; required", &options->max)
      .option("--per", "D", "the period, aligned to the clock unless --sliding is given; required",
              &options->period)
      .option(
          "-w,--wait", "D",
          "wait up to D until the use is allowed, or inf; a use that is allowed only later is denied at once",
          &options->wait)
      .option("--cost", "K", "count this use as K; default 1", &options->cost)
      .flag("--sliding", "allow at most --max uses in every window of one period, wherever it begins",
            options->sliding)
      .flag("--peek", "print the answer without counting the use", options->peek)
      .choice("--if-down", "allow|deny",
              "allow or deny the use if the server gives no usable answer, and exit with 0 or 1; by default "
              "this is an error",
              &options->if_down)
      .flag("--key", key_help, options->whole_key);
}

}  // namespace

void declare_counter(Command& counter) {
  counter.exits(
      "1 no such counter, or over the limit|2 a counter was lost or removed between two increments of one "
      "command|65 the value is not a counter, the counter has another number of copies, or a line of input "
      "is malformed|66 standard input cannot be read|69|75 other clients kept changing an exact counter, or "
      "a limit's server is too slow for its period|76|80 the change may or may not have been made");
  const auto options = std::make_shared<CounterOptions>();
  declare_values(counter, options);
  declare_limit(counter, options);
  counter.verb("remove", "remove counters", remove, options)
      .example("mcds counter remove hits")
      .answer("counter removed server @copies")
      .argument("NAME", "the counters; - reads one per line", dash(&options->names))
      .flag("--key", key_help, options->whole_key);
  counter.verb("where", "print the servers of counters", where, options)
      .example("mcds counter where hits")
      .answer("@where")
      .argument("NAME", "the counters; - reads one per line", dash(&options->names))
      .flag("--key", key_help, options->whole_key);
}

}  // namespace mcds
