#include "tools/commands/counter_limit.hpp"

#include <memory>

#include "common/base/bytes.hpp"
#include "common/structures/counter/counter.hpp"
#include "tools/cli/copy_list.hpp"
#include "tools/cli/line_batch.hpp"
#include "tools/cli/session.hpp"

namespace mcds {

namespace {

struct LimitOptions {
  std::string name;
  std::optional<std::uint64_t> max;
  Duration period{};
  std::uint64_t cost = 1;
  bool sliding = false, peek = false, whole_key = false, fail_fast = false;
  std::string if_down;
};

// One use, or one line of them.
class Limiter {
 public:
  Limiter(Session& session, const LimitOptions& options)
      : session_(session),
        options_(options),
        counter_(session.context_with_copies(),
                 options.whole_key ? Counter::Names::whole_keys : Counter::Names::counters) {
    if (!options.max) throw InvalidInput("--max: give the number of uses allowed in one period");
    if (options.period <= Duration::zero()) throw InvalidInput("--per: give a period longer than 0");
  }

  // Throws what keeps it from being answered, unless --if-down answers.
  ExitStatus answer(const std::string& name, std::uint64_t cost) {
    try {
      return print(name, ask(name, cost));
    } catch (const Failure& failure) {
      const bool nobody = failure.code() == ErrorCode::unavailable ||
                          failure.code() == ErrorCode::unknown_outcome ||
                          failure.code() == ErrorCode::refused || failure.code() == ErrorCode::try_again;
      if (options_.if_down.empty() || !nobody) throw;
      return print_despite(name, failure);
    }
  }

 private:
  LimitResult ask(const std::string& name, std::uint64_t cost) {
    if (options_.sliding)
      return counter_.limit_sliding(name, *options_.max, options_.period, cost, options_.peek);
    return options_.peek ? counter_.peek_limit(name, *options_.max, options_.period, cost)
                         : counter_.limit(name, *options_.max, options_.period, cost);
  }

  ExitStatus print(const std::string& name, const LimitResult& result) {
    JsonObject line = start(name, result.allowed);
    line.number("used", result.used).number("max", *options_.max);
    if (options_.peek) line.boolean("peek", true);
    if (!result.allowed)
      line.real(
          "retry_after_s",
          static_cast<double>(std::chrono::ceil<std::chrono::milliseconds>(result.retry_after).count()) /
              1000.0);
    line.bytes("server", session_.server_address(result.server));
    add_copies(line, session_, result.copies);
    return finish(line, result.allowed);
  }

  ExitStatus print_despite(const std::string& name, const Failure& failure) {
    const bool allowed = options_.if_down == "allow";
    JsonObject line = start(name, allowed);
    line.number("max", *options_.max).bytes("if_down", options_.if_down);
    if (!failure.server().empty()) line.bytes("server", failure.server());
    line.bytes("error", failure.what());
    return finish(line, allowed);
  }

  static JsonObject start(const std::string& name, bool allowed) {
    JsonObject line;
    line.bytes("counter", name).boolean("allowed", allowed);
    return line;
  }

  ExitStatus finish(const JsonObject& line, bool allowed) {
    session_.output().answer(line, allowed ? "1" : "0");
    return allowed ? ExitStatus::ok : ExitStatus::no;
  }

  Session& session_;
  const LimitOptions& options_;
  Counter counter_;
};

// `NAME` or `NAME COST`: one answer per line, in their order.
class LimitLines final : public LineBatch {
 public:
  LimitLines(Session& session, const LimitOptions& options)
      : LineBatch(session, options.fail_fast, Answers::each_line),
        cost_(options.cost),
        limiter_(session, options) {}

 private:
  void take(std::string line) override {
    if (line.empty()) return;
    const std::size_t space = line.find_first_of(" \t");
    std::uint64_t cost = cost_;
    if (space != std::string::npos) {
      const std::size_t number = line.find_first_not_of(" \t", space);
      const auto given = parse_u64(std::string_view(line).substr(std::min(number, line.size())));
      if (!given)
        throw Failure(ErrorCode::bad_data,
                      "the text after the name is not a whole number; write NAME or NAME COST");
      cost = *given;
      line.resize(space);
    }
    note(checked([&] { return limiter_.answer(line, cost); }));
  }
  void send() override {}

  std::uint64_t cost_;
  Limiter limiter_;
};

ExitStatus limit(Session& session, const LimitOptions& options) {
  if (options.name == "-") return LimitLines(session, options).run();
  return Limiter(session, options).answer(options.name, options.cost);
}

}  // namespace

void declare_counter_limit(Command& counter) {
  const auto options = std::make_shared<LimitOptions>();
  counter.verb("limit", "allow at most N uses per period; exit 1 over the limit")
      .example("mcds counter limit mail:user7 --max 5 --per 1h && send-mail user7")
      .example("mcds counter limit login:10.1.2.3 --sliding --max 5 --per 1m --if-down deny")
      .example("cut -f1 clients | mcds counter limit - --max 100 --per 1m --peek")
      .argument("NAME", "what is limited; - reads NAME[ COST] lines", &options->name)
      .dash()
      .option("--max", "N", "uses allowed in one period", &options->max)
      .option("--per", "D", "the period; windows are aligned to it unless they slide", &options->period)
      .option("--cost", "K", "how much this use counts; default 1", &options->cost)
      .flag("--sliding", "never more than N in any period, wherever it begins", options->sliding)
      .flag("--peek", "only look: count nothing", options->peek)
      .choice("--if-down", {"allow", "deny"}, "the answer when the server gives none; otherwise an error",
              &options->if_down)
      .flag("--fail-fast", "stop a batch at the first failed line", options->fail_fast)
      .flag("--key", "NAME is a whole memcached key: an application's own counter", options->whole_key)
      .action([options](Session& session) { return limit(session, *options); });
}

}  // namespace mcds
