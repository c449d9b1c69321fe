#include "common/structures/cache.hpp"

#include <algorithm>
#include <array>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/primitives/key_names.hpp"

namespace mcds {

namespace {

// How much longer than its rights say a lock's key lives, and an entry: the server's tick, and a stall over
// it.
constexpr Duration slack = std::chrono::seconds(2);
constexpr Duration first_poll = std::chrono::milliseconds(20);
constexpr Duration slowest_poll = std::chrono::milliseconds(500);
constexpr Duration longest_nap = 2 * slowest_poll;  // with its jitter, and the trips
constexpr int most_claims = 3;
constexpr int most_removals = 3;
constexpr std::string_view rebuild_part = ":rebuild";

std::string checked_key(const Context& context, std::string_view name) {
  if (name.ends_with(rebuild_part)) {
    throw InvalidInput("a cache key must not end in \":rebuild\"; that could be another entry's lock");
  }
  return structure_key(context, "cache", name);
}

Exptime exptime_of(const CacheTerms& terms, WallTime now) {
  return Exptime::after(terms.ttl + terms.stale + slack, now);
}

void check_terms(const CacheTerms& terms, WallTime now) {
  if (terms.ttl <= Duration::zero()) throw InvalidInput("the ttl must be longer than zero");
  if (terms.rebuild_ttl < shortest_rebuild_ttl) {
    throw InvalidInput("the rebuild ttl must be at least 4s: its lock has to be renewed in time");
  }
  exptime_of(terms, now);  // too long to be kept: told before anything runs
}

WallTime plus(WallTime time, Duration duration) {
  return time + std::chrono::floor<std::chrono::microseconds>(duration);
}

bool looks_like_ours(std::string_view value) {
  return value.starts_with("K1 ") || value.starts_with("P1 ");
}

// What a value is recognised by when it is read again.
std::string identity_of(std::string_view value) {
  const auto record = decode_cache_record(value);
  return record ? record->build : digest128(value);
}

// The record; nullopt when the value is one of ours, damaged.
std::optional<CacheRecord> record_of(const Context& context, const std::string& key, std::string_view value,
                                     std::size_t server) {
  auto record = decode_cache_record(value);
  if (record || looks_like_ours(value)) return record;
  throw CorruptData(key + " holds no cache entry: it is another program's; use another key or remove it",
                    context.cluster.address_of(server));
}

// Whether the rebuild may do without the lock when taking it failed so.
bool may_go_unlocked(ErrorCode code) {
  return code == ErrorCode::unavailable || code == ErrorCode::refused || code == ErrorCode::try_again ||
         code == ErrorCode::unknown_outcome;
}

}  // namespace

CacheRebuild::CacheRebuild(Context context, std::string key, CacheTerms terms)
    : context_(std::move(context)),
      key_(std::move(key)),
      terms_(std::move(terms)),
      lock_(Lock::at_key(context_, key_ + std::string(rebuild_part))) {}

Duration CacheRebuild::lease_ttl() const {
  return terms_.rebuild_ttl - slack - longest_nap;
}

bool CacheRebuild::take_lock(std::string& rival, bool unlocked) {
  try {
    Lock::Answer answer = lock_.acquire({.ttl = lease_ttl(), .holder = terms_.holder});
    lease_ = std::move(answer.lease);
    rival = std::move(answer.holder);
    return lease_.has_value();
  } catch (const Failure& failure) {
    if (!unlocked || !may_go_unlocked(failure.code())) throw;
    return true;
  }
}

// Adds a placeholder and reads what is there, in one trip. Each attempt has its own build: one whose reply
// was lost may be executed after an invalidation, and must not be taken for the one that was invalidated.
std::optional<CacheRecord> CacheRebuild::claim() {
  const Exptime exptime = Exptime::after(terms_.rebuild_ttl + slack, context_.clock.wall());
  for (int attempt = 0; attempt < most_claims; ++attempt) {
    CacheRecord placeholder;
    placeholder.build = context_.random.token();
    placeholder.placeholder = true;
    const std::array batch{Request::add(key_, encode(placeholder), exptime), Request::get(key_)};
    const std::vector<Reply> replies = context_.cluster.execute(batch);
    if (expect_read(context_.cluster, replies[1]).outcome == Outcome::miss) continue;
    auto record = record_of(context_, key_, replies[1].value, replies[1].server);
    replaces_ = identity_of(replies[1].value);
    if (replaces_ == placeholder.build) return std::nullopt;
    if (record) keep_until_ = record->stale_until;
    if (record && record->fresh(context_.clock.wall()) && !terms_.refresh) return record;
    if (ends_soon(record)) keep();
    return std::nullopt;
  }
  return std::nullopt;
}

bool CacheRebuild::ends_soon(const std::optional<CacheRecord>& record) const {
  return !record || record->placeholder ||
         record->stale_until < plus(context_.clock.wall(), terms_.rebuild_ttl);
}

void CacheRebuild::keep() {
  const WallTime now = context_.clock.wall();
  const Duration left = std::max<Duration>(keep_until_ - now, terms_.rebuild_ttl);
  static_cast<void>(context_.cluster.execute(Request::touch(key_, Exptime::after(left + slack, now))));
}

CacheRebuild::Stored CacheRebuild::store(CacheRecord record) {
  if (record.out.size() + record.err.size() > max_cached_size) return Stored::too_large;
  const WallTime now = context_.clock.wall();
  record.build = context_.random.token();
  record.made_at = now;
  record.fresh_until = plus(now, terms_.ttl);
  record.stale_until = plus(record.fresh_until, terms_.stale);
  const std::string value = encode(record);
  const Exptime exptime = exptime_of(terms_, now);
  Stored stored = Stored::superseded;
  cas_update(context_, key_, [&](const Observed& observed) -> std::optional<Write> {
    const std::string found = observed.found ? identity_of(observed.value) : std::string();
    stored = found == record.build ? Stored::stored : Stored::superseded;
    if (found.empty() || found != replaces_) return std::nullopt;
    stored = Stored::stored;
    return Write{value, exptime, 0};
  });
  return stored;
}

void CacheRebuild::end(bool succeeded) {
  if (!lease_) return;
  if (succeeded)
    lock_.release(*lease_);
  else
    lock_.leave(*lease_, Duration::zero());  // the key's slack is the pause
}

Cache::Cache(Context context, std::string_view name)
    : context_(std::move(context)),
      key_(checked_key(context_, name)),
      lock_key_(key_ + std::string(rebuild_part)) {}

// Whether it is fresh; what may be replayed otherwise goes to `busy`, too.
bool Cache::look(const CacheTerms& terms, Answer& busy) {
  busy.record.reset();
  const Reply reply = context_.cluster.execute(Request::get(key_));
  if (expect_read(context_.cluster, reply).outcome == Outcome::miss) return false;
  auto record = record_of(context_, key_, reply.value, reply.server);
  const WallTime now = context_.clock.wall();
  if (!record || terms.refresh) return false;
  const bool fresh = record->fresh(now);
  if (fresh || record->usable(now)) busy.record = std::move(record);
  return fresh;
}

// Who waits asks for the lock, which is small, and looks at the entry only when the lock changed hands, what is
// stored being stored before that, and at last: who stored it may have died before giving the lock back.
Cache::Answer Cache::ask(const CacheTerms& terms) {
  check_terms(terms, context_.clock.wall());
  const SteadyTime started = context_.clock.steady();
  const auto waited = [&] { return context_.clock.steady() - started; };
  Answer busy{.kind = Answer::Kind::busy};
  Duration pause = first_poll;
  for (bool first = true;; first = false) {
    const bool last = waited() >= terms.wait;
    try {
      if (first && look(terms, busy)) return {.kind = Answer::Kind::fresh, .record = std::move(busy.record)};
      const std::string holder = busy.holder;
      if (auto answer = try_rebuild(terms, busy.holder, first || (last && !busy.record)))
        return std::move(*answer);
      if (!first && (last || busy.holder != holder) && look(terms, busy))
        return {.kind = Answer::Kind::fresh, .record = std::move(busy.record)};
    } catch (const Failure& failure) {
      if (first || !may_go_unlocked(failure.code()) || (last && !busy.record)) throw;
    }
    if (last) return busy;
    const Duration left = std::max(terms.wait - waited(), Duration::zero());
    const double jitter = 0.5 + context_.random.unit();
    const auto jittered = Duration(static_cast<Duration::rep>(static_cast<double>(pause.count()) * jitter));
    const Duration nap = std::min(left, jittered);
    context_.clock.sleep_for(nap);
    pause = std::min(pause + pause / 2, slowest_poll);
  }
}

// nullopt: another has the lock.
std::optional<Cache::Answer> Cache::try_rebuild(const CacheTerms& terms, std::string& rival, bool unlocked) {
  CacheRebuild rebuild(context_, key_, terms);
  if (!rebuild.take_lock(rival, unlocked)) return std::nullopt;
  const auto give_back = [&] {
    try {
      rebuild.end(true);
    } catch (const Failure&) {
      return;  // it ends by itself
    }
  };
  try {
    if (auto record = rebuild.claim()) {
      give_back();
      return Answer{.kind = Answer::Kind::fresh, .record = std::move(record)};
    }
  } catch (const Failure&) {
    give_back();
    throw;
  }
  return Answer{.kind = Answer::Kind::rebuild, .rebuild = std::move(rebuild)};
}

Cache::Shown Cache::show() {
  const std::array batch{Request::probe(key_, server()),
                         Request::probe(lock_key_, context_.cluster.placement().server_of(lock_key_))};
  const std::vector<Reply> replies = context_.cluster.execute(batch);
  for (const Reply& reply : replies) expect_read(context_.cluster, reply);
  Shown shown;
  shown.rebuilding = replies[1].outcome == Outcome::hit;
  if (shown.rebuilding) shown.holder = LockValue::parse(replies[1].value).holder;
  if (replies[0].outcome != Outcome::hit) return shown;
  shown.record = record_of(context_, key_, replies[0].value, replies[0].server);
  if (!shown.record) {
    throw CorruptData(key_ + " holds a damaged cache entry; the next run replaces it",
                      context_.cluster.address_of(replies[0].server));
  }
  if (shown.record->placeholder) shown.record.reset();
  shown.ttl = replies[0].age.ttl;
  return shown;
}

// Each attempt has its own build: a rebuild that began after one of them was applied must not find it again
// after a later one.
bool Cache::expire() {
  bool found = false;
  std::vector<std::string> builds;
  cas_update(context_, key_, [&](const Observed& observed) -> std::optional<Write> {
    if (!observed.found) return std::nullopt;
    auto record = record_of(context_, key_, observed.value, observed.server);
    if (record && std::find(builds.begin(), builds.end(), record->build) != builds.end()) return std::nullopt;
    found = found || (record && !record->placeholder);
    if (!record) record.emplace().placeholder = true;
    record->build = builds.emplace_back(context_.random.token());
    record->fresh_until = WallTime{};
    const WallTime now = context_.clock.wall();
    const Duration left = std::max<Duration>(record->stale_until - now, Duration::zero());
    return Write{encode(*record), Exptime::after(left + slack, now), 0};
  });
  return found;
}

bool Cache::remove() {
  for (int attempt = 1;; ++attempt) {
    const Reply reply = context_.cluster.execute(Request::remove(key_));
    if (reply.unknown() && attempt < most_removals) continue;
    // After a lost reply it may have been ours that removed it; gone it is.
    return expect(context_.cluster, reply).outcome == Outcome::deleted || attempt > 1;
  }
}

}  // namespace mcds
