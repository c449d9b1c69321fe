// Counts the uses of a limit: in aligned windows by one counter each, or in a sliding window by one record.
#include <unordered_map>

#include "common/base/bytes.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/structures/counter/replicated.hpp"
#include "common/structures/counter/sliding.hpp"

namespace mcds {

namespace {

using std::chrono::milliseconds;

}  // namespace

// Counts uses as of one moment.
class Counter::Limiting {
 public:
  Limiting(const Counter& counter, const LimitRule& rule)
      : counter_(counter),
        context_(counter.context_),
        rule_(rule),
        period_(std::chrono::duration_cast<milliseconds>(rule.period)),
        now_(context_.clock.wall()) {
    const auto window = now_.time_since_epoch() / period_;
    prefix_ = ":limit:" + std::to_string(period_.count()) + ':';
    window_ = prefix_ + std::to_string(window);
    end_ = WallTime((window + 1) * period_);
  }

  // Counts one use. A denied use is not counted, so the answer states the uses that it would have made. Two
  // clients that counted first on different copies see both uses when they write the copies back, and take
  // their own back if the sum is too large.
  LimitResult ask(const LimitUse& use) const {
    if (rule_.sliding) return slide(use);
    const auto copies = [&] { return CounterCopies::of(counter_, use.name, window_); };
    if (rule_.peek) {
      CounterAnswer seen = copies()->get();
      const std::uint64_t used = std::min(seen.value, rule_.max);
      return {use.cost <= rule_.max - used, used, end_ - now_, seen.server, std::move(seen.copies)};
    }
    const auto added = [&](bool, std::uint64_t used) {
      if (is_late()) throw too_slow(use);
      return used + use.cost <= rule_.max ? std::optional(use.cost) : std::nullopt;
    };
    auto counted = copies()->count(added, {.ttl = end_of_key() - now_});
    if (!counted.made) counted.value += use.cost;
    if (counted.made && counted.in_all > rule_.max) {
      const auto taken_back = [&](bool exists, std::uint64_t) {
        return exists ? std::optional(std::uint64_t{0} - use.cost) : std::nullopt;
      };
      copies()->count(taken_back, {});
      counted.value = counted.in_all;
    }
    return result(use, std::move(counted));
  }

  // Counts uses[which] in one trip. Uses of one name must not depend on each other's denial.
  void count(std::span<const LimitUse> uses, std::span<const std::size_t> which,
             std::span<LimitResult> results) const {
    const Exptime exptime = Exptime::at(end_of_key(), now_);
    std::vector<Request> requests;
    requests.reserve(which.size());
    for (const std::size_t i : which)
      requests.push_back(Request::incr_or_create(counter_.key_of(uses[i].name) + window_, uses[i].cost,
                                                 uses[i].cost, exptime));
    const std::vector<Reply> replies = context_.cluster.execute(requests);
    // A denied use must not use up what a smaller one, or one of a higher limit, could have. A lost refund
    // only denies more uses.
    std::vector<Request> refunds;
    std::vector<std::size_t> created;
    for (std::size_t k = 0; k < which.size(); ++k) {
      const std::size_t i = which[k];
      capture_failure(results[i], [&] {
        const auto counted = counter_.counted(uses[i].name, replies[k]);
        if (!counted) counter_.fail(uses[i].name, replies[k]);
        if (counted->created && counter_.has_copy_counts()) created.push_back(i);
        return result(uses[i], *counted);
      });
      if (!results[i].failure && !results[i].allowed)
        refunds.push_back(Request::decr(requests[k].key, uses[i].cost));
    }
    if (!refunds.empty()) context_.cluster.execute(refunds);
    counter_.fibers(created.size(), [&](std::size_t k, Counter& counter) {
      const std::string& name = uses[created[k]].name;
      const auto is_of_it = [&](std::size_t i) { return uses[i].name == name; };
      const auto here = attempt([&] {
        expect_only_here(counter.context_, name, [&] {
          std::uint64_t sum = 0;
          // A denied use was given back; one that failed may still be counted.
          for (const std::size_t i : which)
            sum += is_of_it(i) && (results[i].failure || results[i].allowed) ? uses[i].cost : 0;
          return sum;
        });
      });
      for (const std::size_t i : which) {
        if (here.failure() && is_of_it(i)) results[i].failure = here.failure();
      }
    });
  }

 private:
  // Throws if a window begun by `ours()` uses also exists with another number of copies, after removing it.
  template <typename Ours>
  void expect_only_here(const Context& context, const std::string& name, const Ours& ours) const {
    const CopyCountGuard guard = Counter::guard(context, name, window_);
    const auto other = guard.find_other_count();
    if (!other) return;
    const Request get = Request::gets(counter_.key_of(name) + window_);
    const auto is_ours = [&](std::size_t, const Reply& there) {
      return parse_padded_u64(there.value) == ours();
    };
    guard.refuse_creation(*other,
                          [&] { return remove_created(context.cluster, std::span(&get, 1), is_ours); });
  }

