#include "common/structures/cache/cache.hpp"

#include <algorithm>
#include <array>

#include "common/base/errors.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/primitives/key_names.hpp"
#include "common/primitives/polling.hpp"
#include "common/primitives/several/quorum.hpp"
#include "common/structures/cache/copy.hpp"

namespace mcds {

namespace {

constexpr Duration first_poll = std::chrono::milliseconds(20);
constexpr Duration slowest_poll = longest_cache_nap / 2;  // without its jitter, and the trips
constexpr std::string_view rebuild_part = ":rebuild";

std::string checked_key(const Context& context, std::string_view name) {
  if (name.ends_with(rebuild_part)) {
    throw InvalidInput("a cache key must not end in \":rebuild\"; that could be another entry's lock");
  }
  return structure_key(context, "cache", name);
}

void check_terms(const CacheTerms& terms, WallTime now) {
  if (terms.ttl <= Duration::zero()) throw InvalidInput("the ttl must be longer than zero");
  if (terms.rebuild_ttl < shortest_rebuild_ttl) {
    throw InvalidInput("the rebuild ttl must be at least 4s: its lock has to be renewed in time");
  }
  if (terms.tags.size() > most_cache_tags)
    throw InvalidInput("an entry has at most " + std::to_string(most_cache_tags) + " tags");
  // A key that is too long is reported before anything runs.
  Exptime::after(terms.ttl + terms.stale + cache_slack, now);
}

// What was seen when the lock was not ours is fresh after all.
Cache::Answer fresh_answer(Cache::Answer seen) {
  seen.kind = Cache::Answer::Kind::fresh;
  seen.holder.clear();
  return seen;
}

}  // namespace

Cache::Cache(Context context, std::string_view name)
    : context_(std::move(context)),
      key_(checked_key(context_, name)),
      lock_key_(key_ + std::string(rebuild_part)),
      copies_(context_) {
  static_cast<void>(copy_servers(context_, key_));  // checks that there are enough servers
}

// The entry and the tags, in one trip.
std::pair<CacheCopies, std::vector<CacheTag>> Cache::read_with(const CacheTags& tags) const {
  const auto replies = expect_all(copies_.each([&](std::size_t i) {
    std::vector<Request> batch{Request::get(key_)};
    tags.ask(batch);
    return copies_.at(i).cluster.execute(batch);
  }));
  std::vector<std::span<const Reply>> of_tags;
  for (const auto& copy : replies) of_tags.push_back(std::span(copy).subspan(1));
  CacheCopies found = found_in(replies);
  return {std::move(found), tags.take(of_tags)};
}

// What each copy's first reply has. A damaged one is nothing, or that copy's failure.
CacheCopies Cache::found_in(std::span<const std::vector<Reply>> replies, bool or_fails) const {
  return expect_answer(copies_.each([&](std::size_t i) -> std::optional<CacheRecord> {
    const Reply& reply = replies[i].front();
    if (expect_read(context_.cluster, reply).outcome == Outcome::miss) return std::nullopt;
    auto record = cache_record_of(context_, key_, reply.value, reply.server);
    if (record || !or_fails) return record;
    throw CorruptData(key_ + " holds a damaged cache entry; the next run replaces it",
                      context_.cluster.address_of(reply.server));
  }));
}

// Whether it is fresh; what may be replayed otherwise goes to `busy`, too.
bool Cache::look(const CacheTerms& terms, Answer& busy) {
  busy.record.reset();
  auto [found, tags] = read_with({context_, terms.tags});
  busy.copies = found_outcomes(context_, key_, found);
  CacheRecord* newest = newest_of(found);
  const WallTime now = context_.clock.wall();
  if (newest == nullptr || terms.refresh) return false;
  const bool fresh =
      newest->fresh(now) && is_done(found, *newest) && tags_agree(context_, *newest, std::move(tags));
  if (fresh || newest->usable(now)) busy.record = std::move(*newest);
  return fresh;
}

// Who waits asks for the lock, which is small, and looks at the entry only when the lock changed hands, what
// is stored being stored before that, and at last: who stored it may have died before giving the lock back.
Cache::Answer Cache::ask(const CacheTerms& terms) {
  check_terms(terms, context_.clock.wall());
  Polling polling(context_, terms.wait, first_poll, slowest_poll);
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
    polling.pause();
  }
}

// nullopt: another has the lock.
std::optional<Cache::Answer> Cache::try_rebuild(const CacheTerms& terms, std::string& rival, bool unlocked) {
  CacheRebuild rebuild(context_, key_, lock_key_, terms);
  if (!rebuild.take_lock(rival, unlocked)) return std::nullopt;
  auto fresh = attempt([&] { return rebuild.claim(); });
  if (fresh.failure() || fresh.value()) {
    rebuild.give_back();
    return Answer{
        .kind = Answer::Kind::fresh, .record = std::move(fresh.value()), .copies = rebuild.copies()};
  }
  return Answer{.kind = Answer::Kind::rebuild, .rebuild = std::move(rebuild)};
}

Cache::Shown Cache::show() {
  // Of each copy, the entry and the lock.
  const auto seen = expect_all(copies_.each([&](std::size_t i) {
    Cluster& cluster = copies_.at(i).cluster;
    const Placement& placement = cluster.placement();
    const std::array batch{Request::probe(key_, placement.server_of(key_)),
                           Request::probe(lock_key_, placement.server_of(lock_key_))};
    return cluster.execute(batch);
  }));
  CacheCopies found = found_in(seen, true);
  Shown shown;
  shown.copies = found_outcomes(context_, key_, found);
  show_lock(seen, shown);
  CacheRecord* newest = newest_of(found);
  for (std::size_t i = 0; newest != nullptr && i < found.size(); ++i) {
    const auto& record = found[i];
    if (!record.failure() && record.value() && &*record.value() == newest) shown.ttl = seen[i][0].age.ttl;
  }
  if (newest != nullptr && !newest->removed()) shown.record = std::move(*newest);
  if (shown.record) shown.expired_tags = tags_expired(context_, *shown.record);
  return shown;
}

