// Taking a lock: the add on the servers of all its copies at once, counted as votes. The server of an only
// copy is asked for no vote.
//
// A server may vote only if it has been up for longer than the longest ttl of any lock with copies. One that
// restarted empty may have forgotten a lock that is still held; after that time, every lock it could have
// forgotten has expired.
//
//   lockserver:votes:<longest ttl in seconds> = V1 <microseconds since 1970>   no exptime; on each server
//
// This sentinel begins as `V0`. It becomes `V1 …` by cas once the uptime, requested after the item existed,
// is long enough. A restart loses the item, so a `V1` is never found on a server that has been up for less.
// It is read in the same trip as the lock, after it.
//
// The time is that of the change to `V1`, by that client's clock. It is above every fence the server can have
// forgotten, unless clocks differ by more than the longest ttl. The fence on the server may be smaller: a
// rival with a slow clock may have restarted it while the server was too young.
#include <algorithm>
#include <map>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/units.hpp"
#include "common/replication/replicas.hpp"
#include "common/structures/lock/copy.hpp"

namespace mcds {

struct LockVote {
  bool votes = true;  // until it is asked
  bool asked = false;
  bool young = false;       // it answered, but started too recently to vote
  bool ageless = false;     // it answered, but has no statistics, as a proxy, or none of its uptime
  std::string why = {};     // it was asked, and did not answer
  std::uint64_t since = 0;  // votes: since when, in microseconds since 1970
};

namespace {

constexpr int most_draws = 2;
// What a server holds a lock longer than its ttl, and the tick of its uptime, which may be a second late.
constexpr std::uint64_t guard_s = 5;

std::optional<std::uint64_t> uptime_in(std::string_view stats) {
  for (const std::string_view line : split(stats, '\n')) {
    if (line.starts_with("uptime ")) return parse_u64(line.substr(7));
  }
  return std::nullopt;
}

std::string vote_key(const Context& context, Duration longest_ttl) {
  return context.key_prefix + "lockserver:votes:" + std::to_string(ceil_seconds(longest_ttl));
}

std::string vote_since(WallTime time) {
  return "V1 " + std::to_string(std::max<std::int64_t>(time.time_since_epoch().count(), 0));
}

// Whether the sentinel says that the server votes.
bool is_vote(std::string_view sentinel) {
  return sentinel.starts_with("V1");
}

void take_sentinel(LockVote& vote, std::string_view value) {
  vote.votes = is_vote(value);
  if (vote.votes && value.size() > 3) vote.since = parse_u64(value.substr(3)).value_or(0);
}

// Asked behind what adds the lock: what it finds was true when the lock was added.
LockVote vote_of(const Context& context, std::size_t server, Duration longest_ttl) {
  LockVote vote{.votes = false, .asked = true};
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
  if (there.cas.value == 0) return vote;
  const std::string since = vote_since(context.clock.wall());
  const Request mark = Request::compare_and_set(sentinel, since, Exptime::never(), there.cas);
  vote.votes = context.cluster.execute(Request(mark).on(server)).outcome == Outcome::stored;
  if (vote.votes) take_sentinel(vote, since);
  return vote;
}

}  // namespace

void let_new_servers_vote(const Context& context, Duration longest_ttl) {
  std::vector<Request> votes;
  for (std::size_t server = 0; server < context.cluster.placement().pool().size(); ++server) {
    votes.push_back(
        Request::add(vote_key(context, longest_ttl), vote_since(context.clock.wall()), Exptime::never())
            .on(server));
  }
  for (const Reply& reply : context.cluster.execute(votes)) expect(context.cluster, reply);
}

struct Lock::Ballot {
  struct Voter {
    HeldCopy take = {};
    LockVote vote = {};

    bool won() const { return take.result == HeldCopy::Result::done; }
    bool counts() const { return won() && vote.votes; }
    // Its vote could help some client to a majority.
    bool able() const { return vote.votes && take.result != HeldCopy::Result::failed; }
    // The add was applied, or may have been.
    bool added() const { return won() || take.in_doubt; }
  };
  std::vector<Voter> voters;

  std::size_t number_of(const auto& is) const {
    return static_cast<std::size_t>(std::ranges::count_if(voters, is));
  }

  std::vector<LockValue> rivals() const {
    std::vector<LockValue> rivals;
    for (const Voter& voter : voters) {
      if (voter.take.value) rivals.push_back(*voter.take.value);
    }
    return rivals;
  }

