#include "common/structures/counter/copies.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/primitives/cas_update.hpp"
#include "common/primitives/key_names.hpp"
#include "common/structures/counter/failures.hpp"

namespace mcds {

namespace {

constexpr int most_counts = 200;
constexpr int most_silences = 3;  // of a server that owes a reply, before the outcome is called unknown
constexpr int most_spreads = 50;
constexpr auto remembered_for = std::chrono::hours(1);
constexpr std::int64_t ends_soon = 5;  // seconds: more than servers' clocks are late

bool is_in_doubt(const std::optional<Failure>& failure) {
  return failure && failure->code() == ErrorCode::unknown_outcome;
}

}  // namespace

CounterCopies::CounterCopies(const Context& context, std::string name, const std::string& window)
    : context_(context),
      name_(std::move(name)),
      kept_(Counter::kept(context, name_, window)),
      key_(kept_.key() + window) {
  for (const std::size_t server : copy_servers(context_, key_)) copies_.push_back({.server = server});
}

template <typename Test>
bool CounterCopies::any(const Test& test) const {
  return std::any_of(copies_.begin(), copies_.end(), test);
}

void CounterCopies::read() {
  std::vector<Request> batch;
  for (const Copy& copy : copies_) batch.push_back(Request::gets(key_).on(copy.server));
  const auto replies = context_.cluster.execute(batch);
  for (std::size_t i = 0; i < copies_.size(); ++i) take(copies_[i], replies[i]);
  end_those_before();
  for (const Copy& copy : copies_) {
    if (copy.record) known_.learn(*copy.record);
  }
}

void CounterCopies::take(Copy& copy, const Reply& reply) {
  const bool in_doubt = is_in_doubt(copy.failure);
  copy = {.server = copy.server};
  copy.failure = attempt([&] { expect_read(context_.cluster, reply); }).failure();
  const std::string server = context_.cluster.address_of(copy.server);
  if (copy.failure && in_doubt) copy.failure = UnknownOutcome("no reply to a write", server);
  if (copy.failure) return;
  copy.found = is_hit(reply);
  copy.cas = reply.cas;
  if (!copy.found) return;
  copy.held = HeldCounter::parse(reply.value);
  copy.record = CounterRecord::parse(copy.held ? copy.held->value : reply.value, copies_.size());
  if (!copy.record) throw CorruptData(no_counter_message(name_, reply.value), server);
}

void CounterCopies::end_those_before() {
  const WallTime now = context_.clock.wall();
  const auto expiry = [](const CounterRecord& record) {
    return record.base.expires_at.value_or(std::numeric_limits<std::int64_t>::max());
  };
  std::int64_t latest = 0;
  for (const Copy& copy : copies_) {
    if (copy.record && copy.record->exists()) latest = std::max(latest, expiry(*copy.record));
  }
  const auto soon = now + std::chrono::seconds(ends_soon);
  for (Copy& copy : copies_) {
    if (!copy.record) continue;
    const bool before =
        copy.record->exists() && expiry(*copy.record) < latest && copy.record->has_expired(soon);
    if (before || copy.record->has_expired(now)) copy.record.reset();
  }
}

// All copies, while nobody is putting the counter elsewhere. What was known before may be lost by now, or
// elsewhere.
void CounterCopies::look() {
  for (int attempt = 0; attempt < most_counts; ++attempt) {
    back_off(context_, attempt);
    known_ = {};
    read();
    if (any([](const Copy& copy) { return copy.held.has_value(); })) {
      if (!kept_.elsewhere(true)) thaw();
      continue;
    }
    const bool missing = any([](const Copy& copy) { return !copy.failure && !copy.found; });
    if ((missing || !known_.exists()) && kept_.elsewhere()) continue;
    if (doubts_.empty()) was_nowhere_ = !known_.exists();
    return;
  }
  throw Contention("the number of copies of '" + name_ + "' is being changed; try again");
}

void CounterCopies::look_and_rely() {
  look();
  std::vector<CopyState> states;
  for (const Copy& copy : copies_)
    states.push_back({.failure = copy.failure, .has = copy.record.has_value()});
  if (const auto failure = failure_of(Part::reading, states)) raise(*failure);
}

// Nobody is putting it elsewhere: who did has died.
void CounterCopies::thaw() {
  std::vector<Request> batch;
  for (const Copy& copy : copies_) {
    if (copy.held) batch.push_back(copy.held->thaw(context_, key_, copy.cas).on(copy.server));
  }
  context_.cluster.execute(batch);
}

// What was changed on one copy goes along.
bool CounterCopies::is_elsewhere() {
  if (any([](const Copy& copy) { return copy.held.has_value(); })) return true;
  if (!any([](const Copy& copy) { return !copy.failure && !copy.found; })) return false;
  const auto moved = attempt([&] { return kept_.elsewhere(); });
  return moved.failure() || moved.value();
}

bool CounterCopies::lacks(const Copy& copy) const {
  return !copy.failure && !copy.held && !(copy.record && copy.record->covers(known_));
}

// The first copy that answers; null when none does. All clients that see the same servers count on the same
// copy.
CounterCopies::Copy* CounterCopies::leader() {
  for (Copy& copy : copies_) {
    const bool usable = !copy.failure && !refused_.contains(copy.server);
    if (usable && (doubts_.empty() || doubts_.front().server == copy.server)) return &copy;
  }
  return nullptr;
}

// After lost replies: whether one of those writes was executed, or may be reported as executed.
bool CounterCopies::settle_doubts() {
  for (const Doubt& doubt : doubts_) {
    const auto copy = std::find_if(copies_.begin(), copies_.end(),
                                   [&](const Copy& one) { return one.server == doubt.server; });
    if (!doubt.of_new_life) {
      if (copy->failure) continue;
      const auto told =
          copy->record ? copy->record->tells(doubt.id, doubt.life, doubt.changes) : std::nullopt;
      if (!told) give_up();
      if (!*told) continue;
    }
    known_.learn(doubt.written);
    counted_ = doubt.written.sum();
    counted_on_ = doubt.server;
    created_ = doubt.created;
    return true;
  }
  return false;
}

CounterCopies::Counted CounterCopies::count(const Added& added, const Creation& creation) {
  int silent = 0;
  for (int attempts = 0; attempts < most_counts; ++attempts) {
    back_off(context_, attempts);
    const auto looked = attempt([&] { look_and_rely(); });
    if (looked.failure() && doubts_.empty()) raise(*looked.failure());
    if (looked.failure() || (!settle_doubts() && leader() == nullptr)) {
      if (doubts_.empty()) raise(refused_.begin()->second);
      if (++silent == most_silences) give_up();
      continue;
    }
    if (!counted_on_) {
      const bool exists = known_.exists();
      const auto sum = attempt([&] { return added(exists, exists ? known_.sum() : creation.initial); });
      if ((sum.failure() || !sum.value()) && !doubts_.empty()) give_up();
      if (!sum.value()) {
        answer_unchanged();
        return {.exists = known_.exists(), .value = answer(known_.sum())};
      }
      count_on(*leader(), *sum.value(), creation);
    }
    if (counted_on_) return spread_count();
  }
  if (!doubts_.empty()) give_up();
  throw Contention("other clients kept changing '" + name_ + "'; try again");
}

CounterCopies::Counted CounterCopies::spread_count() {
  const CounterRecord ours = known_;
  spread();
  const auto done = attempt([&] { expect(Part::changing, ours); });
  if (done.failure() && !doubts_.empty()) give_up();
  done.value();
  if (was_nowhere_) confirm_creation(ours);
  return {.made = true, .exists = true, .value = answer(counted_)};
}

// What to start from on this copy: its own life, or a new one, and all that is known.
CounterRecord CounterCopies::base_for(const Copy& copy) const {
  CounterRecord base;
  if (copy.record) base = *copy.record;
  base.learn(known_);
  if (!copy.record) base.life = context_.random.token();
  base.lives[base.life];
  return base;
}

// One that could not be seen must not count as newer; an increment may have begun anew where it could not be
// seen either.
std::uint64_t CounterCopies::next_base() const {
  const bool in_doubt =
      known_.base.number <= 1 && any([](const Copy& copy) { return copy.failure.has_value(); });
  if (known_.base.number + 1 >= CounterRecord::most_bases)
    throw CorruptData("'" + name_ + "' cannot be set again; remove its keys");
  return in_doubt ? first_in_doubt : known_.base.number + 1;
}

void CounterCopies::count_on(Copy& copy, std::uint64_t delta, const Creation& creation) {
  const bool exists = known_.exists();
  CounterRecord next = base_for(copy);
  if (!exists) {
    next.base = {.number = known_.base.number + 1,
                 .kind = CounterRecord::Base::Kind::begun,
                 .value = creation.initial,
                 .mark = context_.random.token(),
                 .expires_at = creation.expires_at};
  }
  const bool of_new_life = !copy.record;
  const std::uint64_t before = next.changes();
  const std::string id = context_.random.token();
  next.count(delta, id);
  const Reply reply = context_.cluster.execute(write(copy, next));
  if (is_stored(reply)) {
    sent_ = true;
    known_.learn(next);
    counted_ = next.sum();
    counted_on_ = copy.server;
    created_ = !exists;
    copy.record = std::move(next);
    copy.found = true;
  } else if (reply.unknown()) {
    doubts_.push_back({copy.server, next.life, id, before, next, !exists, of_new_life});
  } else if (reply.failed()) {
    refused_.emplace(copy.server, *copy_outcome(context_, reply).failure);
  }
}

Request CounterCopies::write(const Copy& copy, const CounterRecord& record) const {
  const Exptime exptime = record.exptime(context_.clock.wall());
  const std::string text = record.text(copies_.size());
  if (copy.found) return Request::compare_and_set(key_, text, exptime, copy.cas).on(copy.server);
  Request add = Request::add(key_, text, exptime).on(copy.server).relying_on_cas();
  add.must_expire = record.base.expires_at.has_value();
  return add;
}

// Tells the copies that know less. A write whose reply is lost is settled by reading: the record says what it
// knows.
void CounterCopies::spread() {
  for (int attempts = 0; attempts < most_spreads; ++attempts) {
    std::vector<Request> batch;
    std::vector<std::pair<Copy*, CounterRecord>> open;
    for (Copy& copy : copies_) {
      if (!lacks(copy)) continue;
      if (copy.found && copy.cas.value == 0) {
        copy.failure =
            NotApplied(ErrorCode::refused, "the server does not support cas; start memcached without -C",
                       context_.cluster.address_of(copy.server));
        continue;
      }
      open.emplace_back(&copy, base_for(copy));
      batch.push_back(write(copy, open.back().second));
    }
    if (batch.empty()) return;
    const auto replies = context_.cluster.execute(batch);
    bool again = false;
    for (std::size_t k = 0; k < open.size(); ++k) {
      auto& [copy, record] = open[k];
      sent_ = sent_ || is_stored(replies[k]) || replies[k].unknown();
      copy->failure = copy_outcome(context_, replies[k]).failure;
      if (is_stored(replies[k])) {
        copy->record = std::move(record);
        copy->found = true;
      } else if (!copy->failure || is_in_doubt(copy->failure)) {
        again = true;
      }
    }
    if (!again) return;
    back_off(context_, attempts + 1);
    read();
    if (is_elsewhere()) return;
  }
  for (Copy& copy : copies_) {
    if (lacks(copy))
      copy.failure =
          Contention("other clients kept changing this copy", context_.cluster.address_of(copy.server));
  }
}

// What a held copy has goes along to where the counter is put.
void CounterCopies::expect(Part part, const CounterRecord& wanted) const {
  std::vector<CopyState> states;
  for (const Copy& copy : copies_) {
    const bool has = copy.record && copy.record->covers(wanted);
    if (has && copy.held) return;
    states.push_back({.failure = copy.failure, .has = has});
  }
  const auto failure = failure_of(part, states);
  if (!failure) return;
  // What was written on a copy that cannot be seen now may count.
  if (part == Part::changing && sent_) throw UnknownOutcome(failure->what(), failure->server());
  raise(*failure);
}

void CounterCopies::answer_unchanged() {
  if (known_.base.number == 0) return;
  spread();
  expect(Part::answering, known_);
}

CounterReading CounterCopies::get() {
  look_and_rely();
  CounterReading reading{{}, {}, copies_.front().server};
  answer_unchanged();
  if (known_.exists())
    reading.value = answer(known_.sum());
  else
    reading.copies = outcomes();
  return reading;
}

SetResult CounterCopies::set(std::uint64_t value, std::optional<Duration> ttl, bool if_absent) {
  const auto make = [&] {
    const CounterRecord::Base base{.number = next_base(),
                                   .kind = CounterRecord::Base::Kind::set,
                                   .value = value,
                                   .mark = context_.random.token(),
                                   .expires_at = expiry_second(ttl, context_.clock.wall())};
    return std::optional(CounterRecord::reset(known_, base));
  };
  if (if_absent) {
    const auto unless_there = [&] { return known_.exists() ? std::nullopt : make(); };
    if (!claim(unless_there)) return {false, known_.sum(), copies_.front().server, outcomes()};
  } else {
    set_anyway(make);
  }
  if (was_nowhere_) confirm_creation(known_);
  return {true, value, copies_.front().server, outcomes()};
}

// Where nothing was written and a newer value has come to light, it may have been there before: this one is
// to come after it.
void CounterCopies::set_anyway(const Making& make) {
  for (int attempts = 0; attempts < most_counts; ++attempts) {
    back_off(context_, attempts);
    look_and_rely();
    const CounterRecord mine = *make();
    known_.learn(mine);
    spread();
    if (sent_ || known_.base.mark == mine.base.mark) return expect(Part::changing, mine);
  }
  throw Contention("other clients kept changing '" + name_ + "'; try again");
}

CounterRemoval CounterCopies::remove() {
  const auto make = [&]() -> std::optional<CounterRecord> {
    if (!known_.exists()) return std::nullopt;
    const auto until = expiry_second(remembered_for, context_.clock.wall());
    return CounterRecord::reset(known_, {.number = next_base(),
                                         .kind = CounterRecord::Base::Kind::removed,
                                         .value = static_cast<std::uint64_t>(*until),
                                         .mark = context_.random.token(),
                                         .expires_at = known_.base.expires_at});
  };
  const bool removed = claim(make);
  return {removed, {}, copies_.front().server, outcomes()};
}

// False: there was nothing to be made. What was perhaps written is not made anew: it would take away what
// came after it.
bool CounterCopies::claim(const Making& make) {
  std::optional<CounterRecord> mine;
  for (int attempts = 0; attempts < most_counts; ++attempts) {
    back_off(context_, attempts);
    look_and_rely();
    mine = make();
    if (!mine) return answer_unchanged(), false;
    Copy* first = leader();
    if (first == nullptr) raise(refused_.begin()->second);
    if (!claim_on(*first, *mine)) continue;
    known_.learn(*mine);
    spread();
    expect_claimed(*mine);
    return true;
  }
  throw Contention("other clients kept changing '" + name_ + "'; try again");
}

// False: it was not written.
bool CounterCopies::claim_on(Copy& copy, const CounterRecord& mine) {
  CounterRecord next = base_for(copy);
  next.learn(mine);
  const Reply reply = context_.cluster.execute(write(copy, next));
  if (is_stored(reply)) {
    copy.record = std::move(next);
    copy.found = true;
    return true;
  }
  if (reply.unknown()) {
    // Whether it was executed is seen when the others are told.
    copy.failure = copy_outcome(context_, reply).failure;
    return true;
  }
  if (reply.failed()) refused_.emplace(copy.server, *copy_outcome(context_, reply).failure);
  return false;
}

void CounterCopies::expect_claimed(const CounterRecord& mine) const {
  std::vector<CopyState> states;
  for (const Copy& copy : copies_)
    states.push_back(
        {.failure = copy.failure, .has = copy.record && copy.record->base.mark == mine.base.mark});
  const auto failure = failure_of(Part::changing, states);
  if (!failure) return;
  // A copy that was not told was perhaps told of another's.
  throw UnknownOutcome(
      "'" + name_ + "' was changed by another client at the same moment, or " + failure->what(),
      failure->server());
}

void CounterCopies::confirm_creation(const CounterRecord& ours) {
  kept_.confirm([&] { return take_back(ours); });
}

// False: something may be left.
bool CounterCopies::take_back(const CounterRecord& ours) {
  read();
  std::vector<Request> batch;
  for (const Copy& copy : copies_) {
    if (copy.failure || copy.held || (copy.found && !(copy.record && ours.covers(*copy.record))))
      return false;
    if (copy.found) batch.push_back(Request::remove_if(key_, copy.cas).on(copy.server));
  }
  const auto replies = context_.cluster.execute(batch);
  return std::all_of(replies.begin(), replies.end(),
                     [](const Reply& reply) { return reply.outcome == Outcome::deleted || is_miss(reply); });
}

std::vector<CopyOutcome> CounterCopies::outcomes() const {
  std::vector<CopyOutcome> list;
  for (const Copy& copy : copies_) {
    CopyOutcome& outcome = list.emplace_back(CopyOutcome{copy.server, {}, copy.failure});
    if (copy.record && !copy.failure && copy.record->exists()) outcome.number = copy.record->sum();
  }
  return list;
}

CounterValue CounterCopies::answer(std::uint64_t value) const {
  return {value, created_, true, counted_on_.value_or(copies_.front().server), outcomes()};
}

void CounterCopies::give_up() const {
  throw UnknownOutcome("no reply to a change of '" + name_ +
                           "': it may have been counted; compare its value before trying again",
                       context_.cluster.address_of(doubts_.front().server));
}

}  // namespace mcds