void Cache::show_lock(std::span<const std::vector<Reply>> seen, Shown& shown) const {
  const auto holds = [](const auto& copy) { return copy[1].outcome == Outcome::hit; };
  const auto rebuilder = std::ranges::find_if(seen, holds);
  shown.rebuilding = rebuilder != seen.end();
  if (shown.rebuilding) shown.holder = lock_holder_in((*rebuilder)[1].value);
  if (std::ranges::all_of(seen, [](const auto& copy) { return copy[1].failed(); }))
    expect_read(context_.cluster, seen.front()[1]);
}

Cache::Invalidation Cache::invalidate(Invalidated (Cache::*act)(const Context&) const, const char* done) {
  // Two copies and one are changed blindly: who reaches one of them may.
  if (quorum(copies_.size()) > 1) static_cast<void>(read_with({context_, {}}));
  const auto each = expect_any(copies_.each([&](std::size_t i) { return (this->*act)(copies_.at(i)); }));
  Invalidated newest;
  std::optional<Failure> missed;
  for (const auto& one : each) {
    if (one.failure()) {
      if (!missed) missed = one.failure();
      continue;
    }
    newest.found = newest.found || one.value().found;
    newest.until = std::max(newest.until, one.value().until);
    newest.after = std::max(newest.after, one.value().after);
  }
  const auto was_there = [](const Invalidated& one) { return one.found; };
  Invalidation result{.found = newest.found,
                      .copies = cache_outcomes(context_, key_, each.mapped(was_there))};
  if (!missed) return result;
  const auto said = copies_.each([&](std::size_t i) {
    const bool found = each[i].value().found;
    leave_word(copies_.at(i), newest);
    return found;
  });
  result.copies = cache_outcomes(context_, key_, said);
  if (failure_of(Part::changing, said.failures())) {
    result.failure = UnknownOutcome(
        std::string(done) +
            ", but not in every copy: old output may come back; try again when all servers answer",
        missed->server());
  }
  return result;
}

// A caller that claimed the entry since must not overwrite it, so a placeholder is replaced. A build that
// began later stands.
// Each attempt has its own build, as in expire_copy.
void Cache::leave_word(const Context& context, const Invalidated& newest) const {
  const WallTime now = context.clock.wall();
  std::vector<std::string> builds;
  CacheRecord word;
  word.begun_at = std::max(now, newest.after + std::chrono::milliseconds(1));
  const Duration left = std::max<Duration>(newest.until - now, shortest_word);
  cas_update(context, key_, [&](const Observed& observed) -> std::optional<Write> {
    const auto there =
        observed.found ? cache_record_of(context, key_, observed.value, observed.server) : std::nullopt;
    if (there && std::ranges::find(builds, there->build) != builds.end()) return std::nullopt;
    const bool known = there && !there->placeholder && there->expired_by_hand();
    if (there && !there->placeholder && !known && !word.newer_than(*there)) return std::nullopt;
    // What says it already is to say it for as long.
    CacheRecord said = known ? *there : word;
    said.build = builds.emplace_back(context.random.token());
    return Write{encode(said), Exptime::after(left + cache_slack, now), 0};
  });
}

// Each attempt has its own build: a rebuild that began after one of them was applied must not find it again
// after a later one.
Cache::Invalidated Cache::expire_copy(const Context& context) const {
  Invalidated result;
  std::vector<std::string> builds;
  cas_update(context, key_, [&](const Observed& observed) -> std::optional<Write> {
    if (!observed.found) return std::nullopt;
    auto record = cache_record_of(context, key_, observed.value, observed.server);
    if (record && std::ranges::find(builds, record->build) != builds.end()) return std::nullopt;
    const bool removed = record && record->removed();
    result.found = result.found || (record && !record->placeholder && !removed);
    if (!record) record.emplace().placeholder = true;
    const WallTime now = context.clock.wall();
    record->build = builds.emplace_back(context.random.token());
    record->begun_at = record->next_beginning(now);
    record->fresh_until = WallTime{};
    result.after = record->begun_at;
    result.until = record->stale_until;
    const Duration left = std::max<Duration>(record->stale_until - now, least_stay(copies_));
    return Write{encode(*record), Exptime::after(left + cache_slack, now), 0};
  });
  return result;
}

// With several copies word of it takes the place of what is there, which may stand for an earlier one that
// another copy did not hear of. Its build is another each time, so that who claimed it before does not store
// over it.
Cache::Invalidated Cache::remove_copy(const Context& context) const {
  Invalidated result;
  cas_update(context, key_, [&](const Observed& observed) -> std::optional<Write> {
    if (!observed.found) return std::nullopt;
    const auto record = cache_record_of(context, key_, observed.value, observed.server);
    result.found = result.found || !(record && record->removed());
    if (record) {
      result.until = std::max(result.until, record->stale_until);
      result.after = std::max(result.after, record->begun_at);
    }
    if (least_stay(copies_) == Duration(0) || !record || record->placeholder) return Write{.removes = true};
    const WallTime now = context.clock.wall();
    CacheRecord word;
    word.build = context.random.token();
    word.begun_at = result.after = record->next_beginning(now);
    const Duration left = std::max<Duration>(record->stale_until - now, least_stay(copies_));
    return Write{encode(word), Exptime::after(left + cache_slack, now)};
  });
  return result;
}

}  // namespace mcds
