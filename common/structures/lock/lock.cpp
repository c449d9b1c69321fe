#include "common/structures/lock/lock.hpp"

#include <map>

#include "common/base/errors.hpp"
#include "common/base/units.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/primitives/key_names.hpp"
#include "common/replication/replicas.hpp"
#include "common/structures/lock/copy.hpp"
#include "common/structures/lock/slots.hpp"

namespace mcds {

namespace {

// The server's tick, and one more second for a server that stalls during it.
constexpr Duration server_holds_longer = std::chrono::seconds(2);
constexpr int max_splits = 8;    // in a row, each followed by a short pause
constexpr int max_vanished = 3;  // adds whose effect has vanished, each followed by another at once
constexpr Duration first_poll = std::chrono::milliseconds(50);
constexpr Duration max_poll_interval = std::chrono::seconds(1);
constexpr std::string_view fence_part = ":fence";

std::string checked_key(const Context& context, std::string_view name) {
  if (name.ends_with(fence_part)) {
    throw InvalidInput(
        "a lock's name must not end in ':fence', which is reserved for fences of locks; use another name");
  }
  return structure_key(context, "lock", name);
}

Duration until(SteadyTime deadline, SteadyTime now) {
  return std::max(deadline - now, Duration::zero());
}

// Returns what `act` returns for each copy's plan. All requests leave together.
template <typename Plan, typename Act>
auto act_on_all(const Context& context, const std::vector<Plan>& plans, const Act& act) {
  std::vector<std::invoke_result_t<Act, const Context&, const Plan&>> results(plans.size());
  const FiberGroup runs(context, plans.size());
  runs.each([&](std::size_t run) { results[run] = act(runs.at(run), plans[run]); });
  return results;
}

// Returns the holder's remaining ttl, given the remaining ttl of the item.
std::chrono::seconds holders_ttl(const std::string& holder, std::chrono::seconds left) {
  const auto asked = ttl_of({{}, holder});
  if (!asked) return left;
  left =
      std::max(left - std::chrono::floor<std::chrono::seconds>(server_holds_longer), std::chrono::seconds(0));
  if (json_field(holder, "finished_at")) return left;
  return std::min(left, std::chrono::floor<std::chrono::seconds>(*asked));
}

}  // namespace

Lock::Lock(Context context, std::string_view name, Duration max_ttl)
    : context_(std::move(context)),
      key_(checked_key(context_, name)),
      fence_key_(key_ + std::string(fence_part)),
      max_ttl_(max_ttl) {}

Lock::Lock(Context context, std::string key, std::string fence_key, Duration max_ttl)
    : context_(std::move(context)),
      key_(std::move(key)),
      fence_key_(std::move(fence_key)),
      max_ttl_(max_ttl) {}

Lock Lock::of_slot(Context context, std::string_view name, std::size_t slot, Duration max_ttl) {
  Lock lock(std::move(context), name, max_ttl);
  if (slot == 0) return lock;
  lock.key_ += ":slot:" + std::to_string(slot);
  lock.fence_key_ = lock.key_ + std::string(fence_part);
  lock.token_suffix_ = slot_suffix(slot);
  return lock;
}

void Lock::check_ttl(Duration ttl) const {
  if (ttl <= Duration::zero()) throw InvalidInput("the ttl must be longer than zero");
  if (votes_asked() == 0 || ttl <= max_ttl_) return;
  throw InvalidInput(
      "the ttl exceeds " + format_duration(max_ttl_) +
      ", the maximum for a lock with copies; shorten it, or raise longest_lock_ttl on every client");
}

// Returns the deadline, without the part of the ttl by which clocks of different rates may disagree.
SteadyTime Lock::deadline_of(SteadyTime counts_from, Duration ttl) const {
  const Duration drift = ttl / 100 + std::chrono::milliseconds(2);
  return counts_from + ttl - (votes_asked() == 0 ? Duration::zero() : drift);
}

std::vector<Lease::Copy> Lock::without_cas() const {
  std::vector<Lease::Copy> copies;
  for (const std::size_t server : servers()) copies.push_back({server, std::nullopt});
  return copies;
}

Lock::Answer Lock::poll(const Context& context, Duration wait,
                        const std::function<Answer(bool first)>& attempt) {
  Polling polling(context, wait, first_poll, max_poll_interval);
  for (bool first = true;; first = false) {
    try {
      Answer answer = attempt(first);
      if (answer.lease || polling.over()) return answer;
    } catch (const Failure& failure) {
      if (!may_pass(failure.code()) || polling.over()) throw;
    }
    polling.pause();
  }
}

Lock::Answer Lock::acquire(const AcquireOptions& acquire_options) {
  check_ttl(acquire_options.ttl);
  PendingAdds tokens = new_tokens();
  try {
    return poll(context_, acquire_options.wait,
                [&](bool first) { return try_now(acquire_options, tokens, first); });
  } catch (const Interrupted&) {
    withdraw(tokens);
    throw;
  }
}

// Runs between two attempts. Releases what earlier adds without reply may have left.
void Lock::withdraw(const PendingAdds& tokens) {
  for (const std::string& token : tokens.spent) {
    const auto freed = attempt([&] { return release_copies(token, without_cas()); });
    if (freed.failure())
      throw UnknownOutcome("interrupted, and the lock may have been taken until its ttl ends: " +
                               std::string(freed.failure()->what()) + "; release it with --token " +
                               tokens.text(),
                           address());
  }
}

PendingAdds Lock::new_tokens() const {
  return {new_lock_token(context_.random) + token_suffix_, {}, false, token_suffix_};
}

Lock::Answer Lock::try_now(const AcquireOptions& acquire_options, PendingAdds& tokens, bool first) {
  int splits = 0;
  int vanished = 0;
  for (;; first = false) {
    try {
      Answer answer = try_servers(acquire_options, tokens, first);
      // Several clients took some copies each. One of them must get the lock.
      if (!answer.split || ++splits > max_splits) return check_slots(acquire_options, std::move(answer));
      back_off(context_, splits + 3);
    } catch (const Failure&) {
      if (!std::exchange(tokens.vanished, false) || ++vanished > max_vanished) throw;
    }
  }
}

// Refuses another number of slots under this name, because the smaller one would not limit the holders.
Lock::Answer Lock::check_slots(const AcquireOptions& acquire_options, Answer answer) const {
  const std::size_t slots = slots_of(answer.holder).value_or(acquire_options.holder.slots);
  if (!answer.lease && slots != acquire_options.holder.slots)
    throw other_slots(acquire_options.holder.slots, slots, address());
  return answer;
}

std::string Lock::value_for(const AcquireOptions& acquire_options, const std::string& token) const {
  LockHolder holder = acquire_options.holder;
  holder.copies = context_.copies;
  return token + ' ' + holder_json(holder, context_.clock.wall(), acquire_options.ttl);
}

Exptime Lock::exptime_of(Duration ttl) const {
  return Exptime::after(ttl + server_holds_longer, context_.clock.wall());
}

// Renews the lease if a majority is renewed. The lock is lost if a majority cannot be ours any more.
Lock::Renewal Lock::renew_copies(Lease& lease, const std::optional<std::string>& value, Duration ttl) {
  std::vector<LockCopyUpdate> plans;
  for (Lease::Copy& copy : lease.copies) {
    plans.push_back({.server = copy.server,
                     .key = key_,
                     .token = lease.token,
                     .cas = std::exchange(copy.cas, {}),
                     .renewed_until = exptime_of(ttl),
                     .value = value});
  }
  const std::vector<LockCopy> renewals = act_on_all(context_, plans, change_copy);
  std::size_t renewed = 0;
  SteadyTime from = SteadyTime::max();
  std::vector<std::size_t> skipped;  // renewed, or not to be taken now
  for (std::size_t i = 0; i < renewals.size(); ++i) {
    const LockCopy& one = renewals[i];
    if (one.result != LockCopy::Result::gone) skipped.push_back(one.server);
    if (one.result != LockCopy::Result::done) continue;
    ++renewed;
    from = std::min(from, one.counts_from);
    lease.copies[i].cas = one.cas;
  }
  if (renewed < majority()) return not_renewed(renewals);
  lease.deadline = deadline_of(from, ttl);
  retake(lease, skipped, ttl);
  lease.expires_at = context_.clock.wall() + std::chrono::duration_cast<std::chrono::microseconds>(
                                                 until(lease.deadline, context_.clock.steady()));
  return Renewal::renewed;
}

Lock::Renewal Lock::not_renewed(std::span<const LockCopy> renewals) const {
  std::size_t not_ours = context_.copies - renewals.size();
  bool rival = false;
  const LockCopy* failed = nullptr;
  for (const LockCopy& one : renewals) {
    if (one.is_lost()) ++not_ours;
    rival = rival || one.result == LockCopy::Result::not_ours;
    if (one.result == LockCopy::Result::failed) failed = &one;
  }
  if (not_ours > context_.copies - majority()) return rival ? Renewal::not_owner : Renewal::not_held;
  if (failed != nullptr) expect(context_.cluster, failed->failure);
  throw Contention(
      "the lock's key kept changing during the renewal, or its server closes every connection; try again",
      address());
}

// Takes the lost copies again while a majority is ours, so that they exclude other clients too.
void Lock::retake(Lease& lease, std::span<const std::size_t> skipped, Duration ttl) {
  if (lease.value.empty()) return;
  std::vector<LockCopyRequest> plans;
  for (const std::size_t server : servers()) {
    if (std::ranges::find(skipped, server) != skipped.end()) continue;
    plans.push_back({.server = server,
                     .key = key_,
                     .tokens = {lease.token, {}},
                     .value = lease.value,
                     .fence_key = {},
                     .exptime = exptime_of(ttl)});
  }
  for (const LockCopy& taken : act_on_all(context_, plans, take_copy)) {
    if (taken.result != LockCopy::Result::done) continue;
    std::erase_if(lease.copies, [&](const Lease::Copy& copy) { return copy.server == taken.server; });
    lease.copies.push_back({taken.server, taken.cas});
  }
}

Lock::Renewal Lock::renew(Lease& lease, Duration ttl) {
  check_ttl(ttl);
  return renew_copies(lease, lease.value, ttl);
}

// The values that the copies hold under one token.
struct Lock::Stored {
  std::vector<Lease::Copy> copies;  // all; with a cas token if the value is `value`
  std::optional<std::string> value;
  std::optional<Reply> failure;  // of a copy that did not answer
};

Lock::Stored Lock::stored_under(std::string_view token) const {
  Stored stored{without_cas(), {}, {}};
  std::vector<Request> batch;
  for (const Lease::Copy& copy : stored.copies) batch.push_back(Request::gets(key_).on(copy.server));
  const auto replies = context_.cluster.execute(batch);
  std::vector<LockValue> ours;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (replies[i].failed()) stored.failure = replies[i];
    if (replies[i].outcome != Outcome::hit) continue;
    LockValue value = LockValue::parse(replies[i].value);
    if (value.token != token) continue;
    ours.push_back(std::move(value));
    if (!stored.value) stored.value = replies[i].value;
    if (replies[i].value == *stored.value) stored.copies[i].cas = replies[i].cas;
  }
  if (const auto copies = other_number(ours, context_.copies)) throw other_copies(*copies, address());
  return stored;
}

