#include "common/structures/cache/cache.hpp"

#include <algorithm>
#include <array>

#include "common/primitives/key_names.hpp"

namespace mcds {

namespace {

constexpr Duration first_poll = std::chrono::milliseconds(20);
constexpr Duration max_poll_interval = max_cache_nap / 2;  // without its jitter and the round trips
constexpr std::string_view rebuild_part = ":rebuild";

std::string checked_key(const Context& context, std::string_view name) {
  if (name.ends_with(rebuild_part)) {
    throw InvalidInput(
        "a cache key must not end in ':rebuild', which is reserved for locks of entries; use another key");
  }
  return structure_key(context, "cache", name);
}

void check_terms(const CacheTerms& terms, WallTime now) {
  if (terms.ttl <= Duration::zero()) throw InvalidInput("the ttl must be longer than zero");
  if (terms.rebuild_ttl < min_rebuild_ttl) {
    throw InvalidInput("the rebuild ttl must be at least 4s, so that its lock can be renewed in time");
  }
  if (terms.tags.size() > max_cache_tags)
    throw InvalidInput("an entry has at most " + std::to_string(max_cache_tags) + " tags");
  // Throws now for an invalid exptime, before anything runs.
  Exptime::after(terms.ttl + terms.stale + cache_slack, now);
}

// Turns what was read while the lock was not ours into a fresh answer.
Cache::Answer fresh_answer(Cache::Answer seen) {
  seen.kind = Cache::Answer::Kind::fresh;
  seen.holder.clear();
  return seen;
}

}  // namespace

bool is_servers_failure(ErrorCode code) {
  return may_pass(code) || code == ErrorCode::access_denied;
}

Cache::Cache(const Context& context, std::string_view name)
    : context_(context.in_copies(1)),
      key_(checked_key(context_, name)),
      lock_key_(key_ + std::string(rebuild_part)) {}

// Reads the entry and the tags in one trip. Returns whether the entry is fresh. `busy` gets a usable record.
bool Cache::look(const CacheTerms& terms, Answer& busy) {
  busy.record.reset();
  const CacheTags tags(context_, terms.tags);
  std::vector<Request> batch{Request::get(key_)};
  tags.ask(batch);
  const auto replies = context_.cluster.execute(batch);
  auto record = record_in(replies.front());
  std::vector<CacheTag> tagged = tags.take(std::span(replies).subspan(1));
  const WallTime now = context_.clock.wall();
  if (!record || record->placeholder || terms.refresh) return false;
  const bool fresh = record->fresh(now) && tags_agree(context_, *record, std::move(tagged));
  if (fresh || record->usable(now)) busy.record = std::move(record);
  return fresh;
}

// Returns nullopt if the key is missing or its value is damaged.
std::optional<CacheRecord> Cache::record_in(const Reply& reply) const {
  if (expect_read(context_.cluster, reply).outcome == Outcome::miss) return std::nullopt;
  return own_cache_record(context_, key_, reply.value, reply.server);
}

// A waiting caller polls the lock, which is small. It reads the entry only when the lock has changed hands,
// after the output was stored, and at the end: a caller may have crashed between storing and releasing.
Cache::Answer Cache::ask(const CacheTerms& terms) {
  check_terms(terms, context_.clock.wall());
  Polling polling(context_, terms.wait, first_poll, max_poll_interval);
  Answer busy{.kind = Answer::Kind::busy};
  for (bool first = true;; first = false) {
    const bool last = polling.over();
    try {
      if (first && look(terms, busy)) return fresh_answer(std::move(busy));
      const std::string holder = busy.holder;
      if (auto answer = try_rebuild(terms, busy.holder, first || (last && !busy.record)))
        return std::move(*answer);
      if (!first && (last || busy.holder != holder) && look(terms, busy))
        return fresh_answer(std::move(busy));
    } catch (const Failure& failure) {
      if (first || !is_servers_failure(failure.code()) || (last && !busy.record)) throw;
    }
    if (last) return busy;
    has_waited_ = true;
    polling.pause();
  }
}

// Returns nullopt if another caller has the lock.
std::optional<Cache::Answer> Cache::try_rebuild(const CacheTerms& terms, std::string& rival, bool unlocked) {
  CacheRebuild rebuild(context_, key_, lock_key_, terms);
  if (!rebuild.take_lock(rival, unlocked)) return std::nullopt;
  auto fresh = attempt([&] { return rebuild.claim(); });
  if (fresh.failure() || fresh.value()) {
    rebuild.release_added();
    return Answer{.kind = Answer::Kind::fresh, .record = std::move(fresh.value())};
  }
  return Answer{.kind = Answer::Kind::rebuild, .rebuild = std::move(rebuild)};
}

Cache::Shown Cache::show() {
  const Placement& placement = context_.cluster.placement();
  const std::array batch{Request::probe(key_, placement.server_of(key_)),
                         Request::probe(lock_key_, placement.server_of(lock_key_))};
  const auto seen = context_.cluster.execute(batch);
  Shown shown;
  shown.record = record_in(seen[0]);
  if (seen[0].outcome == Outcome::hit && !shown.record)
    throw CorruptData(key_ + " holds a damaged cache entry; the next run replaces it",
                      context_.cluster.address_of(seen[0].server));
  shown.rebuilding = expect_read(context_.cluster, seen[1]).outcome == Outcome::hit;
  if (shown.rebuilding) shown.holder = lock_holder_in(seen[1].value);
  if (json_field(shown.holder, "finished_at")) shown.rebuilding = false;
  if (shown.record && shown.record->placeholder) shown.record.reset();
  if (!shown.record) return shown;
  shown.ttl = seen[0].age.ttl;
  shown.expired_tags = tags_expired(context_, *shown.record);
  return shown;
}

// Each attempt has its own build: a rebuild that began after one attempt was applied must not find that
// attempt's build again after a later one.
bool Cache::expire() {
  bool found = false;
  std::vector<std::string> builds;
  cas_update(context_, key_, [&](const Observed& observed) -> std::optional<Write> {
    if (!observed.found) return std::nullopt;
    auto record = own_cache_record(context_, key_, observed.value, observed.server);
    if (record && std::ranges::find(builds, record->build) != builds.end()) return std::nullopt;
    found = found || (record && !record->placeholder);
    if (!record) record.emplace().placeholder = true;
    const WallTime now = context_.clock.wall();
    record->build = builds.emplace_back(context_.random.token());
    record->begun_at = now;
    record->fresh_until = WallTime{};
    const bool by_server = observed.ttl && observed.ttl->count() >= 0;
    const Duration until = by_server ? *observed.ttl - cache_slack : record->stale_until - now;
    const Duration left = std::max(until, Duration::zero());
    return Write{encode(*record), Exptime::after(left + cache_slack, now), 0};
  });
  return found;
}

bool Cache::remove() {
  bool found = false;
  cas_update(context_, key_, [&](const Observed& observed) -> std::optional<Write> {
    if (!observed.found) return std::nullopt;
    const auto record = own_cache_record(context_, key_, observed.value, observed.server);
    found = found || !record || !record->placeholder;
    return Write{.removes = true};
  });
  return found;
}

}  // namespace mcds
