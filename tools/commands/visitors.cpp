// mcds visitors: parsing and printing; the algorithm is in common/structures/visitors.hpp.
#include "common/structures/visitors.hpp"

#include <cmath>
#include <memory>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/units.hpp"
#include "tools/cli/copy_list.hpp"
#include "tools/cli/input.hpp"
#include "tools/cli/program.hpp"
#include "tools/cli/session.hpp"
#include "tools/cli/where_keys.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

namespace {

constexpr std::size_t ids_per_batch = 1000;

struct Options {
  std::string name;
  Duration period = std::chrono::minutes(5);
  std::optional<std::string> id;
  bool estimate = false;
  std::optional<std::string> jitter;
};

void common_options(Verb& verb, const std::shared_ptr<Options>& options) {
  verb.argument("NAME", "what is visited", &options->name)
      .option("--period", "D", "how long one count lasts, whole seconds; 5m without it", &options->period);
}

JsonObject start_answer(const Options& options) {
  JsonObject answer;
  answer.bytes("visitors", options.name);
  return answer;
}

void period_fields(JsonObject& answer, const Options& options, WallTime started) {
  answer.number("period_s", static_cast<std::uint64_t>(ceil_seconds(options.period)))
      .time("period_started_at", started);
}

void answer_hit(Session& session, const Options& options, const Visitors::Hit& hit,
                const std::optional<std::string>& id) {
  JsonObject answer = start_answer(options);
  if (id) answer.bytes("id", *id);
  answer.boolean("counted", hit.counted);
  if (hit.counted) answer.number("current", hit.current);
  period_fields(answer, options, hit.period_started_at);
  answer.bytes("server", session.server_address(hit.server));
  add_copies(answer, session, hit.copies);
  const std::string bare = id ? (hit.counted ? "1" : "0") : std::to_string(hit.current);
  session.output().answer(answer, bare);
}

// One batch of standard input's ids; the worst of its lines.
ExitStatus hit_batch(Session& session, const Options& options, Visitors& visitors,
                     const std::vector<std::string>& ids, std::size_t first_line) {
  ExitStatus worst = ExitStatus::ok;
  const auto hits = visitors.hit(ids);
  for (std::size_t i = 0; i < hits.size(); ++i) {
    try {
      if (hits[i].failure) std::rethrow_exception(hits[i].failure);
      answer_hit(session, options, hits[i], ids[i]);
    } catch (const Failure& failure) {
      if (failure.code() == ErrorCode::output_failed) throw;
      session.output().error(failure, first_line + i);
      worst = worse(worst, status_of(failure.code()));
    }
  }
  return worst;
}

ExitStatus hit_lines(Session& session, const Options& options, Visitors& visitors) {
  ExitStatus worst = ExitStatus::ok;
  LineReader lines;
  std::vector<std::string> ids;
  session.output().buffered(true);
  const auto send = [&] {
    if (ids.empty()) return;
    worst = worse(worst, hit_batch(session, options, visitors, ids, lines.number() + 1 - ids.size()));
    session.output().flush();
    ids.clear();
  };
  try {
    while (auto line = lines.next()) {
      ids.push_back(std::move(*line));
      if (ids.size() == ids_per_batch || !lines.ready()) send();
    }
  } catch (const Failure&) {
    send();
    throw;
  }
  send();
  return worst;
}

ExitStatus hit(Session& session, const Options& options) {
  Visitors visitors(session.context_with_copies(), options.name, options.period);
  if (!options.id) {
    answer_hit(session, options, visitors.hit(), std::nullopt);
  } else if (*options.id == "-") {
    return hit_lines(session, options, visitors);
  } else {
    const std::string id = value_of(*options.id);
    answer_hit(session, options, visitors.hit(id), id);
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

// Digits beyond the estimate's own error say nothing.
double rounded(double value) {
  return std::floor(value * 100 + 0.5) / 100;
}

ExitStatus value(Session& session, const Options& options) {
  const double jitter = options.jitter ? jitter_fraction(*options.jitter) : 0;
  Visitors visitors(session.context_with_copies(), options.name, options.period);
  const Visitors::Value value = visitors.value();
  JsonObject answer = start_answer(options);
  answer.number("value", value.visitors);
  std::string bare = std::to_string(value.visitors);
  period_fields(answer, options, value.period_started_at);
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
  answer.bytes("server", session.server_address(value.server));
  add_copies(answer, session, value.copies);
  session.output().answer(answer, bare);
  return ExitStatus::ok;
}

ExitStatus where(Session& session, const Options& options) {
  return print_where(session, Visitors(session.context_with_copies(), options.name, options.period).keys());
}

}  // namespace

void declare_visitors(Command& command) {
  auto options = std::make_shared<Options>();
  Verb& hit_verb = command.verb("hit", "count one visit in the running period");
  hit_verb.example("mcds visitors hit site")
      .example("mcds visitors hit site --id \"$SESSION\" --period 1h")
      .example("cut -d' ' -f1 access.log | mcds visitors hit site --id -");
  common_options(hit_verb, options);
  hit_verb
      .option("--id", "VISITOR", "count this visitor once per period; - reads one id per line", &options->id)
      .action([options](Session& session) { return hit(session, *options); });

  Verb& value_verb = command.verb("value", "the count of the last full period");
  value_verb.example("mcds visitors value site")
      .example("mcds visitors value site --estimate")
      .example("mcds visitors value site --jitter 3% -o value");
  common_options(value_verb, options);
  value_verb
      .flag("--estimate", "also the visits of the last D, interpolated, with their standard error",
            options->estimate)
      .option("--jitter", "P%", "also a number with normal noise of P percent, for display", &options->jitter)
      .action([options](Session& session) { return value(session, *options); });

  Verb& where_verb = command.verb("where", "the keys of this and the last period, and their servers");
  where_verb.example("mcds visitors where site");
  common_options(where_verb, options);
  where_verb.action([options](Session& session) { return where(session, *options); });
}

}  // namespace mcds
