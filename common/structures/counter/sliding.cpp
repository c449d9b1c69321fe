#include "common/structures/counter/sliding.hpp"

#include <algorithm>
#include <span>

#include "common/base/bytes.hpp"
#include "common/primitives/seal.hpp"

namespace mcds {

namespace {

using std::chrono::milliseconds;
using std::chrono_literals::operator""ms;

constexpr std::string_view mark = "S1";
constexpr std::uint64_t max_exact = 1000;

// Returns the distance between times that are kept apart.
std::int64_t step_of(const SlidingLimit& limit) {
  if (limit.max <= max_exact) return 1;
  return std::max<std::int64_t>(1, limit.period.count() / static_cast<std::int64_t>(max_exact));
}

std::int64_t rounded_up(std::int64_t time, std::int64_t step) {
  return (time + step - 1) / step * step;
}

}  // namespace

milliseconds SlidingLimit::slack() const {
  return std::clamp(period / 20, 2ms, 1000ms);
}

std::optional<SlidingUses> SlidingUses::parse(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  const auto body = unseal(text);
  if (!body) return std::nullopt;
  const auto words = split(*body, ' ');
  if (words.front() != mark) return std::nullopt;
  SlidingUses uses;
  for (std::string_view word : std::span(words).subspan(1)) {
    const auto time = parse_i64(take_word(word, ':'));
    const auto count = parse_u64(word);
    if (!time || !count) return std::nullopt;
    uses.uses_[*time] += *count;
  }
  return uses;
}

std::string SlidingUses::text() const {
  std::string body(mark);
  for (const auto& [time, count] : uses_)
    append_all(body, {" ", std::to_string(time), ":", std::to_string(count)});
  return seal(body);
}

SlidingUses::Answer SlidingUses::ask(const SlidingLimit& limit, WallTime now, std::uint64_t cost) {
  // The added millisecond is needed because the clock is cut to whole milliseconds.
  const std::int64_t slack = limit.slack().count() + 1;
  const std::int64_t step = step_of(limit);
  std::int64_t at = std::chrono::floor<milliseconds>(now).time_since_epoch().count();
  if (!uses_.empty()) at = std::max(at, uses_.rbegin()->first - slack - (step - 1));
  const std::int64_t period = limit.period.count();
  uses_.erase(uses_.begin(), uses_.upper_bound(at - period));
  Answer answer;
  for (const auto& use : uses_) answer.used += use.second;
  answer.allowed = answer.used <= limit.max && cost <= limit.max - answer.used;
  if (answer.allowed) {
    answer.stored_at = milliseconds(rounded_up(at + slack, step));
    uses_[answer.stored_at.count()] += cost;
    return answer;
  }
  std::uint64_t left = answer.used;
  for (const auto& [time, count] : uses_) {
    left -= count;
    answer.retry_after = milliseconds(time + period - at);
    if (left <= limit.max && cost <= limit.max - left) break;
  }
  return answer;
}

// Both the stored and the remaining ttl are rounded to seconds. The stored one counts from the newest use,
// whose time is up to a slack after its writer's clock, or from that clock if it is later.
WallTime SlidingUses::corrected(const SlidingLimit& limit, WallTime now,
                                std::optional<std::chrono::seconds> ttl) const {
  if (!ttl || ttl->count() < 0 || uses_.empty()) return now;
  const milliseconds gone = std::chrono::ceil<std::chrono::seconds>(limit.kept()) - *ttl;
  const milliseconds early = 1000ms + limit.slack() + milliseconds(step_of(limit)), late = 3000ms;
  return std::clamp(now, WallTime(newest() + gone - early), WallTime(newest() + gone + late));
}

void SlidingUses::withdraw(milliseconds stored_at, std::uint64_t cost) {
  const auto found = uses_.find(stored_at.count());
  if (found == uses_.end()) return;
  found->second -= std::min(found->second, cost);
  if (found->second == 0) uses_.erase(found);
}

milliseconds SlidingUses::newest() const {
  return uses_.empty() ? 0ms : milliseconds(uses_.rbegin()->first);
}

}  // namespace mcds