  SteadyTime counts_from() const {
    SteadyTime from = SteadyTime::max();
    for (const Voter& voter : voters) {
      if (voter.counts()) from = std::min(from, voter.take.counts_from);
    }
    return from;
  }

  std::vector<CopyOutcome> outcomes(const Context& context) const {
    std::vector<CopyOutcome> all;
    for (const Voter& voter : voters) {
      CopyOutcome& outcome = all.emplace_back(voter.take.outcome(context, voter.won()));
      if (voter.won() && !voter.counts()) {
        outcome.failure = Failure(ErrorCode::unavailable, "started too recently to vote",
                                  context.cluster.address_of(outcome.server));
      }
    }
    return all;
  }
};

Lock::Answer Lock::try_servers(const Wish& wish, AddTokens& tokens, bool first) {
  Lease lease;
  lease.token = tokens.next;
  lease.value = value_for(wish, tokens.next);
  Ballot ballot = vote(wish, lease, tokens, first);
  for (const Ballot::Voter& voter : ballot.voters) {
    // An only copy in doubt is not asked for again in vain: the next attempt knows the token, or the user is
    // told it.
    if (voter.won() || (voter.vote.asked && voter.added()))
      lease.copies.push_back({voter.take.server, voter.take.cas});
  }
  const auto other = other_number(ballot.rivals(), context_.copies);
  if (!other && ballot.number_of(&Ballot::Voter::counts) < majority())
    return not_elected(ballot, lease, tokens);
  try {
    if (other) throw other_copies(*other, address());
    if (wish.fence) draw_fences(ballot);
    complete(lease, wish, ballot);
  } catch (const Failure& failure) {
    const std::string doubtful = tokens.text();
    if (give_back(lease, tokens) >= majority()) throw perhaps_taken(failure.what(), doubtful);
    throw;
  }
  return {std::move(lease), {}, servers().front(), ballot.outcomes(context_)};
}

Lock::Ballot Lock::vote(const Wish& wish, const Lease& lease, const AddTokens& tokens, bool first) {
  const auto servers = this->servers();
  Ballot ballot{std::vector<Ballot::Voter>(servers.size())};
  // Each vote behind its add, the only one: the sentinel must have been there after it.
  const std::size_t each = 1 + votes_asked();
  const SideBySide runs(context_, each * servers.size());
  runs.each([&](std::size_t run) {
    const std::size_t server = servers[run / each];
    Ballot::Voter& voter = ballot.voters[run / each];
    if (run % each != 0) {
      voter.vote = vote_of(runs.at(run), server, longest_ttl_);
      return;
    }
    voter.take = take_copy(runs.at(run), {.server = server,
                                          .key = key_,
                                          .tokens = tokens,
                                          .value = lease.value,
                                          .fence_key = wish.fence && first ? fence_key_ : std::string(),
                                          .exptime = exptime_of(wish.ttl),
                                          .adds_again = each == 1});
  });
  return ballot;
}

// Those that were not drawn behind the add. The lock is ours: the time with which a missing one begins is
// later than what its last holder drew. And the server still votes: one that was restarted since has
// forgotten that number.
void Lock::draw_fences(Ballot& ballot) const {
  for (int draws = 0; draws < most_draws; ++draws) {
    const auto now = std::max<std::int64_t>(context_.clock.wall().time_since_epoch().count(), 1);
    const auto first = static_cast<std::uint64_t>(now);
    std::vector<Request> batch;
    std::vector<HeldCopy*> drawing;
    for (Ballot::Voter& voter : ballot.voters) {
      // A number that was drawn and got lost is a gap, which does no harm.
      if (!voter.counts() || voter.take.fence || (draws > 0 && !voter.take.failure.unknown())) continue;
      drawing.push_back(&voter.take);
      batch.push_back(Request::incr_or_create(fence_key_, 1, first, fence_end(first))
                          .lying_with(key_)
                          .on(voter.take.server));
      batch.resize(batch.size() + votes_asked(),
                   Request::get(vote_key(context_, longest_ttl_)).on(voter.take.server));
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

// Deadline and fence of a lease that was won.
void Lock::complete(Lease& lease, const Wish& wish, const Ballot& ballot) {
  lease.deadline = deadline_of(ballot.counts_from(), wish.ttl);
  if (wish.fence) lease.fence = common_fence(ballot);
  const Duration left = lease.deadline - context_.clock.steady();
  if (left <= Duration::zero()) {
    throw NotApplied(ErrorCode::try_again, "the answer took longer than the ttl; try again or raise the ttl",
                     address());
  }
  if (wish.fence && !lease.fence)
    fail(ballot, "no majority of the servers returned a fencing token; try again");
  lease.expires_at = context_.clock.wall() + std::chrono::duration_cast<std::chrono::microseconds>(left);
}

Lock::Answer Lock::not_elected(const Ballot& ballot, const Lease& lease, AddTokens& tokens) {
  const std::string doubtful = tokens.text();
  const bool taken = ballot.number_of(&Ballot::Voter::added) != 0 && give_back(lease, tokens) >= majority();
  tokens.vanished =
      std::ranges::any_of(ballot.voters, [](const Ballot::Voter& voter) { return voter.take.vanished; });
  const std::size_t able = ballot.number_of(&Ballot::Voter::able);
  if (able < majority()) {
    std::string message = "no majority: " + std::to_string(able) + " of " + std::to_string(context_.copies) +
                          " servers can vote";
    const std::size_t ageless = ballot.number_of([](const auto& voter) { return voter.vote.ageless; });
    if (context_.copies - ageless < majority() && !taken)
      throw NotApplied(ErrorCode::refused,
                       std::to_string(ageless) +
                           " servers do not say for how long they have run, and may have forgotten locks: "
                           "use --copies 1, or servers whose stats have an uptime",
                       address());
    const std::size_t young = ballot.number_of([](const auto& voter) { return voter.vote.young; });
    if (young != 0) {
      message += "; " + std::to_string(young) + " started less than longest_lock_ttl (" +
                 format_duration(longest_ttl_) + ") ago and may have forgotten locks";
    }
    const auto silent = std::ranges::find_if(
        ballot.voters, [](const Ballot::Voter& voter) { return !voter.vote.why.empty(); });
    if (silent != ballot.voters.end()) message += "; " + silent->vote.why;
    if (taken) throw perhaps_taken(message, doubtful);
    fail(ballot, message, doubtful);
  }
  std::map<std::string, std::size_t> rivals;
  Answer answer{std::nullopt, {}, servers().front(), ballot.outcomes(context_)};
  std::size_t most = 0;
  for (const LockValue& rival : ballot.rivals()) {
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

// Of several servers what they add up to, of one what it said; of all that cannot do it, why.
void Lock::fail(const Ballot& ballot, const std::string& of_several, const std::string& doubtful) const {
  const bool all_refuse = std::ranges::all_of(ballot.voters, [](const Ballot::Voter& voter) {
    return voter.take.failure.is(ReplyFailure::Kind::refused);
  });
  if (votes_asked() != 0 && !all_refuse) throw NotApplied(ErrorCode::unavailable, of_several, address());
  const HeldCopy& take = ballot.voters.front().take;
  if (!doubtful.empty() && take.in_doubt) {
    throw perhaps_taken(take.failure.failure->message, doubtful);
  }
  expect(context_.cluster, take.failure);
}

// The caller never sees this token, so release it now instead of blocking others until it expires. Returns in
// how many copies it may still be.
std::size_t Lock::give_back(const Lease& lease, AddTokens& tokens) {
  tokens.spend(context_.random);
  if (lease.copies.empty()) return 0;
  const auto freed = attempt([&] { return release_copies(lease.token, lease.copies); });
  if (freed.failure()) return lease.copies.size();  // the caller reports the first failure; the key expires
  const auto& copies = freed.value().copies;
  return static_cast<std::size_t>(
      std::ranges::count_if(copies, [](const auto& copy) { return copy.failure.has_value(); }));
}

// The largest number drawn, and above all that a server that votes can have forgotten, once a majority of the
// fences has come to it: nullopt when that cannot be reached.
std::optional<std::uint64_t> Lock::common_fence(const Ballot& ballot) {
  std::uint64_t largest = 0;
  std::size_t drawn = 0;
  for (const auto& [take, vote] : ballot.voters) {
    drawn += take.fence && vote.votes ? 1 : 0;  // the others have forgotten
    largest = std::max(largest, take.fence.value_or(0));
    if (vote.votes) largest = std::max(largest, vote.since);
  }
  if (drawn < majority()) return std::nullopt;
  std::size_t level = 0;
  std::vector<Request> batch;
  for (const auto& [take, vote] : ballot.voters) {
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
