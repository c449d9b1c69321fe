#include "common/structures/lock.hpp"

#include <algorithm>
#include <cctype>

#include "common/base/errors.hpp"
#include "common/base/json.hpp"
#include "common/primitives/key_names.hpp"

namespace mcds {

namespace {

// The server's tick, and one more second for a server stalled over it.
constexpr Duration server_holds_longer = std::chrono::seconds(2);
constexpr Duration first_poll = std::chrono::milliseconds(50);
constexpr Duration slowest_poll = std::chrono::seconds(1);
constexpr std::size_t max_note_size = 1024;
constexpr std::string_view fence_part = ":fence";

std::string checked_key(const Context& context, std::string_view name) {
  if (name.ends_with(fence_part)) {
    throw InvalidInput("a lock's name must not end in \":fence\"; such a key may be another lock's fence");
  }
  return structure_key(context, "lock", name);
}

std::string new_token(Random& random) {
  while (true) {
    std::string token = random.token();
    if (std::isdigit(static_cast<unsigned char>(token.front())) == 0) return token;
  }
}

std::string holder_json(const LockHolder& holder, WallTime now) {
  if (holder.note.size() > max_note_size)
    throw InvalidInput("the note is longer than 1024 bytes; shorten it");
  JsonObject json;
  json.bytes("host", holder.host).number("pid", holder.pid).bytes("user", holder.user);
  if (!holder.note.empty()) json.bytes("note", holder.note);
  json.time("acquired_at", now);
  return json.text();
}

// `{…}` with `finished_at` added, whatever the fields are.
std::string finished(const std::string& value, WallTime now) {
  const LockValue stored = LockValue::parse(value);
  JsonObject end;
  end.time("finished_at", now);
  if (stored.holder.size() <= 2) return stored.token + ' ' + end.text();
  return stored.token + ' ' + stored.holder.substr(0, stored.holder.size() - 1) + ',' + end.text().substr(1);
}

Duration until(SteadyTime deadline, SteadyTime now) {
  return std::max(deadline - now, Duration::zero());
}

// Whether waiting may help.
bool may_pass(ErrorCode code) {
  return code == ErrorCode::unavailable || code == ErrorCode::refused || code == ErrorCode::try_again ||
         code == ErrorCode::unknown_outcome;
}

void check_ttl(Duration ttl) {
  if (ttl <= Duration::zero()) throw InvalidInput("the ttl must be longer than zero");
}

Exptime exptime_for(Duration ttl, const Clock& clock) {
  return Exptime::after(ttl + server_holds_longer, clock.wall());
}

}  // namespace

Lock::Lock(Context context, std::string_view name)
    : context_(std::move(context)),
      key_(checked_key(context_, name)),
      fence_key_(key_ + std::string(fence_part)) {}

Lock::Lock(Context context, std::string key, std::string fence_key)
    : context_(std::move(context)), key_(std::move(key)), fence_key_(std::move(fence_key)) {}

Lock Lock::at_key(Context context, std::string key) {
  return Lock(std::move(context), std::move(key), {});
}

std::size_t Lock::server() const {
  return context_.cluster.placement().server_of(key_);
}

// The copies' servers, the owner first. With more than one, the decisions below are those of a majority.
std::vector<std::size_t> Lock::servers() const {
  return {server()};
}

std::vector<Lease::Copy> Lock::unstamped() const {
  std::vector<Lease::Copy> copies;
  for (const std::size_t server : servers()) copies.push_back({server, std::nullopt});
  return copies;
}

std::string Lock::address() const {
  return context_.cluster.address_of(server());
}

Lock::Answer Lock::acquire(const Wish& wish) {
  check_ttl(wish.ttl);
  const std::string token = new_token(context_.random);
  const SteadyTime started = context_.clock.steady();
  Duration pause = first_poll;
  for (bool first = true;; first = false) {
    const auto waited = [&] { return context_.clock.steady() - started; };
    try {
      Answer answer = try_once(wish, token, first);
      if (answer.lease || waited() >= wish.wait) return answer;
    } catch (const Failure& failure) {
      if (!may_pass(failure.code()) || waited() >= wish.wait) throw;
    }
    const auto jittered = Duration(
        static_cast<Duration::rep>(static_cast<double>(pause.count()) * (0.5 + context_.random.unit())));
    const Duration left = wish.wait == Duration::max() ? jittered : wish.wait - waited();
    const Duration nap = std::min(jittered, left);
    context_.clock.sleep_for(nap);
    pause = std::min(pause + pause / 2, slowest_poll);
  }
}

// With further copies: one AcquireCopy each; a majority won → acquired, the deadline from the earliest
// counts_from() less the drift, the others released; otherwise all that won released.
Lock::Answer Lock::try_once(const Wish& wish, const std::string& token, bool first) {
  const WallTime now = context_.clock.wall();
  Lease lease;
  lease.token = token;
  lease.value = token + ' ' + holder_json(wish.holder, now);
  AcquireCopy copy({.server = servers().front(),
                    .key = key_,
                    .token = token,
                    .value = lease.value,
                    .fence_key = wish.fence ? fence_key_ : std::string(),
                    .clock = context_.clock,
                    .exptime = exptime_for(wish.ttl, context_.clock),
                    .fence_with_add = first});
  LockExchange* exchange = &copy;
  drive(context_, {&exchange, 1});
  if (copy.result() == AcquireCopy::Result::won) return won(wish, copy, std::move(lease), first);
  if (copy.result() == AcquireCopy::Result::busy) {
    return {std::nullopt, copy.rival() ? copy.rival()->holder : std::string(), servers().front()};
  }
  if (copy.in_doubt()) {
    throw UnknownOutcome("the lock may have been taken in vain: " + copy.failure().failure->message +
                             "; it is free after its ttl, or release it with --token " + token,
                         address());
  }
  expect(context_.cluster, copy.failure());
  return {};
}

Lock::Answer Lock::won(const Wish& wish, const AcquireCopy& copy, Lease lease, bool first) {
  const std::size_t server = servers().front();
  lease.copies = {{server, copy.cas()}};
  lease.fence = copy.fence();
  lease.deadline = copy.counts_from() + wish.ttl;
  // What an earlier attempt of this wait had added, its reply lost, may be about to expire.
  if (copy.read_back() && !first && renew_copies(lease, lease.value, wish.ttl) != Renewal::renewed) {
    return {std::nullopt, {}, server};
  }
  const Duration left = lease.deadline - context_.clock.steady();
  if (left <= Duration::zero()) {
    give_back(lease);
    throw NotApplied(ErrorCode::try_again,
                     "the server took longer than the ttl to answer; try again or raise the ttl", address());
  }
  if (wish.fence && !lease.fence) {
    give_back(lease);
    expect(context_.cluster, copy.failure());
  }
  lease.expires_at = context_.clock.wall() + std::chrono::duration_cast<std::chrono::microseconds>(left);
  return {std::move(lease), {}, server};
}

// Nobody is told of this lease: it would only stand in the way of others.
void Lock::give_back(const Lease& lease) {
  try {
    release_copies(lease.token, lease.copies);
  } catch (const Failure&) {
    return;  // the caller reports the first failure; the key expires
  }
}

// With further copies: renewed where a majority was; lost where a majority is not ours any more.
Lock::Renewal Lock::renew_copies(Lease& lease, std::optional<std::string> value, Duration ttl) {
  Lease::Copy& copy = lease.copies.front();
  RenewCopy renewal(copy.server, key_, lease.token, std::move(value), exptime_for(ttl, context_.clock),
                    copy.cas);
  copy.cas.reset();
  LockExchange* exchange = &renewal;
  drive(context_, {&exchange, 1});
  switch (renewal.result()) {
    case RenewCopy::Result::renewed:
      break;
    case RenewCopy::Result::lost:
      return renewal.rival() ? Renewal::not_owner : Renewal::not_held;
    case RenewCopy::Result::failed:
      expect(context_.cluster, renewal.failure());
      [[fallthrough]];
    default:
      throw Contention("the lock's key kept changing under the renewal; try again", address());
  }
  copy.cas = renewal.cas();
  lease.deadline = renewal.counts_from() + ttl;
  lease.expires_at = context_.clock.wall() + std::chrono::duration_cast<std::chrono::microseconds>(
                                                 until(lease.deadline, context_.clock.steady()));
  return Renewal::renewed;
}

Lock::Renewal Lock::renew(Lease& lease, Duration ttl) {
  check_ttl(ttl);
  return renew_copies(lease, lease.value, ttl);
}

Lock::RenewalByToken Lock::renew(std::string_view token, Duration ttl) {
  check_ttl(ttl);
  RenewalByToken result{Renewal::not_held, {}};
  result.lease.token = std::string(token);
  result.lease.copies = unstamped();
  result.renewal = renew_copies(result.lease, std::nullopt, ttl);
  return result;
}

Lock::Renewal Lock::leave(const Lease& lease, Duration hold) {
  Lease left = lease;
  left.value = finished(lease.value, context_.clock.wall());
  return renew_copies(left, left.value, hold);
}

// With further copies: one ReleaseCopy each, all of them, whatever became of the others.
Lock::Freed Lock::release_copies(std::optional<std::string> token, std::span<const Lease::Copy> copies) {
  const Lease::Copy& copy = copies.front();
  ReleaseCopy release(copy.server, key_, std::move(token), copy.cas);
  LockExchange* exchange = &release;
  drive(context_, {&exchange, 1});
  const std::string holder = release.value() ? release.value()->holder : std::string();
  switch (release.result()) {
    case ReleaseCopy::Result::released:
      return {Freed::Result::released, holder};
    case ReleaseCopy::Result::not_owner:
      return {Freed::Result::not_owner, holder};
    case ReleaseCopy::Result::not_held:
      return {Freed::Result::not_held, holder};
    case ReleaseCopy::Result::failed:
      expect(context_.cluster, release.failure());
      [[fallthrough]];
    default:
      throw Contention("the lock's key kept changing under the release; try again", address());
  }
}

Lock::Freed Lock::release(const Lease& lease) {
  return release_copies(lease.token, lease.copies);
}

Lock::Freed Lock::release(std::string_view token) {
  return release_copies(std::string(token), unstamped());
}

Lock::Freed Lock::force_release() {
  return release_copies(std::nullopt, unstamped());
}

std::vector<Lock::Shown> Lock::show(Context context, std::span<const std::string> names) {
  std::vector<Request> batch;
  for (const std::string& name : names) {
    const Lock lock(context, name);
    batch.push_back(Request::probe(lock.key(), lock.server()));
  }
  const std::vector<Reply> replies = context.cluster.execute(batch);
  std::vector<Shown> shown;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Reply& reply = replies[i];
    Shown& one = shown.emplace_back();
    one.name = names[i];
    one.server = reply.server;
    if (reply.failed()) one.failure = reply;
    one.held = reply.outcome == Outcome::hit;
    if (!one.held) continue;
    one.holder = LockValue::parse(reply.value).holder;
    one.ttl = reply.age.ttl;
  }
  return shown;
}

}  // namespace mcds
