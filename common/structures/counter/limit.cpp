// mcds counter limit: aligned windows, one counter each; and the sliding window, one record.
#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "common/base/bytes.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/primitives/key_names.hpp"
#include "common/structures/counter/copies.hpp"
#include "common/structures/counter/counter.hpp"
#include "common/structures/counter/failures.hpp"
#include "common/structures/counter/sliding.hpp"

namespace mcds {

namespace {

constexpr int late_attempts = 20;  // at an answer that comes in time

// The window is in the key: living on past its end by a guard for skew and ticks harms nobody.
template <typename Window>
WallTime end_of(const Window& window) {
  return window.end + std::chrono::seconds(2) + window.period / 2;
}

}  // namespace

void Counter::check_limit(const LimitUse& use, const LimitRule& rule) const {
  check_counter_value(rule.max, "--max");
  if (use.cost == 0 || use.cost > rule.max)
    throw InvalidInput("--cost must be at least 1 and at most --max; a higher cost is never allowed");
  if (rule.period < std::chrono::milliseconds(1)) throw InvalidInput("--per must be at least 1ms");
  if (key_of(use.name).size() > 200)
    throw InvalidInput("the key is too long for a limit; at most 200 bytes fit");
}

Counter::LimitWindow Counter::limit_window(Duration period) const {
  const auto period_ms = std::chrono::duration_cast<std::chrono::milliseconds>(period);
  const WallTime now = context_.clock.wall();
  const auto window = now.time_since_epoch() / period_ms;
  std::string suffix = ":limit:" + std::to_string(period_ms.count()) + ':' + std::to_string(window);
  return {std::move(suffix), WallTime((window + 1) * period_ms), now, period_ms};
}

LimitResult Counter::use_result(const LimitUse& use, const LimitRule& rule, const LimitWindow& window,
                                CounterValue uses) const {
  // An answer that took so long that the window's key may have expired before the request arrived allows
  // nothing.
  const bool late = context_.clock.wall() >= window.end + window.period / 2;
  const bool allowed = uses.value <= rule.max && !late;
  const std::uint64_t used = allowed ? uses.value : std::min(uses.value - use.cost, rule.max);
  return {.allowed = allowed,
          .used = used,
          .retry_after = late ? Duration(0) : window.end - window.now,
          .server = uses.server,
          .copies = std::move(uses.copies)};
}

// By its copies. What is denied is not counted, so the uses that it would make are said. Who counted first on
// different copies sees it on the one where both are told, and takes its own back.
LimitResult Counter::ask(const LimitUse& use, const LimitRule& rule) const {
  if (rule.sliding) return slide(use, rule);
  const LimitWindow window = limit_window(rule.period);
  CounterCopies copies(*this, use.name, window.suffix);
  if (rule.peek) {
    CounterReading seen = copies.get();
    CounterValue uses = seen.value.value_or(CounterValue{});
    const std::uint64_t used = std::min(uses.value, rule.max);
    return {use.cost <= rule.max - used, used, window.end - window.now, seen.server, std::move(uses.copies)};
  }
  const auto added = [&](bool, std::uint64_t used) {
    return used + use.cost <= rule.max ? std::optional(use.cost) : std::nullopt;
  };
  auto counted = copies.count(added, {.ttl = end_of(window) - window.now});
  if (!counted.made) counted.value.value += use.cost;
  if (counted.made && counted.in_all > rule.max) {
    const auto taken_back = [&](bool exists, std::uint64_t) {
      return exists ? std::optional(std::uint64_t{0} - use.cost) : std::nullopt;
    };
    CounterCopies(*this, use.name, window.suffix).count(taken_back, {});
    counted.value.value = counted.in_all;
  }
  return use_result(use, rule, window, std::move(counted.value));
}

std::vector<LimitResult> Counter::count_uses(std::span<const LimitUse> uses, const LimitRule& rule) {
  const LimitWindow window = limit_window(rule.period);
  const Exptime exptime = Exptime::at(end_of(window), window.now);
  std::vector<Request> requests;
  requests.reserve(uses.size());
  for (const LimitUse& use : uses)
    requests.push_back(
        Request::incr_or_create(key_of(use.name) + window.suffix, use.cost, use.cost, exptime));
  const std::vector<Reply> replies = context_.cluster.execute(requests);
  std::vector<LimitResult> results(uses.size());
  // A refused large cost must not use up what smaller ones could have. Lost, this only denies more.
  std::vector<Request> refunds;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const Reply& reply = replies[i];
    keep_failure(results[i], [&] {
      if (!is_stored(reply)) fail_counter(context_, uses[i].name, reply);
      results[i] = use_result(uses[i], rule, window, {reply.number, reply.created, false, reply.server});
      if (!results[i].allowed && uses[i].cost > 1)
        refunds.push_back(Request::decr(requests[i].key, uses[i].cost));
    });
  }
  if (!refunds.empty()) context_.cluster.execute(refunds);
  expect_new_windows_here(uses, window, replies, results);
  return results;
}

