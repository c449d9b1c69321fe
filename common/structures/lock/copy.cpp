#include "common/structures/lock/copy.hpp"

#include <algorithm>
#include <cassert>
#include <cctype>

#include "common/base/json.hpp"

namespace mcds {

namespace {

// Bounds of every loop. A cas or remove_if on our own value conflicts only with a server's slab mover or
// another client breaking the lock; an add finds a key that is gone when read only when holders change just
// then.
constexpr int most_attempts = 8;
constexpr int most_adds = 4;
constexpr int most_fences = 2;
constexpr int most_reads = 2;
// While one acquire waits; older ones have long expired.
constexpr std::size_t most_spent = 16;

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

bool AddTokens::is_ours(std::string_view token) const {
  return token == next || std::find(spent.begin(), spent.end(), token) != spent.end();
}

std::string AddTokens::text() const {
  std::string text;
  for (const std::string& token : spent) text += token + " or ";
  return text + next;
}

void drive(Context& context, std::span<LockExchange* const> exchanges) {
  while (true) {
    std::vector<Request> batch;
    std::vector<std::size_t> sizes;
    for (const LockExchange* exchange : exchanges) {
      const std::vector<Request> requests = exchange->requests();
      sizes.push_back(requests.size());
      batch.insert(batch.end(), requests.begin(), requests.end());
    }
    if (batch.empty()) return;
    const SteadyTime sent = context.clock.steady();
    const std::vector<Reply> replies = context.cluster.execute(batch);
    assert(replies.size() == batch.size());
    std::span<const Reply> rest = replies;
    for (std::size_t i = 0; i < exchanges.size(); ++i) {
      if (sizes[i] != 0) exchanges[i]->take(rest.first(sizes[i]), sent);
      rest = rest.subspan(sizes[i]);
    }
  }
}

std::vector<Request> AcquireCopy::requests() const {
  switch (step_) {
    case Step::add: {
      std::vector<Request> requests{Request::add(plan_.key, plan_.value, plan_.exptime)
                                        .on(plan_.server)
                                        .relying_on_expiry()
                                        .relying_on_cas()};
      if (!plan_.fence_key.empty() && plan_.fence_with_add) requests.push_back(fence_request());
      return requests;
    }
    case Step::read:
      return {Request::gets(plan_.key).on(plan_.server)};
    case Step::exchange:
      return {Request::compare_and_set(plan_.key, plan_.value, plan_.exptime, spent_cas_).on(plan_.server)};
    case Step::fence:
      return {fence_request()};
    case Step::settled:
      break;
  }
  return {};
}

Exptime fence_end(std::uint64_t microseconds) {
  constexpr std::uint64_t week_s = 7 * 24 * 3600;
  return Exptime::absolute(static_cast<std::int64_t>(microseconds / 1'000'000 + week_s))
      .value_or(Exptime::never());
}

Request AcquireCopy::fence_request() const {
  const auto now = std::max<std::int64_t>(plan_.clock.wall().time_since_epoch().count(), 1);
  const auto first = static_cast<std::uint64_t>(now);
  return Request::incr_or_create(plan_.fence_key, 1, first, fence_end(first))
      .lying_with(plan_.key)
      .on(plan_.server);
}

void AcquireCopy::take(std::span<const Reply> replies, SteadyTime sent) {
  switch (step_) {
    case Step::add:
      counts_from_ = sent;
      return take_add(replies);
    case Step::read:
      return take_read(replies.front());
    case Step::exchange:
      counts_from_ = sent;
      return take_exchange(replies.front());
    case Step::fence:
      return take_fence(replies.front());
    case Step::settled:
      break;
  }
}

void AcquireCopy::take_add(std::span<const Reply> replies) {
  const Reply& added = replies.front();
  ++adds_;
  if (replies.size() > 1 && !replies[1].failed()) fence_ = replies[1].number;
  if (added.outcome == Outcome::stored) return won(added.cas);
  // A number drawn before the add that will count may be older than another holder's.
  fence_.reset();
  if (added.outcome == Outcome::not_stored || added.unknown()) {
    in_doubt_ = in_doubt_ || added.unknown();
    if (added.failed()) failure_ = added;
    step_ = Step::read;
    return;
  }
  failure_ = added;
  settle(Result::failed);
}

void AcquireCopy::take_read(const Reply& reply) {
  if (reply.outcome == Outcome::hit) {
    LockValue stored = LockValue::parse(reply.value);
    // Without a doubt it is what an earlier attempt left, and as old as that.
    if (stored.token == plan_.tokens.next && in_doubt_) return won(reply.cas);
    if (plan_.tokens.is_ours(stored.token) && ++exchanges_ < most_attempts) {
      spent_cas_ = reply.cas;
      step_ = Step::exchange;
      return;
    }
    rival_ = std::move(stored);
    return settle(Result::busy);
  }
  if (reply.outcome == Outcome::miss && !in_doubt_ && plan_.adds_again && adds_ < most_adds) {
    step_ = Step::add;
    return;
  }
  vanished_ = reply.outcome == Outcome::miss && in_doubt_;
  settle(in_doubt_ ? Result::failed : Result::busy);
}

void AcquireCopy::take_exchange(const Reply& reply) {
  if (reply.outcome == Outcome::stored) return won(reply.cas);
  if (reply.failed()) failure_ = reply;
  if (reply.failed() && !reply.unknown()) return settle(Result::failed);
  in_doubt_ = in_doubt_ || reply.unknown();
  step_ = Step::read;
}

void AcquireCopy::take_fence(const Reply& reply) {
  if (!reply.failed()) {
    fence_ = reply.number;
    return settle(Result::won);
  }
  failure_ = reply;
  // A number that was drawn and got lost is a gap, which does no harm.
  if (++fences_ >= most_fences || !reply.unknown()) settle(Result::won);
}

void AcquireCopy::won(CasUnique cas) {
  if (cas.value != 0) cas_ = cas;
  result_ = Result::won;
  step_ = plan_.fence_key.empty() || fence_ ? Step::settled : Step::fence;
}

void AcquireCopy::settle(Result result) {
  result_ = result;
  step_ = Step::settled;
}

HeldCopy::HeldCopy(Plan plan) : plan_(std::move(plan)) {
  if (plan_.renewed_until && !plan_.value) plan_.cas.reset();
}

std::vector<Request> HeldCopy::requests() const {
  const auto& [server, key, token, cas, renewed_until, value, copies] = plan_;
  if (result_ != Result::pending) return {};
  if (!cas) return {Request::gets(key).on(server)};
  if (!renewed_until) return {Request::remove_if(key, *cas).on(server)};
  return {Request::compare_and_set(key, *value, *renewed_until, *cas).on(server)};
}

void HeldCopy::take(std::span<const Reply> replies, SteadyTime sent) {
  if (!plan_.cas) return take_read(replies.front());
  sent_ = sent;
  take_change(replies.front());
}

void HeldCopy::take_read(const Reply& reply) {
  // An idle connection may have died unnoticed: reading again is harmless.
  if (reply.failed() && ++unanswered_reads_ < most_reads) return;
  if (reply.failed()) {
    if (!removal_in_doubt_) failure_ = reply;
    result_ = Result::failed;
    return;
  }
  // Ours was there and is not any more: the removal whose reply was lost, or the expiry. It is free of us.
  const auto lost = [this](Result result) { return removal_in_doubt_ ? Result::done : result; };
  if (reply.outcome != Outcome::hit) {
    result_ = lost(Result::gone);
    return;
  }
  value_ = LockValue::parse(reply.value);
  if (plan_.token && value_->token != *plan_.token) {
    result_ = lost(Result::not_ours);
    return;
  }
  // One that is kept in a single copy is free once that is.
  if (!plan_.renewed_until && other_number(std::span(&*value_, 1), plan_.copies).value_or(1) != 1) {
    result_ = Result::other_number;
    return;
  }
  plan_.cas = reply.cas;
  if (!plan_.value) plan_.value = reply.value;
}

void HeldCopy::take_change(const Reply& reply) {
  plan_.cas.reset();
  if (reply.outcome == Outcome::stored || reply.outcome == Outcome::deleted) {
    if (reply.cas.value != 0) plan_.cas = reply.cas;
    result_ = Result::done;
    return;
  }
  if (reply.failed()) failure_ = reply;
  if (reply.failed() && !reply.unknown()) {
    result_ = Result::failed;
    return;
  }
  removal_in_doubt_ = removal_in_doubt_ || (reply.unknown() && !plan_.renewed_until);
  // exists may be spurious, and a renewal whose reply was lost may be repeated: the lock must be read.
  if (++attempts_ >= most_attempts) result_ = Result::contended;
}

}  // namespace mcds
