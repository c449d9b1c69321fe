// Takes a lock by an add on the servers of all its copies at once, counted as votes. A single copy needs no
// vote.
//
// A server may vote only if it has been up for longer than the longest ttl of any lock with copies. One that
// restarted empty may have forgotten a lock that is still held; after that time, every lock it could have
// forgotten has expired.
//
//   lockserver:votes:<longest ttl in seconds> = V1 <microseconds since 1970>   no exptime; on each server
//
// This sentinel begins as `V0`. It becomes `V1 …` by cas once the uptime, requested after the item existed,
// is long enough. A restart loses the item, so a server that has been up for less never has a `V1`. The
// sentinel is read in the same trip as the lock, after it.
//
// The time is that of the change to `V1`, by that client's clock. It is above every fence that the server can
// have forgotten, unless clocks differ by more than the longest ttl. The fence on the server may be smaller:
// a client with a slow clock may have restarted it before the server could vote.
#include <map>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/units.hpp"
#include "common/replication/replicas.hpp"
#include "common/structures/lock/copy.hpp"

namespace mcds {

struct LockVote {
  bool votes = true;  // until a vote is requested
  bool asked = false;
  bool recently_started = false;  // it answered, but started too recently to vote
  bool no_uptime = false;         // it answered, but reports no uptime, or is a proxy without statistics
  std::string why = {};           // why it did not answer
  std::uint64_t since = 0;        // votes: the time from which it votes, in microseconds since 1970
};

namespace {

constexpr int max_draws = 2;
// A server votes only if its uptime exceeds max_ttl by this much, because it keeps a lock's key longer than
// the ttl and reports an uptime that may be a second late.
constexpr std::uint64_t guard_s = 5;

std::optional<std::uint64_t> uptime_in(std::string_view stats) {
  for (const std::string_view line : split(stats, '\n')) {
    if (line.starts_with("uptime ")) return parse_u64(line.substr(7));
  }
  return std::nullopt;
}

std::string vote_key(const Context& context, Duration max_ttl) {
  return context.key_prefix + "lockserver:votes:" + std::to_string(ceil_seconds(max_ttl));
}

std::string vote_since(WallTime time) {
  return "V1 " + std::to_string(std::max<std::int64_t>(time.time_since_epoch().count(), 0));
}

// Returns true if the sentinel says that the server votes.
bool is_vote(std::string_view sentinel) {
  return sentinel.starts_with("V1");
}

void take_sentinel(LockVote& vote, std::string_view value) {
  vote.votes = is_vote(value);
  if (vote.votes && value.size() > 3) vote.since = parse_u64(value.substr(3)).value_or(0);
}

// Reads the server's vote. It is requested after the lock's add, so it was valid when the lock was added.
LockVote vote_of(const Context& context, std::size_t server, Duration max_ttl) {
  LockVote vote{.votes = false, .asked = true};
  const std::string sentinel = vote_key(context, max_ttl);
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
  vote.no_uptime = !vote.votes && !uptime;
  vote.recently_started =
      !vote.votes && uptime && *uptime < static_cast<std::uint64_t>(ceil_seconds(max_ttl)) + guard_s;
  if (vote.votes || vote.no_uptime || vote.recently_started) return vote;
  if (there.cas.value == 0) return vote;
  const std::string since = vote_since(context.clock.wall());
  const Request mark = Request::compare_and_set(sentinel, since, Exptime::never(), there.cas);
  vote.votes = context.cluster.execute(Request(mark).on(server)).outcome == Outcome::stored;
  if (vote.votes) take_sentinel(vote, since);
  return vote;
}

}  // namespace

void let_new_servers_vote(const Context& context, Duration max_ttl) {
  std::vector<Request> votes;
  for (std::size_t server = 0; server < context.cluster.placement().pool().size(); ++server) {
    votes.push_back(
        Request::add(vote_key(context, max_ttl), vote_since(context.clock.wall()), Exptime::never())
            .on(server));
  }
  for (const Reply& reply : context.cluster.execute(votes)) expect(context.cluster, reply);
}

struct Lock::Vote {
  struct VotingServer {
    LockCopy take = {};
    LockVote vote = {};