Lock::RenewalByToken Lock::renew(std::string_view token, std::optional<Duration> ttl) {
  if (ttl) check_ttl(*ttl);
  Stored stored = stored_under(token);
  if (!stored.value && !ttl && stored.failure) expect_read(context_.cluster, *stored.failure);
  RenewalByToken result{Renewal::not_held, {}, usual_lock_ttl};
  if (stored.value) result.ttl = ttl_of(LockValue::parse(*stored.value)).value_or(usual_lock_ttl);
  if (ttl) result.ttl = *ttl;
  check_ttl(result.ttl);
  if (stored.value) stored.value = with_ttl(*stored.value, result.ttl);
  result.lease.token = std::string(token);
  result.lease.copies = std::move(stored.copies);
  result.renewal = renew_copies(result.lease, stored.value, result.ttl);
  return result;
}

Lock::Renewal Lock::leave(const Lease& lease, Duration hold) {
  Lease left = lease;
  left.value = finished(lease.value, context_.clock.wall());
  return renew_copies(left, left.value, hold);
}

// Releases all copies, whether or not some fail.
Lock::Freed Lock::release_copies(const std::optional<std::string>& token,
                                 std::span<const Lease::Copy> copies) {
  using Result = LockCopy::Result;
  std::vector<LockCopyUpdate> plans;
  for (const Lease::Copy& copy : copies) {
    plans.push_back(
        {.server = copy.server, .key = key_, .token = token, .cas = copy.cas, .copies = context_.copies});
  }
  const std::vector<LockCopy> releases = act_on_all(context_, plans, change_copy);
  const LockCopy& reported =
      *std::ranges::max_element(releases, [](auto& a, auto& b) { return a.result < b.result; });
  Freed freed{Freed::Result::not_held, reported.value ? reported.value->holder : std::string(), {}};
  for (const LockCopy& one : releases)
    freed.copies.push_back(one.outcome(context_, one.result == Result::not_ours));
  if (reported.result == Result::other_number)
    throw other_copies(*other_number(std::span(&*reported.value, 1), context_.copies), address());
  if (reported.result == Result::failed) expect(context_.cluster, reported.failure);
  if (reported.result == Result::contended)
    throw Contention(
        "the lock's key kept changing during the release, or its server closes every connection; try again",
        address());
  if (reported.result == Result::done) freed.result = Freed::Result::released;
  if (reported.result == Result::not_ours) freed.result = Freed::Result::not_owner;
  return freed;
}

