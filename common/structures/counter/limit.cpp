// mcds counter limit: aligned windows, one counter each; and the sliding window, one record.
#include <algorithm>

#include "common/base/bytes.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/primitives/key_names.hpp"
#include "common/structures/counter/counter.hpp"
#include "common/structures/counter/failures.hpp"
#include "common/structures/counter/sliding.hpp"

namespace mcds {

namespace {

constexpr int late_attempts = 20;  // at an answer that comes in time

}  // namespace

void Counter::check_limit(const std::string& name, std::uint64_t max, Duration period,
                          std::uint64_t cost) const {
  check_counter_value(max, "--max");
  if (cost == 0 || cost > max)
    throw InvalidInput("--cost must be at least 1 and at most --max; a higher cost is never allowed");
  if (period < std::chrono::milliseconds(1)) throw InvalidInput("--per must be at least 1ms");
  if (key_of(name).size() > 200) throw InvalidInput("the key is too long for a limit; at most 200 bytes fit");
}

Counter::LimitWindow Counter::limit_window(const std::string& name, Duration period) const {
  const auto period_ms = std::chrono::duration_cast<std::chrono::milliseconds>(period);
  const WallTime now = context_.clock.wall();
  const auto window = now.time_since_epoch() / period_ms;
  std::string key =
      key_of(name) + ":limit:" + std::to_string(period_ms.count()) + ':' + std::to_string(window);
  return {std::move(key), WallTime((window + 1) * period_ms), now, period_ms};
}

LimitResult Counter::limit(const std::string& name, std::uint64_t max, Duration period, std::uint64_t cost) {
  check_limit(name, max, period, cost);
  const LimitWindow window = limit_window(name, period);
  // The window is in the key: living on past its end by a guard for skew and ticks harms nobody.
  const Exptime exptime = Exptime::at(window.end + std::chrono::seconds(2) + window.period / 2, window.now);
  const auto replies = execute_copies(context_, Request::incr_or_create(window.key, cost, cost, exptime));
  if (std::none_of(replies.begin(), replies.end(), is_stored)) fail_counter(context_, name, telling(replies));
  CounterValue uses = best_of(replies);
  // An answer that took so long that the window's key may have expired before the request arrived allows
  // nothing.
  const bool late = context_.clock.wall() >= window.end + window.period / 2;
  const bool allowed = uses.value <= max && !late;
  // A refused large cost must not use up what smaller ones could have. Lost, this only denies more.
  if (!allowed && cost > 1) execute_copies(context_, Request::decr(window.key, cost));
  const std::uint64_t used = allowed ? uses.value : std::min(uses.value - cost, max);
  return {allowed, used, late ? Duration(0) : window.end - window.now, uses.server, std::move(uses.copies)};
}

LimitResult Counter::peek_limit(const std::string& name, std::uint64_t max, Duration period,
                                std::uint64_t cost) {
  check_limit(name, max, period, cost);
  const LimitWindow window = limit_window(name, period);
  const auto replies = execute_copies(context_, Request::get(window.key));
  std::uint64_t used = 0;
  bool answered = false;
  for (const Reply& reply : replies) {
    answered = answered || !reply.failed();
    if (reply.outcome == Outcome::hit) used = std::max(used, parse_u64(reply.value).value_or(0));
  }
  if (!answered) expect(context_.cluster, telling(replies));
  used = std::min(used, max);
  return {cost <= max - used, used, window.end - window.now, replies.front().server,
          copy_outcomes(context_, replies)};
}

LimitResult Counter::limit_sliding(const std::string& name, std::uint64_t max, Duration period,
                                   std::uint64_t cost, bool peek) {
  check_limit(name, max, period, cost);
  refuse_with_copies("limit --sliding");
  const SlidingLimit limit{max, std::chrono::duration_cast<std::chrono::milliseconds>(period)};
  const std::string key = key_of(name) + ":limit:" + std::to_string(limit.period.count()) + ":sliding";
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