  // Returns when the key expires. The window is in the key, so that it outlives the window by a guard for
  // skew and ticks is harmless.
  WallTime end_of_key() const { return end_ + std::chrono::seconds(2) + period_ / 2; }

  // Returns true if the key may have expired before the request arrived. Such a late answer allows nothing.
  bool is_late() const { return context_.clock.wall() >= end_ + period_ / 2; }
  Contention too_slow(const LimitUse& use) const {
    return Contention(
        "the server answers too slowly for a window of this length, so nothing is allowed; use a longer "
        "--per",
        context_.cluster.address_of(context_.cluster.placement().server_of(counter_.key_of(use.name))));
  }

  LimitResult result(const LimitUse& use, CounterAnswer counted) const {
    const bool late = is_late();
    const bool allowed = counted.value <= rule_.max;
    if (allowed && late) throw too_slow(use);
    return {.allowed = allowed,
            .used = allowed ? counted.value : std::min(counted.value - use.cost, rule_.max),
            .retry_after = late ? Duration(0) : end_ - now_,
            .server = counted.server,
            .copies = std::move(counted.copies)};
  }

  LimitResult slide(const LimitUse& use) const {
    const SlidingLimit limit{rule_.max, period_};
    const std::string key = Counter(context_.in_copies(1)).key_of(use.name) + prefix_ + "sliding";
    std::optional<milliseconds> too_late;  // counted, but the answer came after that
    const SteadyTime over = context_.clock.steady() + period_;
    for (;;) {
      SlidingUses::Answer answer;
      SteadyTime asked;
      const auto decide = [&](const Observed& observed) -> std::optional<Write> {
        auto uses = observed.found ? SlidingUses::parse(observed.value) : SlidingUses();
        if (!uses)
          throw CorruptData(
              "the key " + key +
                  " holds another program's data, not a rate limit; use another name or remove the key",
              context_.cluster.address_of(observed.server));
        if (too_late) uses->withdraw(*too_late, use.cost);
        asked = context_.clock.steady();
        const WallTime now = uses->corrected(limit, context_.clock.wall(), observed.ttl);
        answer = uses->ask(limit, now, use.cost);
        if (rule_.peek || (!answer.allowed && !too_late)) return std::nullopt;
        if (answer.allowed && asked >= over) throw too_slow(use);
        const WallTime newest(uses->newest());
        return Write{uses->text(), Exptime::at(std::max(newest, now) + limit.kept(), now)};
      };
      const std::size_t server = cas_update(context_, key, decide).server;
      const bool in_time = context_.clock.steady() - asked <= limit.slack();
      if (answer.allowed && !rule_.peek) answer.used += use.cost;
      if (in_time || rule_.peek || !answer.allowed)
        return {answer.allowed, answer.used, answer.retry_after, server};
      too_late = answer.stored_at;
    }
  }

  const Counter& counter_;
  const Context& context_;
  const LimitRule& rule_;
  milliseconds period_;
  WallTime now_, end_;
  std::string prefix_, window_;  // what follows a counter's key: for any window, for this one
};

void Counter::check_limit(const LimitUse& use, const LimitRule& rule) const {
  check_counter_value(rule.max, "--max");
  if (use.cost == 0 || use.cost > rule.max)
    throw InvalidInput("--cost must be at least 1 and at most --max; a higher cost is never allowed");
  if (rule.period < milliseconds(1)) throw InvalidInput("--per must be at least 1ms");
  if (key_of(use.name).size() > 200)
    throw InvalidInput("the key is too long for a limit; at most 200 bytes fit");
}

std::vector<LimitResult> Counter::limit(std::span<const LimitUse> uses, const LimitRule& rule) {
  const bool at_once = server_counts() && !rule.sliding && !rule.peek;
  // The uses of one round are counted concurrently. Two uses of one counter are in different rounds; they
  // may share one only if the server counts and both cost 1.
  std::vector<std::vector<std::size_t>> rounds;
  struct Last {
    std::size_t round;
    std::uint64_t cost;
  };
  std::unordered_map<std::string_view, Last> last_of;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const auto [at, first] = last_of.try_emplace(uses[i].name, Last{0, uses[i].cost});
    Last& last = at->second;
    const bool joins = at_once && last.round > 0 && last.cost == 1 && uses[i].cost == 1;
    if (!first) last = {last.round + (joins ? 0 : 1), uses[i].cost};
    if (last.round == rounds.size()) rounds.emplace_back();
    rounds[last.round].push_back(i);
  }
  std::vector<LimitResult> results(uses.size());
  for (const auto& round : rounds) {
    if (at_once) Limiting(*this, rule).count(uses, round, results);
    fibers(at_once ? 0 : round.size(), [&](std::size_t k, Counter& counter) {
      capture_failure(results[round[k]], [&] { return Limiting(counter, rule).ask(uses[round[k]]); });
    });
  }
  return results;
}

}  // namespace mcds
