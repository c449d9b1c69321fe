#include "common/structures/lock/copy.hpp"

#include <utility>

#include "common/base/bytes.hpp"

namespace mcds {

namespace {

// The bounds of every loop. A cas or remove_if on our own value conflicts only with a server's slab mover or
// a client that breaks the lock. An add finds a missing key only if holders change at that moment.
constexpr int max_attempts = 8;
constexpr int max_adds = 4;
constexpr int max_reads = 2;
// The number of retired tokens kept while one acquire waits. An add that is executed later than this many
// attempts, each with a timeout, would count as another client's.
constexpr std::size_t max_retired = 256;
constexpr std::size_t max_shown = 4;

std::vector<Request> add_requests(const LockCopyRequest& plan) {
  std::vector<Request> batch{
      Request::add(plan.key, plan.value, plan.exptime).on(plan.server).relying_on_expiry().relying_on_cas()};
  // This incr is sent before the lock's holder is known, so it must not create the fence.
  if (!plan.fence_key.empty())
    batch.push_back(Request::incr_existing(plan.fence_key, 1).placed_with(plan.key).on(plan.server));
  return batch;
}

Request exchange_request(const LockCopyRequest& plan, CasUnique spent) {
  return Request::compare_and_set(plan.key, plan.value, plan.exptime, spent).on(plan.server);
}

}  // namespace

std::string new_lock_token(Random& random) {
  while (true) {
    std::string token = random.token();
    if (!is_digit(token.front())) return token;
  }
}

void PendingAdds::spend(Random& random) {
  if (spent.size() >= max_retired) spent.erase(spent.begin());
  spent.push_back(std::exchange(next, new_lock_token(random) + suffix));
}

std::string PendingAdds::text() const {
  std::string text;
  for (std::size_t i = spent.size() - std::min(spent.size(), max_shown); i < spent.size(); ++i)
    text += spent[i] + " or ";
  return text + next;
}

Exptime fence_end(std::uint64_t microseconds) {
  constexpr std::uint64_t week_s = 7 * 24 * 3600;
  return Exptime::absolute(static_cast<std::int64_t>(microseconds / 1'000'000 + week_s))
      .value_or(Exptime::never());
}

CopyOutcome LockCopy::outcome(const Context& context, bool yes) const {
  if (result != Result::failed) return {.server = server, .yes = yes};
  return {.server = server, .failure = copy_outcome(context, failure).failure};
}

LockCopy take_copy(const Context& context, const LockCopyRequest& plan) {
  using Result = LockCopy::Result;
  LockCopy taken{.server = plan.server};
  const auto won = [&](CasUnique cas) {
    if (cas.value != 0) taken.cas = cas;
    taken.result = Result::done;
  };
  std::optional<CasUnique> spent;  // of an item with a retired token, which gets the next one
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
    // The add failed. A fencing token that was drawn with it may be smaller than that of a holder between
    // this add and the next.
    taken.fence.reset();
    if (written.failed()) taken.failure = written;
    // A full server refuses the add without looking for the key, which another holder may have.
    const bool refused = !spent && written.is(ReplyFailure::Kind::refused);
    if (written.failed() && !written.unknown() && !refused) return taken;
    taken.pending = taken.pending || written.unknown();
    spent.reset();
    const Reply there = context.cluster.execute(Request::gets(plan.key).on(plan.server));
    if (there.outcome == Outcome::hit) {
      LockValue stored = LockValue::parse(there.value);
      // If no outcome is unknown, an earlier attempt stored the token, and the item is as old as that
      // attempt.
      if (stored.token == plan.tokens.next && taken.pending) {
        won(there.cas);
      } else if (plan.tokens.is_ours(stored.token) && ++exchanges < max_attempts) {
        // An add of the latest token may be executed after its release, so that token is spent, too.
        taken.vanished = taken.pending;
        if (taken.pending) return taken;
        spent = there.cas;
      } else {
        taken.value = std::move(stored);
        taken.result = Result::not_ours;
        return taken;
      }
    } else if (refused) {
      return taken;
    } else if (there.outcome != Outcome::miss || taken.pending || !plan.adds_again || adds == max_adds) {
      taken.vanished = there.outcome == Outcome::miss && taken.pending;
      if (!taken.pending) taken.result = Result::not_ours;
      return taken;
    }
  }
  return taken;
}

LockCopy change_copy(const Context& context, LockCopyUpdate plan) {
  LockCopy held{.server = plan.server};
  const auto ended = [&](LockCopy::Result result) {
    held.result = result;
    return held;
  };
  bool removal_pending = false;
  // Our value is gone, by the removal whose reply was lost or by its expiry. Either way we do not hold it.
  const auto lost = [&](LockCopy::Result result) {
    return ended(removal_pending ? LockCopy::Result::done : result);
  };
  if (plan.renewed_until && !plan.value) plan.cas.reset();
  for (int attempts = 0, unanswered_reads = 0; attempts < max_attempts;) {
    if (!plan.cas) {
      const Reply there = context.cluster.execute(Request::gets(plan.key).on(plan.server));
      // An idle connection may have failed unnoticed. Reading again is harmless.
      if (there.failed() && ++unanswered_reads < max_reads) continue;
      if (there.failed() && !removal_pending) held.failure = there;
      if (there.failed()) return ended(LockCopy::Result::failed);
      if (there.outcome != Outcome::hit) return lost(LockCopy::Result::gone);
      held.value = LockValue::parse(there.value);
      if (plan.token && held.value->token != *plan.token) return lost(LockCopy::Result::not_ours);
      // A lock with a single copy is free once that copy is removed.
      if (!plan.renewed_until && other_number(std::span(&*held.value, 1), plan.copies).value_or(1) != 1)
        return ended(LockCopy::Result::other_number);
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
      return ended(LockCopy::Result::done);
    }
    if (reply.failed()) held.failure = reply;
    if (reply.failed() && !reply.unknown()) return ended(LockCopy::Result::failed);
    removal_pending = removal_pending || (reply.unknown() && !plan.renewed_until);
    // EXISTS may be spurious, and a renewal whose reply was lost may be repeated: read the lock again.
    ++attempts;
  }
  return ended(LockCopy::Result::contended);
}

}  // namespace mcds
