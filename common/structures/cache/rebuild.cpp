#include <algorithm>

#include "common/structures/cache/cache.hpp"

namespace mcds {

namespace {

constexpr int max_claims = 3;

WallTime plus(WallTime time, Duration duration) {
  return time + std::chrono::floor<std::chrono::microseconds>(duration);
}

}  // namespace

CacheRebuild::CacheRebuild(Context context, std::string key, std::string lock_key, CacheTerms terms)
    : context_(std::move(context)),
      key_(std::move(key)),
      terms_(std::move(terms)),
      lock_(Lock::at_key(context_, std::move(lock_key))),
      tags_(context_, terms_.tags) {}

Duration CacheRebuild::lease_ttl() const {
  return terms_.rebuild_ttl - cache_slack - max_cache_nap;
}

bool CacheRebuild::take_lock(std::string& rival, bool unlocked) {
  auto answer = attempt([&] { return lock_.acquire({.ttl = lease_ttl(), .holder = terms_.holder}); });
  if (unlocked && answer.failure() && is_servers_failure(answer.failure()->code())) return true;
  lease_ = std::move(answer.value().lease);
  rival = std::move(answer.value().holder);
  return lease_.has_value();
}

void CacheRebuild::release_added() {
  static_cast<void>(attempt([&] { end(true); }));  // the lock expires
  lease_.reset();
}

// Adds a placeholder and reads the value and the tags, in one trip. Each attempt has its own build: an add
// whose reply was lost may be executed after an invalidation, and must differ from the invalidated value.
std::optional<CacheRecord> CacheRebuild::claim() {
  begun_at_ = context_.clock.wall();
  std::optional<CacheRecord> there;
  bool renew = false;
  for (int attempt = 0; attempt < max_claims && replaces_.empty(); ++attempt) {
    CacheRecord placeholder;
    placeholder.build = context_.random.token();
    placeholder.placeholder = true;
    const Exptime exptime = Exptime::after(terms_.rebuild_ttl + cache_slack, context_.clock.wall());
    std::vector<Request> batch{
        Request::add(key_, encode(placeholder), exptime).relying_on_expiry().relying_on_cas(),
        Request::get(key_)};
    tags_.ask(batch);
    const std::vector<Reply> replies = context_.cluster.execute(batch);
    const bool miss = expect_read(context_.cluster, replies[1]).outcome == Outcome::miss;
    // A placeholder that was stored although its add was refused is still read.
    const bool ours = !miss && cache_identity_of(replies[1].value) == placeholder.build;
    if ((miss || ours) && replies[0].is(ReplyFailure::Kind::refused)) expect(context_.cluster, replies[0]);
    tagged_ = tags_.take(std::span(replies).subspan(2));
    if (miss) continue;
    there = own_cache_record(context_, key_, replies[1].value, replies[1].server);
    replaces_ = cache_identity_of(replies[1].value);
    seen_ = ours ? replies[0].cas : CasUnique();
    renew = !ours && ends_soon(there);
  }
  if (there) keep_until_ = there->stale_until;
  const bool fresh = there && there->fresh(context_.clock.wall()) && tags_agree(context_, *there, tagged_);
  if (fresh && !terms_.refresh) return there;
  tagged_ = tags_.made(std::move(tagged_));
  if (renew) keep();
  return std::nullopt;
}

bool CacheRebuild::ends_soon(const std::optional<CacheRecord>& record) const {
  return !record || record->placeholder ||
         record->stale_until < plus(context_.clock.wall(), terms_.rebuild_ttl);
}

void CacheRebuild::keep() {
  Request ask = Request::probe(key_, 0);
  ask.server.reset();
  const Reply there = context_.cluster.execute(ask);
  if (there.outcome != Outcome::hit || cache_identity_of(there.value) != replaces_) return;
  const auto& ttl = there.age.ttl;  // by the server's clock, if it reports it
  if (ttl && (ttl->count() < 0 || *ttl >= terms_.rebuild_ttl + cache_slack)) return;
  const WallTime now = context_.clock.wall();
  const Duration left = ttl ? terms_.rebuild_ttl : std::max<Duration>(keep_until_ - now, terms_.rebuild_ttl);
  static_cast<void>(context_.cluster.execute(Request::touch(key_, Exptime::after(left + cache_slack, now))));
}

CacheRebuild::Stored CacheRebuild::store(CacheRecord record) {
  record.tags = tagged_;
  if (record.out.size() + record.err.size() + size_of(record.tags) > max_cached_size)
    return Stored::too_large;
  const WallTime now = context_.clock.wall();
  record.build = context_.random.token();
  record.begun_at = begun_at_;
  record.made_at = now;
  record.fresh_until = plus(now, terms_.ttl);
  record.stale_until = plus(record.fresh_until, terms_.stale);
  const Write write{encode(record), Exptime::after(terms_.ttl + terms_.stale + cache_slack, now), 0};
  // Usually nothing has changed since the placeholder was stored. Otherwise, or after a lost reply, the value
  // is read.
  if (seen_.value != 0) {
    const Request replace = Request::compare_and_set(key_, write.value, write.exptime, seen_);
    if (context_.cluster.execute(replace).outcome == Outcome::stored) return Stored::stored;
  }
  bool stored = false;
  cas_update(context_, key_, [&](const Observed& observed) -> std::optional<Write> {
    const std::string found = observed.found ? cache_identity_of(observed.value) : std::string();
    stored = found == record.build;
    if (found.empty() || found != replaces_) return std::nullopt;
    stored = true;
    return write;
  });
  return stored ? Stored::stored : Stored::superseded;
}

void CacheRebuild::end(bool succeeded) {
  if (!lease_) return;
  if (succeeded)
    lock_.release(*lease_);
  else
    lock_.leave(*lease_, Duration::zero());  // the key's slack is the pause
}

}  // namespace mcds
