#include "common/structures/counter/copies.hpp"

#include <algorithm>
#include <utility>

#include "common/base/bytes.hpp"
#include "common/structures/counter/failures.hpp"
#include "common/structures/counter/lives.hpp"
#include "common/structures/counter/record.hpp"

namespace mcds {

namespace {

constexpr int most_attempts = 200;
constexpr int most_silences = 3;  // of a server that owes a reply, before the outcome is called unknown
constexpr int most_spreads = 50;

}  // namespace

CounterCopies::CounterCopies(const Context& context, std::string name, std::string key)
    : context_(context),
      name_(std::move(name)),
      key_(std::move(key)),
      servers_(copy_servers(context, key_)),
      copies_(servers_.size()) {
  for (std::size_t i = 0; i < servers_.size(); ++i) copies_[i].server = servers_[i];
}

// Before it is read for a new attempt: what was known may be lost by now, or removed.
void CounterCopies::forget() {
  known_ = {};
  version_ = any_life;
}

void CounterCopies::read() {
  std::vector<Request> batch;
  for (const std::size_t server : servers_) batch.push_back(Request::probe(key_, server));
  const auto replies = context_.cluster.execute(batch);
  const bool anew = removal_ && !removal_->written;
  if (anew) {
    forget();
    removal_ = Removal{removal_->mark};
  }
  take(Versions(context_).item_of(key_, replies));
  if (removal_) end_lives();
  outlive_silent();
}

// What a copy that has not answered yet has counted by itself is not among the lives that are ended: the removal is in a newer
// life of the counter. A set that has the same number is ended, too.
void CounterCopies::outlive_silent() {
  if (!removal_ || removal_->written || removal_->in_new_life || all_answer()) return;
  removal_->in_new_life = true;
  version_ = version_ == any_life ? first_in_doubt : std::max(version_, first_life) + 1;
  known_.learn(CounterRecord::of_set(0));
  known_.end_lives(context_.clock.wall(), removal_->mark);
  for (Copy& copy : copies_) copy.record.reset();
}

void CounterCopies::take(const VersionedItem& item) {
  const std::uint32_t life = life_of(item);
  if (life > version_) {
    // What is known of an older life does not count any more.
    if (version_ != any_life) {
      known_ = {};
      sets_ = false;
    }
    version_ = life;
  }
  const bool all_seen = std::none_of(item.copies.begin(), item.copies.end(),
                                     [](const VersionedCopy& copy) { return copy.failure.has_value(); });
  if (all_seen) version_ = std::max(version_, first_life);
  plain_ = std::any_of(item.copies.begin(), item.copies.end(),
                       [&](const VersionedCopy& copy) { return copy.live() && is_plain_of(copy, version_); });
  for (std::size_t i = 0; i < item.copies.size(); ++i) take(copies_[i], item.copies[i]);
  known_.forget_removals(context_.clock.wall());
  // Where an exact counter was removed, the plain one is what came after it.
  if (!plain_ || known_.exists() || (removal_ && removal_->written)) return;
  for (Copy& copy : copies_) copy.record.reset();
  known_ = {};
}

// Who created a record in any life did not know that the counter is plain, or that it was being set.
bool CounterCopies::counts(const VersionedCopy& found) const {
  if (!found.live()) return false;
  return std::max(found.number, first_life) == std::max(version_, first_life) ||
         (found.number == any_life && !found.value.starts_with("C1 ") && !sets_ && !plain_);
}

void CounterCopies::take(Copy& copy, const VersionedCopy& found) {
  const bool in_doubt = copy.in_doubt && found.failure;
  copy = {.server = copy.server,
          .found = found.found,
          .version = found.number,
          .cas = found.cas,
          .record = {},
          .plain = {},
          .failure = found.failure,
          .in_doubt = in_doubt};
  if (in_doubt)
    copy.failure = UnknownOutcome("no reply to a write", context_.cluster.address_of(copy.server));
  if (!counts(found)) return;
  copy.plain = plain_number(found.value);
  if (copy.plain) return;
  copy.record = CounterRecord::parse(found.value, servers_.size());
  if (copy.record) return known_.learn(*copy.record);
  if (!removal_)
    throw CorruptData(no_counter_message(name_, found.value), context_.cluster.address_of(copy.server));
}

bool CounterCopies::all_answer() const {
  return std::none_of(copies_.begin(), copies_.end(),
                      [](const Copy& copy) { return copy.failure.has_value(); });
}

// Of what is written. Where a copy that does not answer may be in another life, it is none of its own; a single one has none.
std::uint32_t CounterCopies::flags() const {
  return copies_.size() == 1 ? any_life : version_;
}

std::uint32_t CounterCopies::flags_of_plain() const {
  return version_ == any_life ? first_life : version_;
}

std::vector<std::size_t> CounterCopies::servers_of_any_life() const {
  std::vector<std::size_t> servers;
  for (const Copy& copy : copies_) {
    if (copy.plain && copy.version == any_life) servers.push_back(copy.server);
  }
  return servers;
}

bool CounterCopies::any_exact() const {
  return std::any_of(copies_.begin(), copies_.end(),
                     [](const Copy& copy) { return copy.record.has_value(); });
}

bool CounterCopies::is_plain() const {
  return !any_exact() &&
         std::any_of(copies_.begin(), copies_.end(), [](const Copy& copy) { return copy.plain.has_value(); });
}

// Whether a copy certainly has all that is known.
bool CounterCopies::told() const {
  return std::any_of(copies_.begin(), copies_.end(), [&](const Copy& copy) {
    return !copy.failure && copy.record && copy.record->covers(known_);
  });
}

// Of a counter that was removed, only what is there must say so.
bool CounterCopies::lacks(const Copy& copy) const {
  if (copy.failure) return false;
  if (copy.record) return !copy.record->covers(known_) || (copy.version == any_life && flags() != any_life);
  return removal_ || known_.exists();
}

// Who wrote a copy without knowing of the removal counted before it.
void CounterCopies::end_lives() {
  if (!removal_->written && !known_.exists()) return removal_.reset();
  const CounterRecord before = removal_->record;
  for (const Copy& copy : copies_) {
    const bool knows = !before.lives.empty() && copy.record && copy.record->covers(before);
    if (copy.record && !knows) removal_->record.learn(*copy.record);
  }
  for (const auto& [name, state] : removal_->record.lives) {
    if (state.changes > 0 && !state.is_over()) removal_->ended.insert(name);
  }
  removal_->record.end_lives(context_.clock.wall(), removal_->mark);
  known_.learn(removal_->record);
}

// Of two removals at the same time, one did.
bool CounterCopies::has_removed() const {
  return removal_ &&
         std::any_of(removal_->ended.begin(), removal_->ended.end(),
                     [&](const std::string& name) { return known_.lives.at(name).sum == removal_->mark; });
}

// The first copy that answers; null when none does. All clients that see the same servers count on the same copy.
CounterCopies::Copy* CounterCopies::leader() {
  for (Copy& copy : copies_) {
    const bool usable = !copy.failure && !refused_.contains(copy.server);
    if (usable && (doubts_.empty() || doubts_.front().server == copy.server)) return &copy;
  }
  return nullptr;
}

// Throws UnknownOutcome if the outcome is unknown.
bool CounterCopies::was_counted(const Doubt& doubt, const Copy& copy) const {
  const auto told = copy.record ? copy.record->tells(doubt.id, doubt.life, doubt.changes) : std::nullopt;
  if (!told) give_up();
  return *told;
}

// After lost replies: whether one of those writes was executed, or may be reported as executed.
bool CounterCopies::settle_doubts() {
  for (const Doubt& doubt : doubts_) {
    const auto copy = std::find_if(copies_.begin(), copies_.end(),
                                   [&](const Copy& one) { return one.server == doubt.server; });
    // In an older life, it makes no difference to the newer one.
    const bool over = doubt.version != any_life && doubt.version < version_;
    if (!over && (doubt.repeatable ? is_plain() : copy->failure || !was_counted(doubt, *copy))) continue;
    if (!over) known_.learn(doubt.written);
    counted_ = doubt.written.sum();
    counted_on_ = doubt.server;
    created_ = doubt.counter_created;
    return true;
  }
  return false;
}

std::optional<CounterCopiesValue> CounterCopies::incr(std::uint64_t delta, std::uint64_t initial,
                                                      std::optional<Duration> ttl, bool create) {
  initial_ = initial;
  const auto added = [=, this](bool exists, std::uint64_t now) -> std::optional<std::uint64_t> {
    if (!exists && !create && !any_exact()) return std::nullopt;
    if (!exists && !all_answer() && initial != 0) {
      throw NotApplied(ErrorCode::unavailable, "a copy does not answer, so it is unknown whether '" + name_ +
                                                   "' must start at --init; try again");
    }
    const std::uint64_t sum = delta + (exists ? 0 : initial);
    checked_sum(now, sum, "the new value");
    return sum;
  };
  return change(added, ttl);
}

std::optional<CounterCopiesValue> CounterCopies::decr(std::uint64_t delta) {
  const auto added = [=](bool exists, std::uint64_t now) {
    return exists ? std::optional(std::uint64_t{0} - std::min(now, delta)) : std::nullopt;
  };
  auto result = change(added, std::nullopt);
  if (result) result->value = counted_;
  return result;
}

std::optional<CounterCopiesValue> CounterCopies::change(const Added& added, std::optional<Duration> ttl) {
  int silent = 0;
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    back_off(context_, attempt);
    forget();
    read();
    const bool counted = settle_doubts();
    Copy* copy = leader();
    if (!counted && copy == nullptr && !doubts_.empty() && ++silent < most_silences) continue;
    if (!counted && copy == nullptr) fail();
    if (!counted && is_plain()) {
      if (!doubts_.empty()) give_up();
      return std::nullopt;
    }
    if (!counted) {
      const Counted done = count_on(*copy, added, ttl);
      if (done == Counted::nothing) return std::nullopt;
      if (done == Counted::no) continue;
    }
    spread();
    if (counted && !told()) {
      if (++silent == most_silences) give_up();
      continue;
    }
    return result();
  }
  if (!doubts_.empty()) give_up();
  throw Contention("other clients kept changing '" + name_ + "'; try again");
}

