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

void take_sentinel(LockVote& vote, std::string_view value) {
  vote.votes = is_vote(value);
  if (vote.votes && value.size() > 3) vote.since = parse_u64(value.substr(3)).value_or(0);
}

}  // namespace

std::string vote_key(const Context& context, Duration longest_ttl) {
  return context.key_prefix + "lockserver:votes:" + std::to_string(ceil_seconds(longest_ttl));
}

bool is_vote(std::string_view sentinel) {
  return sentinel.starts_with("V1");
}

LockVote vote_of(const Context& context, std::size_t server, Duration longest_ttl) {
  LockVote vote;
  const std::string sentinel = vote_key(context, longest_ttl);
  const Reply known = context.cluster.execute(Request::get(sentinel).on(server));
  take_sentinel(vote, known.value);
  if (vote.votes || known.failed()) return vote;
  const std::vector<Request> asked{Request::add(sentinel, "V0", Exptime::never()).relying_on_cas().on(server),
                                   Request::gets(sentinel).on(server), Request::stats(server)};
  const auto replies = context.cluster.execute(asked);
  const Reply &there = replies[1], &stats = replies[2];
  const Reply& failed = there.failed() ? there : stats;
  if (failed.failed()) vote.why = failed.failure->message;
  if (there.outcome != Outcome::hit || (stats.failed() && stats.failure->late)) return vote;
  take_sentinel(vote, there.value);
  const auto uptime = uptime_in(stats.value);
  vote.ageless = !vote.votes && !uptime;
  vote.young =
      !vote.votes && uptime && *uptime < static_cast<std::uint64_t>(ceil_seconds(longest_ttl)) + guard_s;
  if (vote.votes || vote.ageless || vote.young) return vote;
  vote.since =
      static_cast<std::uint64_t>(std::max<std::int64_t>(context.clock.wall().time_since_epoch().count(), 0));
  if (there.cas.value == 0) return vote;
  const Request mark =
      Request::compare_and_set(sentinel, "V1 " + std::to_string(vote.since), Exptime::never(), there.cas);
  vote.votes = context.cluster.execute(Request(mark).on(server)).outcome == Outcome::stored;
  return vote;
}

}  // namespace mcds
