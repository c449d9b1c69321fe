// mcds counter limit.
#include "common/structures/counter/counter.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

namespace {

struct LimitOptions {
  std::string name;
  std::optional<std::uint64_t> max;
  Duration period{};
  std::uint64_t cost = 1;
  bool sliding = false, peek = false, whole_key = false;
  std::string wait;
  std::string if_down;
};

// Waiters that are allowed at the same moment do not ask all at once.
constexpr Duration longest_jitter = std::chrono::milliseconds(50);

// One use, or lines of them.
class Limiter {
 public:
  Limiter(Session& session, const LimitOptions& options)
      : session_(session),
        options_(options),
        counter_(options.sliding || options.whole_key
                     ? context_with_one_copy(session, options.sliding ? "--sliding" : "--key")
                     : session.context_with_copies(),
                 options.whole_key ? Counter::Names::whole_keys : Counter::Names::counters) {
    if (!options.max) throw InvalidInput("--max: give the number of uses allowed in one period");
    if (options.period <= Duration::zero()) throw InvalidInput("--per: give a period longer than 0");
    rule_ = {*options.max, options.period, options.sliding, options.peek};
    if (options.wait.empty()) return;
    if (options.name == "-") throw InvalidInput("--wait: give one NAME; lines of standard input do not wait");
    if (options.peek) throw InvalidInput("--wait waits for a use; --peek counts none");
    wait_ = options.wait == "inf" ? Duration::max() : parse_duration(options.wait, "--wait");
    if (session.deadline() != SteadyTime::max())
      wait_ = std::min(wait_, session.deadline() - session.clock().steady());
  }

  // Throws what keeps it from being answered, unless --if-down answers.
  ExitStatus answer(const LimitUse& use) {
    counter_.check_limit(use, rule_);
    const SteadyTime began = session_.clock().steady();
    Duration waited{};
    for (;;) {
      const LimitResult result = counter_.limit(std::span(&use, 1), rule_).front();
      waited = session_.clock().steady() - began;
      const auto pause = pause_after(result, wait_ - waited);
      if (!pause) return conclude(use.name, result, waited);
      session_.clock().sleep_for(*pause);
    }
  }

  Batch<LimitUse> batch() {
    Batch<LimitUse> batch;
    batch.parse = [this](std::string line) -> std::optional<LimitUse> {
      if (line.empty()) return std::nullopt;
      NamedNumber use = name_and_number(std::move(line), options_.cost, "NAME or NAME COST");
      counter_.check_limit({use.name, use.number}, rule_);
      return LimitUse{std::move(use.name), use.number};
    };
    batch.run = [this](const Window<LimitUse>& window) {
      const auto results = counter_.limit(window.items, rule_);
      for (std::size_t i = 0; i < results.size(); ++i) {
        if (results[i].failure && !answers_despite(*results[i].failure))
          window.fail(i, *results[i].failure);
        else
          window.note(print(window.items[i].name, results[i]));
      }
    };
    return batch;
  }

 private:
  // Whether --if-down answers for the server.
  bool answers_despite(const Failure& failure) const {
    return may_pass(failure.code()) && !options_.if_down.empty();
  }

  // nullopt: this is the answer. A use that would be allowed only later than that is not waited for.
  std::optional<Duration> pause_after(const LimitResult& result, Duration left) {
    const bool contended = result.failure && result.failure->code() == ErrorCode::try_again;
    if (result.allowed || (result.failure && !contended) || result.retry_after >= left) return std::nullopt;
    const Duration most = std::min(longest_jitter, rule_.period / 4);
    const auto jitter = session_.random().below(static_cast<std::uint64_t>(most.count()) + 1);
    return std::min(left, result.retry_after + Duration(static_cast<Duration::rep>(jitter)));
  }

  ExitStatus conclude(const std::string& name, const LimitResult& result, Duration waited) {
    if (result.failure && !answers_despite(*result.failure)) raise(*result.failure);
    return print(name, result, options_.wait.empty() ? std::nullopt : std::optional(waited));
  }

  ExitStatus print(const std::string& name, const LimitResult& result, std::optional<Duration> waited = {}) {
    if (result.failure) return print_despite(name, *result.failure);
    JsonObject line("counter", name);
    line.boolean("allowed", result.allowed).number("used", result.used).number("max", *options_.max);
    if (options_.peek) line.boolean("peek", true);
    if (waited) add_seconds(line, "waited_s", std::chrono::floor<std::chrono::milliseconds>(*waited));
    if (!result.allowed)
      add_seconds(line, "retry_after_s", std::chrono::ceil<std::chrono::milliseconds>(result.retry_after));
    return answer_yes_from(session_, line, {.server = result.server, .copies = result.copies, .or_one = true},
                           result.allowed);
  }

  ExitStatus print_despite(const std::string& name, const Failure& failure) {
    const bool allowed = options_.if_down == "allow";
    JsonObject line("counter", name);
    line.boolean("allowed", allowed).number("max", *options_.max).bytes("if_down", options_.if_down);
    if (!failure.server().empty()) line.bytes("server", failure.server());
    return answer_yes(session_, line.bytes("error", failure.what()), allowed);
  }

  Session& session_;
  const LimitOptions& options_;
  LimitRule rule_;
  Duration wait_{};
  Counter counter_;
};

ExitStatus limit(Session& session, const LimitOptions& options) {
  Limiter limiter(session, options);
  const Batch<LimitUse> batch = limiter.batch();
  if (options.name == "-") return batch.of_lines(session, {}).worst;
  return limiter.answer({options.name, options.cost});
}

}  // namespace

void declare_counter_limit(Command& counter) {
  const auto options = std::make_shared<LimitOptions>();
  counter.verb("limit", "allow at most N uses per period; exit 1 over the limit", limit, options)
      .answer("counter allowed used max peek? waited_s? retry_after_s? server @copies")
      .answer("counter allowed max if_down server? error")
      .example("mcds counter limit mail:user7 --max 5 --per 1h && send-mail user7")
      .example("mcds counter limit login:10.1.2.3 --sliding --max 5 --per 1m --if-down deny")
      .example("mcds counter limit api --max 9 --per 1s -w 1m && curl https://api.example/")
      .example("cut -f1 clients | mcds counter limit - --max 100 --per 1m --peek")
      .argument("NAME", "what is limited; - reads NAME[ COST] lines", dash(&options->name))
      .option("--max", "N", "uses allowed in one period", &options->max)
      .option("--per", "D", "the period; windows are aligned to it unless they slide", &options->period)
      .option("-w,--wait", "D",
              "wait so long until it is allowed, or inf; a use that is allowed only later is denied at once",
              &options->wait)
      .option("--cost", "K", "how much this use counts; default 1", &options->cost)
      .flag("--sliding", "never more than N in any period, wherever it begins", options->sliding)
      .flag("--peek", "only look: count nothing", options->peek)
      .choice("--if-down", "allow|deny", "the answer when the server gives none; otherwise an error",
              &options->if_down)
      .flag("--key", "NAME is a whole memcached key: an application's own counter", options->whole_key);
}

}  // namespace mcds