Lock::Forgotten Lock::forget(const Context& context, std::string_view name) {
  std::vector<Request> keys, fences;
  for (std::size_t slot = 0; slot < max_lock_slots; ++slot) {
    const Lock lock = of_slot(context, name, slot, default_max_ttl);
    for (const std::size_t server : lock.servers()) {
      keys.push_back(Request::get(lock.key_).on(server));
      fences.push_back(Request::gets(lock.fence_key_).on(server));
    }
  }
  // The fences are read first, so that a fence drawn by a new holder has another cas token.
  const std::vector<Reply> drawn = context.cluster.execute(fences);
  for (const Reply& reply : context.cluster.execute(keys)) {
    if (expect_read(context.cluster, reply).outcome == Outcome::hit) return Forgotten::held;
  }
  std::vector<Request> removals;
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    if (expect_read(context.cluster, drawn[i]).outcome != Outcome::hit) continue;
    removals.push_back(Request::remove_if(fences[i].key, drawn[i].cas).on(*fences[i].server));
  }
  for (const Reply& reply : context.cluster.execute(removals)) {
    if (expect(context.cluster, reply).outcome == Outcome::exists) return Forgotten::held;
  }
  return removals.empty() ? Forgotten::nothing : Forgotten::forgotten;
}

std::vector<Lock::Shown> Lock::show(const Context& context, std::span<const std::string> names) {
  std::vector<Lock> locks;
  for (const std::string& name : names) locks.emplace_back(context, name);
  std::vector<Shown> all = show(context, locks);
  for (std::size_t i = 0; i < names.size(); ++i) all[i].name = names[i];
  return all;
}