    bool won() const { return take.result == LockCopy::Result::done; }
    bool counts() const { return won() && vote.votes; }
    // Returns true if its vote could help some client to a majority.
    bool able() const { return vote.votes && take.result != LockCopy::Result::failed; }
    // Returns true if the add was or may have been applied.
    bool added() const { return won() || take.pending; }
  };
  std::vector<VotingServer> voting_servers;

  std::size_t number_of(const auto& is) const {
    return static_cast<std::size_t>(std::ranges::count_if(voting_servers, is));
  }

  std::vector<LockValue> rivals() const {
    std::vector<LockValue> rivals;
    for (const VotingServer& voting_server : voting_servers) {
      if (voting_server.take.value) rivals.push_back(*voting_server.take.value);
    }
    return rivals;
  }

  SteadyTime counts_from() const {
    SteadyTime from = SteadyTime::max();
    for (const VotingServer& voting_server : voting_servers) {
      if (voting_server.counts()) from = std::min(from, voting_server.take.counts_from);
    }
    return from;
  }

  std::vector<CopyOutcome> outcomes(const Context& context) const {
    std::vector<CopyOutcome> all;
    for (const VotingServer& voting_server : voting_servers) {
      CopyOutcome& outcome = all.emplace_back(voting_server.take.outcome(context, voting_server.won()));
      if (voting_server.won() && !voting_server.counts()) {
        outcome.failure = Failure(ErrorCode::unavailable, "started too recently to vote",
                                  context.cluster.address_of(outcome.server));
      }
    }
    return all;
  }
};

Lock::Answer Lock::try_servers(const AcquireOptions& acquire_options, PendingAdds& tokens, bool first) {
  Lease lease;
  lease.token = tokens.next;
  lease.value = value_for(acquire_options, tokens.next);
  Vote vote_round = vote(acquire_options, lease, tokens, first);
  for (const Vote::VotingServer& voting_server : vote_round.voting_servers) {
    // An add of a single copy whose outcome is unknown is not released: the next attempt recognizes its
    // token, or the user gets it.
    if (voting_server.won() || (voting_server.vote.asked && voting_server.added()))
      lease.copies.push_back({voting_server.take.server, voting_server.take.cas});
  }
  const auto other = other_number(vote_round.rivals(), context_.copies);
  if (!other && vote_round.number_of(&Vote::VotingServer::counts) < majority())
    return not_elected(vote_round, lease, tokens);
  try {
    if (other) throw other_copies(*other, address());
    if (acquire_options.fence) draw_fences(vote_round);
    complete(lease, acquire_options, vote_round);
  } catch (const Failure& failure) {
    const std::string uncertain = tokens.text();
    if (release_added(lease, tokens) >= majority()) throw perhaps_taken(failure.what(), uncertain);
    throw;
  }
  return {std::move(lease), {}, servers().front(), vote_round.outcomes(context_)};
}

Lock::Vote Lock::vote(const AcquireOptions& acquire_options, const Lease& lease, const PendingAdds& tokens,
                      bool first) {
  const auto servers = this->servers();
  Vote vote_round{std::vector<Vote::VotingServer>(servers.size())};
  // Each vote follows its server's only add, because the sentinel must exist after the add.
  const std::size_t each = 1 + votes_asked();
  const FiberGroup runs(context_, each * servers.size());
  runs.each([&](std::size_t run) {
    const std::size_t server = servers[run / each];
    Vote::VotingServer& voting_server = vote_round.voting_servers[run / each];
    if (run % each != 0) {
      voting_server.vote = vote_of(runs.at(run), server, max_ttl_);
      return;
    }
    voting_server.take =
        take_copy(runs.at(run), {.server = server,
                                 .key = key_,
                                 .tokens = tokens,
                                 .value = lease.value,
                                 .fence_key = acquire_options.fence && first ? fence_key_ : std::string(),
                                 .exptime = exptime_of(acquire_options.ttl),
                                 .adds_again = each == 1});
  });
  return vote_round;
}

// Draws the fences that were not drawn after the add. Because the lock is ours, the time with which a missing
// fence begins is later than every number of the last holder. The server must still vote: one that restarted
// since has forgotten the number.
void Lock::draw_fences(Vote& vote_round) const {
  for (int draws = 0; draws < max_draws; ++draws) {
    const auto now = std::max<std::int64_t>(context_.clock.wall().time_since_epoch().count(), 1);
    const auto first = static_cast<std::uint64_t>(now);
    std::vector<Request> batch;
    std::vector<LockCopy*> drawing;
    for (Vote::VotingServer& voting_server : vote_round.voting_servers) {
      // A number that was drawn and lost is a gap, which is harmless.
      if (!voting_server.counts() || voting_server.take.fence ||
          (draws > 0 && !voting_server.take.failure.unknown()))
        continue;
      drawing.push_back(&voting_server.take);
      batch.push_back(Request::incr_or_create(fence_key_, 1, first, fence_end(first))
                          .placed_with(key_)
                          .on(voting_server.take.server));
      batch.resize(batch.size() + votes_asked(),
                   Request::get(vote_key(context_, max_ttl_)).on(voting_server.take.server));
    }
    if (drawing.empty()) return;
    const auto replies = context_.cluster.execute(batch);
    const std::size_t each = 1 + votes_asked();
    for (std::size_t i = 0; i < drawing.size(); ++i) {
      const auto answers = std::span(replies).subspan(i * each, each);
      const Reply& drawn = answers.front();
      const auto votes = [](const Reply& sentinel) { return is_vote(sentinel.value); };
      if (drawn.failed())
        drawing[i]->failure = drawn;
      else if (std::ranges::all_of(answers.subspan(1), votes))
        drawing[i]->fence = drawn.number;
    }
  }
}

// Sets the deadline and the fence of a lease that was won.
void Lock::complete(Lease& lease, const AcquireOptions& acquire_options, const Vote& vote_round) {
  lease.deadline = deadline_of(vote_round.counts_from(), acquire_options.ttl);
  if (acquire_options.fence) lease.fence = common_fence(vote_round);
  const Duration left = lease.deadline - context_.clock.steady();
  if (left <= Duration::zero()) {
    throw NotApplied(ErrorCode::try_again, "the answer took longer than the ttl; try again or raise the ttl",
                     address());
  }
  if (acquire_options.fence && !lease.fence)
    fail(vote_round, "no majority of the servers returned a fencing token; try again");
  lease.expires_at = context_.clock.wall() + std::chrono::duration_cast<std::chrono::microseconds>(left);
}

Lock::Answer Lock::not_elected(const Vote& vote_round, const Lease& lease, PendingAdds& tokens) {
  const std::string uncertain = tokens.text();
  const bool taken =
      vote_round.number_of(&Vote::VotingServer::added) != 0 && release_added(lease, tokens) >= majority();
  tokens.vanished = std::ranges::any_of(
      vote_round.voting_servers,
      [](const Vote::VotingServer& voting_server) { return voting_server.take.vanished; });
  const std::size_t able = vote_round.number_of(&Vote::VotingServer::able);
  if (able < majority()) {
    std::string message = "no majority: " + std::to_string(able) + " of " + std::to_string(context_.copies) +
                          " servers can vote";
    const std::size_t no_uptime =
        vote_round.number_of([](const auto& voting_server) { return voting_server.vote.no_uptime; });
    if (context_.copies - no_uptime < majority() && !taken)
      throw NotApplied(ErrorCode::refused,
                       std::to_string(no_uptime) +
                           " servers do not report their uptime, so a restart that lost locks cannot be "
                           "ruled out; use --copies 1 or servers that report uptime",
                       address());
    const std::size_t recently_started =
        vote_round.number_of([](const auto& voting_server) { return voting_server.vote.recently_started; });
    if (recently_started != 0) {
      message += "; " + std::to_string(recently_started) + " started less than longest_lock_ttl (" +
                 format_duration(max_ttl_) + ") ago and may have forgotten locks";
    }
    const auto silent = std::ranges::find_if(
        vote_round.voting_servers,
        [](const Vote::VotingServer& voting_server) { return !voting_server.vote.why.empty(); });
    if (silent != vote_round.voting_servers.end()) message += "; " + silent->vote.why;
    if (taken) throw perhaps_taken(message, uncertain);
    fail(vote_round, message, uncertain);
  }
  std::map<std::string, std::size_t> rivals;
  Answer answer{std::nullopt, {}, servers().front(), vote_round.outcomes(context_)};
  std::size_t most = 0;
  for (const LockValue& rival : vote_round.rivals()) {
    const std::size_t count = ++rivals[rival.token];
    if (count > most) answer.holder = rival.holder;
    most = std::max(most, count);
  }
  answer.split = votes_asked() != 0 && most < majority();
  return answer;
}

UnknownOutcome Lock::perhaps_taken(const std::string& message, const std::string& token) const {
  return UnknownOutcome("the lock may have been taken although no reply arrived: " + message +
                            "; it expires after its ttl, or release it with --token " + token,
                        address());
}

// Throws the first server's failure for a single copy or if all refuse, otherwise `value_if_replicated`.
void Lock::fail(const Vote& vote_round, const std::string& value_if_replicated,
                const std::string& uncertain) const {
  const bool all_refuse =
      std::ranges::all_of(vote_round.voting_servers, [](const Vote::VotingServer& voting_server) {
        return voting_server.take.failure.is(ReplyFailure::Kind::refused);
      });
  if (votes_asked() != 0 && !all_refuse)
    throw NotApplied(ErrorCode::unavailable, value_if_replicated, address());
  const LockCopy& take = vote_round.voting_servers.front().take;
  if (!uncertain.empty() && take.pending) {
    throw perhaps_taken(take.failure.failure->message, uncertain);
  }
  expect(context_.cluster, take.failure);
}

// Releases the lease, because the caller never sees its token and it would block others until it expires.
// Returns the number of copies in which it may still be.
std::size_t Lock::release_added(const Lease& lease, PendingAdds& tokens) {
  tokens.spend(context_.random);
  if (lease.copies.empty()) return 0;
  const auto freed = attempt([&] { return release_copies(lease.token, lease.copies); });
  if (freed.failure()) return lease.copies.size();  // the caller reports the first failure; the key expires
  const auto& copies = freed.value().copies;
  return static_cast<std::size_t>(
      std::ranges::count_if(copies, [](const auto& copy) { return copy.failure.has_value(); }));
}

// Returns the fencing token: the largest fence drawn, or the time from which a server votes if that is
// larger, because it is above everything that the server forgot. A majority is raised to the token before it
// is used, so every later majority contains it. Only fences of servers that vote count. Returns nullopt if no
// majority reaches the token.
std::optional<std::uint64_t> Lock::common_fence(const Vote& vote_round) {
  std::uint64_t largest = 0;
  std::size_t drawn = 0;
  for (const auto& [take, vote] : vote_round.voting_servers) {
    drawn += take.fence && vote.votes ? 1 : 0;  // the other servers have forgotten theirs
    largest = std::max(largest, take.fence.value_or(0));
    if (vote.votes) largest = std::max(largest, vote.since);
  }
  if (drawn < majority()) return std::nullopt;
  std::size_t level = 0;
  std::vector<Request> batch;
  for (const auto& [take, vote] : vote_round.voting_servers) {
    if (!take.fence) continue;
    level += *take.fence == largest ? 1 : 0;
    if (*take.fence == largest) continue;
    batch.push_back(Request::incr_or_create(fence_key_, largest - *take.fence, largest, fence_end(largest))
                        .on(take.server));
  }
  if (level >= majority()) return largest;
  for (const Reply& reply : context_.cluster.execute(batch))
    level += !reply.failed() && reply.number >= largest ? 1 : 0;
  return level >= majority() ? std::optional(largest) : std::nullopt;
}

}  // namespace mcds