// Nobody counts the same uses with copies.
void Counter::expect_new_windows_here(std::span<const LimitUse> uses, const LimitWindow& window,
                                      std::span<const Reply> replies, std::span<LimitResult> results) const {
  std::vector<std::size_t> created;
  for (std::size_t i = 0; i < uses.size() && may_be_elsewhere(); ++i) {
    if (is_stored(replies[i]) && replies[i].created) created.push_back(i);
  }
  side_by_side(created.size(), [&](std::size_t i, Counter& counter) {
    const std::size_t use = created[i];
    keep_failure(results[use], [&] {
      Kept kept = Counter::kept(counter.context_, uses[use].name, window.suffix);
      for (const Kept::Place& place : kept.places(true)) {
        if (place != Kept::Place{}) kept.refuse(place.copies);
      }
    });
  });
}

std::vector<LimitResult> Counter::limit(std::span<const LimitUse> uses, const LimitRule& rule) {
  std::vector<LimitResult> results(uses.size());
  std::vector<std::size_t> left(uses.size());
  std::iota(left.begin(), left.end(), std::size_t{0});
  std::unordered_set<std::string_view> counted;
  const bool one_by_one = rule.sliding || rule.peek || !is_single();
  while (!left.empty()) {
    enum class Turn { open, over };  // whether more uses of the name, each of cost 1, may join this trip
    std::unordered_map<std::string_view, Turn> turns;
    std::vector<LimitUse> now;
    std::vector<std::size_t> of_now, later;
    for (const std::size_t i : left) {
      const LimitUse& use = uses[i];
      const bool small = use.cost == 1 && counted.contains(use.name) && !one_by_one;
      const auto [turn, first] = turns.try_emplace(use.name, Turn::open);
      const bool joins = first || (small && turn->second == Turn::open);
      if (!small || !joins) turn->second = Turn::over;
      if (joins) now.push_back(use);
      (joins ? of_now : later).push_back(i);
    }
    std::vector<LimitResult> done(now.size());
    if (!one_by_one) done = count_uses(now, rule);
    side_by_side(one_by_one ? now.size() : 0, [&](std::size_t i, Counter& counter) {
      keep_failure(done[i], [&] { done[i] = counter.ask(now[i], rule); });
    });
    for (std::size_t i = 0; i < done.size(); ++i) results[of_now[i]] = std::move(done[i]);
    for (const std::size_t i : of_now) counted.insert(uses[i].name);
    left = std::move(later);
  }
  return results;
}

LimitResult Counter::limit(const std::string& name, std::uint64_t max, Duration period, std::uint64_t cost) {
  const LimitUse use{name, cost};
  check_limit(use, {max, period});
  LimitResult result = std::move(limit(std::span(&use, 1), {max, period}).front());
  if (result.failure) raise(*result.failure);
  return result;
}

LimitResult Counter::slide(const LimitUse& use, const LimitRule& rule) const {
  const auto& [max, period, sliding, peek] = rule;
  const std::uint64_t cost = use.cost;
  const SlidingLimit limit{max, std::chrono::duration_cast<std::chrono::milliseconds>(period)};
  const std::string key =
      with_one_copy().key_of(use.name) + ":limit:" + std::to_string(limit.period.count()) + ":sliding";
  std::optional<std::chrono::milliseconds> too_late;  // counted, and the answer came after that
  for (int attempt = 0; attempt < late_attempts; ++attempt) {
    SlidingUses::Answer answer;
    SteadyTime asked;
    const auto decide = [&](const Observed& observed) -> std::optional<Write> {
      auto uses = observed.found ? SlidingUses::parse(observed.value) : SlidingUses();
      if (!uses)
        throw CorruptData(key + " holds something else than the uses of a limit",
                          context_.cluster.address_of(observed.server));
      if (too_late) uses->withdraw(*too_late, cost);
      asked = context_.clock.steady();
      const WallTime now = uses->corrected(limit, context_.clock.wall(), observed.ttl);
      answer = uses->ask(limit, now, cost);
      if (peek || (!answer.allowed && !too_late)) return std::nullopt;
      const WallTime newest(uses->newest());
      return Write{uses->text(), Exptime::at(std::max(newest, now) + limit.kept(), now)};
    };
    const CasUpdateResult result = cas_update(context_, key, decide);
    const bool in_time = context_.clock.steady() - asked <= limit.slack();
    if (in_time || peek || !answer.allowed)
      return {answer.allowed,
              answer.used + (answer.allowed && !peek ? cost : 0),
              answer.retry_after,
              result.server,
              {}};
    too_late = answer.stored_at;
  }
  throw Contention("the server answers too slowly for a window of this length; nothing is allowed",
                   context_.cluster.address_of(context_.cluster.placement().server_of(key)));
}

}  // namespace mcds
