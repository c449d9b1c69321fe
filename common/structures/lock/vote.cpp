#include "common/structures/lock/vote.hpp"

#include <algorithm>

#include "common/base/bytes.hpp"
#include "common/base/units.hpp"

namespace mcds {

namespace {

// What a server holds a lock longer than its ttl, and the tick of its uptime, which may be a second late.
constexpr std::uint64_t guard_s = 5;

std::optional<std::uint64_t> uptime_in(std::string_view stats) {
  for (const std::string_view line : split(stats, '\n')) {
    if (line.starts_with("uptime ")) return parse_u64(line.substr(7));
  }
  return std::nullopt;
}

}  // namespace

LockVote::LockVote(std::size_t server, const std::string& key_prefix, Duration longest_ttl,
                   const Clock& clock)
    : server_(server),
      sentinel_(key_prefix + "lockserver:votes:" + std::to_string(ceil_seconds(longest_ttl))),
      clock_(clock),
      uptime_needed_s_(static_cast<std::uint64_t>(ceil_seconds(longest_ttl)) + guard_s) {}

LockVote LockVote::of_only_server(std::size_t server, const Clock& clock) {
  LockVote vote(server, {}, Duration::zero(), clock);
  vote.votes_ = true;
  vote.step_ = Step::settled;
  return vote;
}

std::vector<Request> LockVote::requests() const {
  switch (step_) {
    case Step::look:
      return {Request::get(sentinel_).on(server_)};
    case Step::ask:
      return {Request::add(sentinel_, "V0", Exptime::never()).relying_on_cas().on(server_),
              Request::gets(sentinel_).on(server_), Request::stats(server_)};
    case Step::mark:
      return {Request::compare_and_set(sentinel_, "V1 " + std::to_string(since_), Exptime::never(), cas_)
                  .on(server_)};
    case Step::settled:
      break;
  }
  return {};
}

void LockVote::take(std::span<const Reply> replies, SteadyTime) {
  const Reply& reply = replies.front();
  switch (step_) {
    case Step::look:
      take_sentinel(reply.value);
      step_ = votes_ || reply.failed() ? Step::settled : Step::ask;
      return;
    case Step::ask:
      return take_uptime(replies);
    case Step::mark:
      votes_ = reply.outcome == Outcome::stored;
      [[fallthrough]];
    case Step::settled:
      step_ = Step::settled;
  }
}

void LockVote::take_uptime(std::span<const Reply> replies) {
  const Reply& sentinel = replies[1];
  const Reply& stats = replies[2];
  step_ = Step::settled;
  const Reply& failed = sentinel.failed() ? sentinel : stats;
  if (failed.failed()) why_ = failed.failure->message;
  if (sentinel.outcome != Outcome::hit || (stats.failed() && stats.failure->late)) return;
  take_sentinel(sentinel.value);
  const auto uptime = uptime_in(stats.value);
  ageless_ = !votes_ && !uptime;
  young_ = !votes_ && uptime && *uptime < uptime_needed_s_;
  if (votes_ || ageless_ || young_) return;
  cas_ = sentinel.cas;
  since_ = static_cast<std::uint64_t>(std::max<std::int64_t>(clock_.wall().time_since_epoch().count(), 0));
  step_ = cas_.value == 0 ? Step::settled : Step::mark;
}

void LockVote::take_sentinel(std::string_view value) {
  votes_ = value.starts_with("V1");
  if (votes_ && value.size() > 3) since_ = parse_u64(value.substr(3)).value_or(0);
}

}  // namespace mcds