// No copy can be counted on.
void CounterCopies::fail() const {
  if (!doubts_.empty()) give_up();
  const auto because = [](const Failure& why) { throw NotApplied(why.code(), why.what(), why.server()); };
  for (const Copy& silent : copies_) {
    if (silent.failure) because(*silent.failure);
  }
  for (const auto& [server, refusal] : refused_) because(refusal);
  throw NotApplied(ErrorCode::refused, "no server stored '" + name_ + "'");
}

// What to start from on this copy: its own life, or a new one, and all that is known.
CounterRecord CounterCopies::base_for(const Copy& copy) const {
  CounterRecord base;
  if (copy.record) base = *copy.record;
  base.learn(known_);
  if (!copy.record || base.own_life_is_over()) {
    base.life = context_.random.token();
    base.lives[base.life] = {};
  }
  base.forget_removals(context_.clock.wall());
  return base;
}

CounterCopies::Counted CounterCopies::count_on(Copy& copy, const Added& added, std::optional<Duration> ttl) {
  const bool exists = known_.exists();
  const auto asked = attempt([&] { return added(exists, known_.sum()); });
  if ((asked.failure() || !asked.value()) && !doubts_.empty()) give_up();
  const auto sum = asked.value();
  if (!sum) return Counted::nothing;
  CounterRecord next = base_for(copy);
  if (!exists) next.expire_in(ttl, context_.clock.wall());
  const std::uint64_t before = next.changes();
  const std::string id = context_.random.token();
  next.count(*sum, id);
  const Reply reply = context_.cluster.execute(write(copy, next));
  if (reply.outcome == Outcome::stored) {
    known_.learn(next);
    counted_ = next.sum();
    copy.record = std::move(next);
    copy.version = flags();
    copy.plain.reset();
    counted_on_ = copy.server;
    created_ = !exists;
    return Counted::yes;
  }
  if (reply.unknown())
    doubts_.push_back({copy.server, next.life, id, before, next, !exists,
                       !copy.found && (exists || initial_ == 0), flags()});
  if (reply.failed() && !reply.unknown())
    refused_.emplace(copy.server, *copy_outcome(context_, reply).failure);
  return Counted::no;
}

