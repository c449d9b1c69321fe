// Implements mcds visitors: parsing and printing. The algorithm is in
// common/structures/visitors/visitors.hpp.
#include "common/structures/visitors/visitors.hpp"

#include <cmath>

#include "tools/commands/commands.hpp"

namespace mcds {

namespace {

struct Options {
  std::string name;
  std::optional<Duration> period;
  std::optional<std::string> id;
  bool estimate = false, current = false;
  std::optional<std::string> jitter, at;
};

void common_options(Verb& verb, const std::shared_ptr<Options>& options, const char* usual_period) {
  verb.argument("NAME", "what is visited", &options->name)
      .option("--period", "D", std::string("the period, in whole seconds; default ") + usual_period,
              &options->period);
}

Context context_of(Session& session) {
  return context_with_one_copy(session, "--copies", "a count of visitors");
}

// Returns the counter. If the verb creates counts, the period is never guessed.
Visitors visitors_of(Session& session, const Options& options, bool creates) {
  const Context context = context_of(session);
  Visitors visitors(context, options.name,
                    options.period ? *options.period
                    : creates      ? Visitors::usual_period
                                   : Visitors::period_in_use(context, options.name));
  if (options.at) visitors.use_period_at(parse_time(*options.at, session.clock().wall(), "--at"));
  return visitors;
}

void period_fields(JsonObject& answer, const Visitors& visitors, WallTime started) {
  answer.number("period_s", static_cast<std::uint64_t>(ceil_seconds(visitors.period())))
      .time("period_started_at", started);
}

void answer_hit(Session& session, const Options& options, const Visitors& visitors, const Visitors::Hit& hit,
                const std::optional<std::string>& id) {
  JsonObject answer("visitors", options.name);
  if (id) answer.bytes("id", *id);
  answer.boolean("counted", hit.counted);
  if (hit.counted) answer.number("current", hit.current);
  period_fields(answer, visitors, hit.period_started_at);
  add_lost(answer, session);
  const std::string bare = id ? (hit.counted ? "1" : "0") : std::to_string(hit.current);
  answer_from(session, answer, {hit.server}, bare);
}

// Counts ids from standard input, a window of them in one round trip.
ExitStatus hit_lines(Session& session, const Options& options, Visitors& visitors) {
  Batch<std::string> batch;
  batch.parse = [](std::string line) { return line; };
  batch.run = [&](const Window<std::string>& window) {
    answer_each(window, visitors.hit(window.items), [&](const std::string& id, const Visitors::IdHit& hit) {
      answer_hit(session, options, visitors, hit, id);
      return ExitStatus::ok;
    });
  };
  batch.max_items = 1000;
  return batch.of_lines(session, {}).worst;
}

ExitStatus hit(Session& session, const Options& options) {
  Visitors visitors = visitors_of(session, options, true);
  if (!options.id) {
    answer_hit(session, options, visitors, visitors.hit(), std::nullopt);
  } else if (*options.id == "-") {
    return hit_lines(session, options, visitors);
  } else {
    const std::string id = value_of(*options.id);
    answer_hit(session, options, visitors, visitors.hit(id), id);
  }
  return ExitStatus::ok;
}

double jitter_fraction(std::string_view text) {
  const std::string_view number = text.ends_with('%') ? text.substr(0, text.size() - 1) : text;
  const auto percent = parse_double(number);
  if (!percent || *percent < 0 || *percent > 100) {
    throw InvalidInput("--jitter: give a percentage from 0% to 100%, such as 3%");
  }
  return *percent / 100;
}

// Rounds an estimate: further digits are below its error.
double rounded(double value) {
  return std::floor(value * 100 + 0.5) / 100;
}

ExitStatus value(Session& session, const Options& options) {
  const double jitter = options.jitter ? jitter_fraction(*options.jitter) : 0;
  if (options.estimate && (options.at || options.current))
    throw InvalidInput("--estimate cannot be combined with --at or --current: it covers the time until now");
  if (options.at && options.current) throw InvalidInput("--current and --at cannot be combined");
  Visitors visitors = visitors_of(session, options, false);
  if (options.current) visitors.use_period_at(session.clock().wall());
  const Visitors::Value value = visitors.value();
  JsonObject answer("visitors", options.name);
  answer.number("value", value.visitors);
  std::string bare = std::to_string(value.visitors);
  period_fields(answer, visitors, value.period_started_at);
  answer.number("current", value.current);
  double shown = static_cast<double>(value.visitors);
  if (options.estimate) {
    shown = value.estimate();
    answer.real("estimate", rounded(shown)).real("standard_error", rounded(value.standard_error()));
    bare = std::to_string(static_cast<std::uint64_t>(shown + 0.5));
  }
  if (options.jitter) {
    const std::uint64_t display = visitors.jittered(shown, jitter);
    answer.number("display", display);
    bare = std::to_string(display);
  }
  answer_from(session, answer, {value.server}, bare);
  return ExitStatus::ok;
}

ExitStatus drop(Session& session, const Options& options) {
  return answer_dropped(session, JsonObject("visitors", options.name),
                        [&] { return Visitors::drop(context_of(session), options.name); });
}

ExitStatus where(Session& session, const Options& options) {
  return print_where(session, visitors_of(session, options, false).keys(), 1);
}

}  // namespace

void declare_visitors(Command& command) {
  command.exits(
      "1 drop: there was none|65 a line of input is not a valid id, or the key holds something else|69|76|80 "
      "the visit may or may not have been counted");
  auto options = std::make_shared<Options>();
  command.verb("hit", "count one visit in the running period", hit, options)
      .answer("visitors id? counted current? period_s period_started_at lost_or_dropped? server")
      .field("id bytes the visitor")
      .example("mcds visitors hit site")
      .example("mcds visitors hit shop --id \"$SESSION\" --period 1h")
      .example("cut -d' ' -f1 access.log | mcds visitors hit site --id -")
      .with(common_options, options, "5m")
      .option("--id", "VISITOR", "count this visitor, any bytes, once per period; - reads one id per line",
              dash(&options->id))
      .option("--at", "T", "when the visit was: in the running period or the last one; default now",
              &options->at);

  command.verb("value", "print the count of the last full period", value, options)
      .answer("visitors value period_s period_started_at current estimate? standard_error? display? server")
      .field("value integer the count of that period")
      .field("estimate number estimated visits in the last D")
      .example("mcds visitors value site")
      .example("mcds visitors value site --estimate")
      .example("mcds visitors value site --jitter 3% -o value")
      .with(common_options, options, "the one in use, else 5m")
      .flag("--current", "print the count of the running period instead; not with --at", options->current)
      .option("--at", "T", "print the count of the period that contains T, the running one or the last",
              &options->at)
      .flag("--estimate", "also estimate the visits in the last D, with the standard error of the estimate",
            options->estimate)
      .option("--jitter", "P%",
              "also print the number with normally distributed noise of P percent, for a display that should "
              "not appear frozen",
              &options->jitter);

  command.verb("drop", "remove the counts of this and the last period", drop, options)
      .example("mcds visitors drop site")
      .answer("visitors @dropped")
      .argument("NAME", "the visitors", &options->name);

  command.verb("where", "print the keys of this and the last period, and their servers", where, options)
      .answer("@where")
      .example("mcds visitors where site")
      .with(common_options, options, "the one in use, else 5m");
}

}  // namespace mcds
