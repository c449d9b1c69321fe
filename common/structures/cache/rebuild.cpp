#include <algorithm>
#include <functional>
#include <iterator>
#include <span>

#include "common/base/errors.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/primitives/several/quorum.hpp"
#include "common/structures/cache/cache.hpp"
#include "common/structures/cache/copy.hpp"

namespace mcds {

namespace {

constexpr int most_claims = 3;

// The holder of the lock on this server, as JSON.
std::optional<std::string> holder_at(const Context& context, const std::string& lock_key) {
  const Reply reply = context.cluster.execute(Request::get(lock_key));
  if (expect_read(context.cluster, reply).outcome == Outcome::miss) return std::nullopt;
  return lock_holder_in(reply.value);
}

// Not when it did answer, and we were too slow to make use of that.
bool means_no_answer(ErrorCode code) {
  return is_servers_failure(code) && code != ErrorCode::try_again;
}

}  // namespace

CacheRebuild::CacheRebuild(Context context, std::string key, std::string lock_key, CacheTerms terms)
    : context_(std::move(context)),
      key_(std::move(key)),
      lock_key_(std::move(lock_key)),
      terms_(std::move(terms)),
      copies_(context_),
      tags_(context_, terms_.tags) {
  for (std::size_t i = 0; i < copies_.size(); ++i) locks_.push_back(Lock::at_key(copies_.at(i), lock_key_));
}

Duration CacheRebuild::lease_ttl() const {
  return terms_.rebuild_ttl - cache_slack - longest_cache_nap;
}

bool CacheRebuild::take_lock(std::string& rival, bool unlocked) {
  const auto taken = attempt([&] {
    std::optional<bool> ours;
    for (std::size_t copy = 0; !ours; ++copy) ours = take_lock_at(copy, rival);
    return *ours;
  });
  const bool silent = taken.failure() && is_servers_failure(taken.failure()->code());
  return (unlocked && silent) || taken.value();
}

// Whether it is ours; nullopt: this server failed, ask the next one.
std::optional<bool> CacheRebuild::take_lock_at(std::size_t copy, std::string& rival) {
  locked_ = copy;
  Lock::Answer answer;
  std::optional<std::string> behind;  // the holder on a later server, because this one did not answer then
  const auto asked = copies_.each([&](std::size_t i) {
    if (i == copy) answer = lock().acquire({.ttl = lease_ttl(), .holder = terms_.holder});
    if (i <= copy || behind) return;
    if (auto holder = holder_at(copies_.at(i), lock_key_)) behind = std::move(holder);
  });
  if (behind) {
    lease_ = std::move(answer.lease);
    give_back();
    rival = std::move(*behind);
    return false;
  }
  if (const auto& failure = asked[copy].failure()) {
    if (copy + 1 == copies_.size() || !means_no_answer(failure->code())) raise(*failure);
    return std::nullopt;
  }
  lease_ = std::move(answer.lease);
  rival = std::move(answer.holder);
  return lease_.has_value();
}

void CacheRebuild::give_back() {
  static_cast<void>(attempt([&] { end(true); }));  // it ends by itself
  lease_.reset();
}

// Adds a placeholder and reads what is there and the tags, in one trip. Each attempt has its own build: one
// whose reply was lost may be executed after an invalidation, and must not be taken for the one that was
// invalidated.
CacheRebuild::Claim CacheRebuild::claim_copy(const Context& context, std::vector<Reply>& tags) const {
  const Exptime exptime = Exptime::after(terms_.rebuild_ttl + cache_slack, context.clock.wall());
  for (int attempt = 0; attempt < most_claims; ++attempt) {
    CacheRecord placeholder;
    placeholder.build = context.random.token();
    placeholder.placeholder = true;
    std::vector<Request> batch{
        Request::add(key_, encode(placeholder), exptime).relying_on_expiry().relying_on_cas(),
        Request::get(key_)};
    tags_.ask(batch);
    std::vector<Reply> replies = context.cluster.execute(batch);
    tags.assign(std::make_move_iterator(replies.begin() + 2), std::make_move_iterator(replies.end()));
    const bool miss = expect_read(context.cluster, replies[1]).outcome == Outcome::miss;
    // What was refused after it was stored is still seen behind it.
    const bool ours = !miss && cache_identity_of(replies[1].value) == placeholder.build;
    if ((miss || ours) && replies[0].is(ReplyFailure::Kind::refused)) expect(context.cluster, replies[0]);
    if (miss) continue;
    Claim claim{.record = cache_record_of(context, key_, replies[1].value, replies[1].server),
                .identity = cache_identity_of(replies[1].value)};
    claim.ends_soon = claim.identity != placeholder.build && ends_soon(claim.record);
    return claim;
  }
  return {};
}

std::optional<CacheRecord> CacheRebuild::claim() {
  const WallTime asked_at = context_.clock.wall();
  std::vector<std::vector<Reply>> replies(copies_.size());
  const auto claimed = copies_.each([&](std::size_t i) { return claim_copy(copies_.at(i), replies[i]); });
  replaces_ = claimed.mapped([](const Claim& claim) { return claim.identity; });
  CacheCopies found = expect_answer(claimed.mapped([](const Claim& claim) { return claim.record; }));
  for (const auto& one : claimed) {
    if (!one.failure() && one.value().record)
      keep_until_ = std::max(keep_until_, one.value().record->stale_until);
  }
  outcomes_ = found_outcomes(context_, key_, found);
  CacheRecord* newest = newest_of(found);
  begun_at_ = newest == nullptr ? asked_at : newest->next_beginning(asked_at);
  tagged_ = tags_.take(std::vector<std::span<const Reply>>(replies.begin(), replies.end()));
  const bool fresh = newest != nullptr && newest->fresh(context_.clock.wall()) && is_done(found, *newest) &&
                     tags_agree(context_, *newest, tagged_);
  if (fresh && !terms_.refresh) return std::move(*newest);
  tagged_ = tags_.made(std::move(tagged_));
  if (claimed.any(std::mem_fn(&Claim::ends_soon))) keep();
  return std::nullopt;
}

bool CacheRebuild::ends_soon(const std::optional<CacheRecord>& record) const {
  return !record || record->placeholder ||
         record->stale_until < plus(context_.clock.wall(), terms_.rebuild_ttl);
}

void CacheRebuild::keep() {
  const WallTime now = context_.clock.wall();
  const Duration left = std::max<Duration>({keep_until_ - now, terms_.rebuild_ttl, least_stay(copies_)});
  static_cast<void>(execute_copies(context_, Request::touch(key_, Exptime::after(left + cache_slack, now))));
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
  const Duration left = std::max<Duration>(terms_.ttl + terms_.stale, least_stay(copies_));
  const Write write{encode(record), Exptime::after(left + cache_slack, now), 0};
  const auto stored =
      copies_.each([&](std::size_t i) { return store_copy(i, replaces_[i].value(), record.build, write); });
  outcomes_ = cache_outcomes(context_, key_, stored);
  const auto failure = failure_of(Part::changing, stored, [](const auto& copy) { return copy.value(); });
  if (!failure) return Stored::stored;
  const auto answered = [](bool) { return true; };
  if (stored.count(answered) - stored.count(std::identity()) == 0) raise(*failure);
  return Stored::superseded;
}

bool CacheRebuild::store_copy(std::size_t copy, const std::string& replaces, const std::string& build,
                              const Write& write) const {
  bool stored = false;
  cas_update(copies_.at(copy), key_, [&](const Observed& observed) -> std::optional<Write> {
    const std::string found = observed.found ? cache_identity_of(observed.value) : std::string();
    stored = found == build;
    if (found.empty() || found != replaces) return std::nullopt;
    stored = true;
    return write;
  });
  return stored;
}

void CacheRebuild::end(bool succeeded) {
  if (!lease_) return;
  if (succeeded)
    lock().release(*lease_);
  else
    lock().leave(*lease_, Duration::zero());  // the key's slack is the pause
}

}  // namespace mcds