NotApplied CounterCopies::no_cas(std::size_t server) const {
  return {ErrorCode::refused, "the server does not support cas; start memcached without -C",
          context_.cluster.address_of(server)};
}

Request CounterCopies::write(const Copy& copy, const CounterRecord& record) const {
  const Exptime exptime = record.exptime(context_.clock.wall());
  if (!copy.found) {
    Request add = Request::add(key_, record.text(servers_.size()), exptime).on(copy.server).relying_on_cas();
    add.must_expire = record.expires_at.has_value();
    add.flags = flags();
    return add;
  }
  if (copy.cas.value == 0) throw no_cas(copy.server);
  Request change =
      Request::compare_and_set(key_, record.text(servers_.size()), exptime, copy.cas).on(copy.server);
  change.flags = flags();
  return change;
}

// Tells the copies that know less. A write whose reply is lost is settled by reading: the record says what it knows.
void CounterCopies::spread() {
  for (int attempt = 0; attempt < most_spreads; ++attempt) {
    std::vector<Request> batch;
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < copies_.size(); ++i) {
      Copy& copy = copies_[i];
      if (!lacks(copy)) continue;
      if (copy.found && copy.cas.value == 0) {
        copy.failure = no_cas(copy.server);
        continue;
      }
      open.push_back(i);
      batch.push_back(write(copy, base_for(copy)));
    }
    if (batch.empty()) return;
    const auto replies = context_.cluster.execute(batch);
    bool again = false;
    for (std::size_t k = 0; k < open.size(); ++k) {
      Copy& copy = copies_[open[k]];
      const bool stored = replies[k].outcome == Outcome::stored;
      if (removal_ && (stored || replies[k].unknown())) removal_->written = true;
      if (stored) {
        copy.record = known_;
        copy.version = flags();
        continue;
      }
      again = again || !replies[k].failed() || replies[k].unknown();
      copy.in_doubt = replies[k].unknown();
      if (replies[k].failed() && !replies[k].unknown())
        copy.failure = copy_outcome(context_, replies[k]).failure;
    }
    if (!again) return;
    back_off(context_, attempt + 1);
    read();
  }
  for (Copy& copy : copies_) {
    if (lacks(copy))
      copy.failure =
          Contention("other clients kept changing this copy", context_.cluster.address_of(copy.server));
  }
}

