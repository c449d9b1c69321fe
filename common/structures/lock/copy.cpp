#include "common/structures/lock/copy.hpp"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

namespace mcds {

namespace {

// Bounds of every loop. A cas or remove_if on our own value conflicts only with a server's slab mover or
// another client breaking the lock; an add finds a key that is gone when read only when holders change just
// then.
constexpr int most_attempts = 8;
constexpr int most_adds = 4;
constexpr int most_reads = 2;
// While one acquire waits; older ones have long expired.
constexpr std::size_t most_spent = 16;

std::vector<Request> add_requests(const CopyToTake& plan) {
  std::vector<Request> batch{
      Request::add(plan.key, plan.value, plan.exptime).on(plan.server).relying_on_expiry().relying_on_cas()};
  // Sent before it is known whose the lock is, it begins no fence.
  if (!plan.fence_key.empty())
    batch.push_back(Request::incr(plan.fence_key, 1).lying_with(plan.key).on(plan.server));
  return batch;
}

Request exchange_request(const CopyToTake& plan, CasUnique spent) {
  return Request::compare_and_set(plan.key, plan.value, plan.exptime, spent).on(plan.server);
}

}  // namespace

std::string new_lock_token(Random& random) {
  while (true) {
    std::string token = random.token();
    if (std::isdigit(static_cast<unsigned char>(token.front())) == 0) return token;
  }
}

void AddTokens::spend(Random& random) {
  if (spent.size() >= most_spent) spent.erase(spent.begin());
  spent.push_back(std::exchange(next, new_lock_token(random) + suffix));
}

std::string AddTokens::text() const {
  std::string text;
  for (const std::string& token : spent) text += token + " or ";
  return text + next;
}

Exptime fence_end(std::uint64_t microseconds) {
  constexpr std::uint64_t week_s = 7 * 24 * 3600;
  return Exptime::absolute(static_cast<std::int64_t>(microseconds / 1'000'000 + week_s))
      .value_or(Exptime::never());
}

CopyOutcome HeldCopy::outcome(const Context& context, bool yes) const {
  if (result != Result::failed) return {.server = server, .yes = yes};
  return {.server = server, .failure = copy_outcome(context, failure).failure};
}

HeldCopy take_copy(const Context& context, const CopyToTake& plan) {
  using Result = HeldCopy::Result;
  HeldCopy taken{.server = plan.server};
  const auto won = [&](CasUnique cas) {
    if (cas.value != 0) taken.cas = cas;
    taken.result = Result::done;
  };
  std::optional<CasUnique> spent;  // of what has a token that was spent, and gets the next one
  for (int adds = 0, exchanges = 0; taken.result != Result::done;) {
    const auto batch = spent ? std::vector{exchange_request(plan, *spent)} : add_requests(plan);
    adds += spent ? 0 : 1;
    taken.counts_from = context.clock.steady();
    const auto replies = context.cluster.execute(batch);
    const Reply& written = replies.front();
    if (replies.size() > 1 && replies[1].outcome == Outcome::stored) taken.fence = replies[1].number;
    if (written.outcome == Outcome::stored) {
      won(written.cas);
      break;
    }
    // A number drawn before the add that will count may be older than another holder's.
    taken.fence.reset();
    if (written.failed()) taken.failure = written;
    if (written.failed() && !written.unknown()) return taken;
    taken.in_doubt = taken.in_doubt || written.unknown();
    spent.reset();
    const Reply there = context.cluster.execute(Request::gets(plan.key).on(plan.server));
    if (there.outcome == Outcome::hit) {
      LockValue stored = LockValue::parse(there.value);
      // Without a doubt it is what an earlier attempt left, and as old as that.
      if (stored.token == plan.tokens.next && taken.in_doubt) {
        won(there.cas);
      } else if (plan.tokens.is_ours(stored.token) && ++exchanges < most_attempts) {
        spent = there.cas;
      } else {
        taken.value = std::move(stored);
        taken.result = Result::not_ours;
        return taken;
      }
    } else if (there.outcome != Outcome::miss || taken.in_doubt || !plan.adds_again || adds == most_adds) {
      taken.vanished = there.outcome == Outcome::miss && taken.in_doubt;
      if (!taken.in_doubt) taken.result = Result::not_ours;
      return taken;
    }
  }
  return taken;
}

HeldCopy change_copy(const Context& context, CopyToChange plan) {
  HeldCopy held{.server = plan.server};
  const auto ended = [&](HeldCopy::Result result) {
    held.result = result;
    return held;
  };
  bool removal_in_doubt = false;
  // Ours was there and is not any more: the removal whose reply was lost, or the expiry. It is free of us.
  const auto lost = [&](HeldCopy::Result result) {
    return ended(removal_in_doubt ? HeldCopy::Result::done : result);
  };
  if (plan.renewed_until && !plan.value) plan.cas.reset();
  for (int attempts = 0, unanswered_reads = 0; attempts < most_attempts;) {
    if (!plan.cas) {
      const Reply there = context.cluster.execute(Request::gets(plan.key).on(plan.server));
      // An idle connection may have died unnoticed: reading again is harmless.
      if (there.failed() && ++unanswered_reads < most_reads) continue;
      if (there.failed() && !removal_in_doubt) held.failure = there;
      if (there.failed()) return ended(HeldCopy::Result::failed);
      if (there.outcome != Outcome::hit) return lost(HeldCopy::Result::gone);
      held.value = LockValue::parse(there.value);
      if (plan.token && held.value->token != *plan.token) return lost(HeldCopy::Result::not_ours);
      // One that is kept in a single copy is free once that is.
      if (!plan.renewed_until && other_number(std::span(&*held.value, 1), plan.copies).value_or(1) != 1)
        return ended(HeldCopy::Result::other_number);
      plan.cas = there.cas;
      if (!plan.value) plan.value = there.value;
    }
    const CasUnique cas = *std::exchange(plan.cas, {});
    const Request change = plan.renewed_until
                               ? Request::compare_and_set(plan.key, *plan.value, *plan.renewed_until, cas)
                               : Request::remove_if(plan.key, cas);
    held.counts_from = context.clock.steady();
    const Reply reply = context.cluster.execute(Request(change).on(plan.server));
    if (reply.outcome == Outcome::stored || reply.outcome == Outcome::deleted) {
      if (reply.cas.value != 0) held.cas = reply.cas;
      return ended(HeldCopy::Result::done);
    }
    if (reply.failed()) held.failure = reply;
    if (reply.failed() && !reply.unknown()) return ended(HeldCopy::Result::failed);
    removal_in_doubt = removal_in_doubt || (reply.unknown() && !plan.renewed_until);
    // exists may be spurious, and a renewal whose reply was lost may be repeated: the lock must be read.
    ++attempts;
  }
  return ended(HeldCopy::Result::contended);
}

}  // namespace mcds
