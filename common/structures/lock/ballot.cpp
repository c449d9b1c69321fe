// Taking a lock that has copies: the add on all servers at once, counted as votes.
#include <algorithm>
#include <map>

#include "common/base/errors.hpp"
#include "common/base/units.hpp"
#include "common/structures/lock/lock.hpp"
#include "common/structures/lock/vote.hpp"

namespace mcds {

struct Lock::Ballot {
  std::vector<AcquireCopy> takes;
  std::vector<LockVote> votes;

  bool won(std::size_t copy) const { return takes[copy].result() == AcquireCopy::Result::won; }
  bool counts(std::size_t copy) const { return won(copy) && votes[copy].votes(); }

  std::size_t counted() const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < takes.size(); ++i) count += counts(i) ? 1 : 0;
    return count;
  }

  // Servers whose votes could give some client a majority.
  std::size_t able() const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < takes.size(); ++i) {
      count += votes[i].votes() && takes[i].result() != AcquireCopy::Result::failed ? 1 : 0;
    }
    return count;
  }

  std::size_t young() const {
    return static_cast<std::size_t>(
        std::count_if(votes.begin(), votes.end(), [](const LockVote& vote) { return vote.young(); }));
  }

  SteadyTime counts_from() const {
    SteadyTime from = SteadyTime::max();
    for (std::size_t i = 0; i < takes.size(); ++i) {
      if (counts(i)) from = std::min(from, takes[i].counts_from());
    }
    return from;
  }

  std::vector<CopyOutcome> outcomes(const Context& context) const {
    std::vector<CopyOutcome> all;
    for (std::size_t i = 0; i < takes.size(); ++i) {
      CopyOutcome outcome{takes[i].server(), {}, {}, {}};
      if (takes[i].result() == AcquireCopy::Result::failed) {
        outcome = copy_outcome(context, takes[i].failure());
        outcome.server = takes[i].server();
      } else {
        outcome.yes = won(i);
      }
      if (won(i) && !votes[i].votes()) {
        outcome.failure = Failure(ErrorCode::unavailable, "started too recently to vote",
                                  context.cluster.address_of(outcome.server));
      }
      all.push_back(std::move(outcome));
    }
    return all;
  }
};

Lock::Answer Lock::try_copies(const Wish& wish, AddTokens& tokens, bool first) {
  Lease lease;
  lease.token = tokens.next;
  lease.value = value_for(wish, tokens.next);
  const Ballot ballot = vote(wish, lease, tokens, first);
  for (std::size_t i = 0; i < ballot.takes.size(); ++i) {
    const AcquireCopy& take = ballot.takes[i];
    if (ballot.won(i) || take.in_doubt()) lease.copies.push_back({take.server(), take.cas()});
  }
  if (ballot.counted() < majority()) {
    give_back(lease, tokens);
    tokens.vanished = std::any_of(ballot.takes.begin(), ballot.takes.end(),
                                  [](const AcquireCopy& take) { return take.vanished(); });
    return not_elected(ballot);
  }
  lease.deadline = ballot.counts_from() + wish.ttl - drift(wish.ttl);
  if (wish.fence) lease.fence = common_fence(ballot);
  if (wish.fence && !lease.fence) {
    give_back(lease, tokens);
    throw NotApplied(ErrorCode::unavailable, "no majority of the servers returned a fencing token; try again",
                     address());
  }
  const Duration left = lease.deadline - context_.clock.steady();
  if (left <= Duration::zero()) {
    give_back(lease, tokens);
    throw NotApplied(ErrorCode::try_again,
                     "the servers took longer than the ttl to answer; try again or raise the ttl", address());
  }
  lease.expires_at = context_.clock.wall() + std::chrono::duration_cast<std::chrono::microseconds>(left);
  return {std::move(lease), {}, servers().front(), ballot.outcomes(context_)};
}

Lock::Ballot Lock::vote(const Wish& wish, const Lease& lease, const AddTokens& tokens, bool first) {
  Ballot ballot;
  for (const std::size_t server : servers()) {
    ballot.takes.emplace_back(AcquireCopy::Plan{.server = server,
                                                .key = key_,
                                                .tokens = tokens,
                                                .value = lease.value,
                                                .fence_key = wish.fence ? fence_key_ : std::string(),
                                                .clock = context_.clock,
                                                .exptime = exptime_of(wish.ttl),
                                                .fence_with_add = first,
                                                .adds_again = false});
    ballot.votes.emplace_back(server, context_.key_prefix, longest_ttl_, context_.clock);
  }
  // Each vote behind its add, the only one: the sentinel must have been there after it.
  std::vector<LockExchange*> exchanges;
  for (std::size_t i = 0; i < ballot.takes.size(); ++i) {
    exchanges.push_back(&ballot.takes[i]);
    exchanges.push_back(&ballot.votes[i]);
  }
  drive(context_, exchanges);
  return ballot;
}

Lock::Answer Lock::not_elected(const Ballot& ballot) const {
  if (ballot.able() < majority()) {
    std::string message = "no majority: " + std::to_string(ballot.able()) + " of " +
                          std::to_string(context_.copies) + " servers can vote";
    if (ballot.young() != 0) {
      message += "; " + std::to_string(ballot.young()) + " started less than --longest-ttl (" +
                 format_duration(longest_ttl_) + ") ago and may have forgotten locks";
    }
    throw NotApplied(ErrorCode::unavailable, message, address());
  }
  std::map<std::string, std::size_t> rivals;
  Answer answer{std::nullopt, {}, servers().front(), ballot.outcomes(context_)};
  std::size_t most = 0;
  for (const AcquireCopy& take : ballot.takes) {
    if (!take.rival()) continue;
    const std::size_t count = ++rivals[take.rival()->token];
    if (count > most) answer.holder = take.rival()->holder;
    most = std::max(most, count);
  }
  answer.split = most < majority();
  return answer;
}

// The largest number drawn, and above all that a server that votes can have forgotten, once a majority of the fences has
// come to it: nullopt when that cannot be reached.
std::optional<std::uint64_t> Lock::common_fence(const Ballot& ballot) {
  std::uint64_t largest = 0;
  std::size_t drawn = 0;
  for (const AcquireCopy& take : ballot.takes) {
    drawn += take.fence() ? 1 : 0;
    largest = std::max(largest, take.fence().value_or(0));
  }
  for (const LockVote& vote : ballot.votes) {
    if (vote.votes()) largest = std::max(largest, vote.since());
  }
  if (drawn < majority()) return std::nullopt;
  std::size_t level = 0;
  std::vector<Request> batch;
  for (const AcquireCopy& take : ballot.takes) {
    if (!take.fence()) continue;
    level += *take.fence() == largest ? 1 : 0;
    if (*take.fence() == largest) continue;
    batch.push_back(Request::incr_or_create(fence_key_, largest - *take.fence(), largest, Exptime::never())
                        .on(take.server()));
  }
  if (level >= majority()) return largest;
  for (const Reply& reply : context_.cluster.execute(batch))
    level += !reply.failed() && reply.number >= largest ? 1 : 0;
  return level >= majority() ? std::optional(largest) : std::nullopt;
}

}  // namespace mcds