CounterCopiesValue CounterCopies::result() const {
  // Another may have removed it since.
  CounterCopiesValue result{std::max(known_.sum(), counted_), created_, counted_on_, {}, known_.exists()};
  for (const Copy& copy : copies_) {
    CopyOutcome& outcome = result.copies.emplace_back(CopyOutcome{copy.server, {}, copy.failure});
    if (copy.record && !copy.failure) outcome.number = copy.record->sum();
  }
  return result;
}

std::optional<CounterCopiesValue> CounterCopies::heal(const VersionedItem& item) {
  take(item);
  if (!any_exact()) return std::nullopt;
  counted_on_ = servers_.front();
  const bool expired =
      known_.expires_at && WallTime(std::chrono::seconds(*known_.expires_at)) <= context_.clock.wall();
  if (!expired) spread();
  return result();
}

CounterCopiesValue CounterCopies::set(VersionedItem& item, std::uint64_t value, std::optional<Duration> ttl) {
  std::uint32_t life = next_life(item);
  for (int attempt = 0; attempt < most_spreads; ++attempt) {
    version_ = life;
    sets_ = true;
    known_ = CounterRecord::of_set(value);
    known_.expire_in(ttl, context_.clock.wall());
    if (attempt == 0) take(item);
    for (Copy& copy : copies_) copy.record.reset();
    const bool knew_all = all_answer();
    spread();
    // A newer life that was begun meanwhile follows this one; one that could not be seen is older, whatever its number.
    if (sets_ || knew_all) break;
    life = version_ + 1;
  }
  for (std::size_t i = 0; i < copies_.size(); ++i) item.copies[i].failure = copies_[i].failure;
  counted_on_ = servers_.front();
  counted_ = value;
  return result();
}

std::optional<bool> CounterCopies::remove(VersionedItem& item) {
  removal_ = Removal{*parse_hex64(context_.random.token())};
  take(item);
  if (!any_exact()) return std::nullopt;
  end_lives();
  outlive_silent();
  spread();
  for (std::size_t i = 0; i < copies_.size(); ++i) item.copies[i].failure = copies_[i].failure;
  return has_removed();
}

void CounterCopies::give_up() const {
  throw UnknownOutcome("no reply to an increment of '" + name_ +
                           "': it may have been counted; compare its value before trying again",
                       context_.cluster.address_of(doubts_.front().server));
}

}  // namespace mcds