std::vector<Lock::Shown> Lock::show(const Context& context, std::span<const Lock> locks) {
  std::vector<Request> batch;
  for (const Lock& lock : locks) batch.push_back(Request::probe(lock.key(), 0));
  for (Request& request : batch) request.server.reset();
  const auto replies = execute_copies(context, batch);
  std::vector<Shown> all;
  for (std::size_t i = 0; i < locks.size(); ++i) all.push_back(locks[i].shown(replies[i]));
  return all;
}

// Returns the state of the lock: held by the token that a majority has, or a failure if silent servers could
// decide it.
Lock::Shown Lock::shown(std::span<const Reply> replies) const {
  Shown one;
  one.server = replies.front().server;
  std::map<std::string, std::size_t> votes;
  std::size_t silent = 0;
  const Reply* failed = nullptr;
  std::vector<LockValue> values;
  for (const Reply& reply : replies) {
    if (reply.failed()) failed = &reply;
    silent += reply.failed() ? 1 : 0;
    if (reply.outcome == Outcome::hit) ++votes[values.emplace_back(LockValue::parse(reply.value)).token];
  }
  const auto most = std::ranges::max_element(votes, [](auto& a, auto& b) { return a.second < b.second; });
  const std::size_t count = most == votes.end() ? 0 : most->second;
  one.held = count >= majority();
  if (!one.held && failed != nullptr && count + silent >= majority())
    one.failure = copy_outcome(context_, *failed).failure;
  if (const auto copies = other_number(values, context_.copies))
    one.failure = other_copies(*copies, address());
  for (const Reply& reply : replies) {
    const LockValue value = reply.outcome == Outcome::hit ? LockValue::parse(reply.value) : LockValue{};
    const bool holds = one.held && reply.outcome == Outcome::hit && value.token == most->first;
    if (holds) one.holder = value.holder;
    if (holds && (!one.ttl || (reply.age.ttl && *reply.age.ttl < *one.ttl))) one.ttl = reply.age.ttl;
    CopyOutcome outcome = copy_outcome(context_, reply);
    if (!outcome.failure) outcome.yes = one.held ? holds : reply.outcome == Outcome::hit;
    one.copies.push_back(std::move(outcome));
  }
  if (one.ttl && one.ttl->count() > 0) one.ttl = holders_ttl(one.holder, *one.ttl);
  return one;
}

}  // namespace mcds
