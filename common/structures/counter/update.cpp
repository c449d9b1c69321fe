#include "common/structures/counter/update.hpp"

#include <algorithm>

#include "common/base/errors.hpp"
#include "common/structures/counter/failures.hpp"
#include "common/structures/counter/held.hpp"

namespace mcds {

namespace {

constexpr int most_waits = 200;

}  // namespace

bool thaw_single(const Context& context, Kept& kept, const std::string& key, const Reply& seen) {
  const auto held = HeldCounter::parse(seen.value);
  if (!held) return false;
  if (!kept.elsewhere(true)) {
    const Reply now = context.cluster.execute(Request::gets(key).on(seen.server));
    if (now.value == seen.value) context.cluster.execute(held->thaw(context, key, now.cas).on(seen.server));
  }
  return true;
}

void expect_only_copy(Kept& kept, const std::string& name, const Reply& seen) {
  if (seen.value.starts_with("C2 ")) throw CorruptData(no_counter_message(name, seen.value));
  if (seen.flags == 0) return;
  const auto places = kept.places(true);
  if (!places.empty() && places.front().unmarked) kept.refuse_unmarked();
}

bool take_back(const Context& context, const std::string& key, const std::string& value) {
  const Reply now = expect_read(context.cluster, context.cluster.execute(Request::gets(key)));
  if (now.outcome != Outcome::hit) return true;
  if (now.value != value || now.cas.value == 0) return false;
  return context.cluster.execute(Request::remove_if(key, now.cas).on(now.server)).outcome == Outcome::deleted;
}

CounterUpdateResult CounterUpdate::run() {
  for (int attempts = 0;; ++attempts) {
    again_ = false;
    const auto done =
        cas_update(context_, key_, [this](const Observed& observed) { return decide(observed); });
    if (done.written) result_ = attempts_.back().result;
    result_.server = done.server;
    if (done.written && !result_.before && options_.kept != nullptr)
      options_.kept->confirm([&] { return take_back(context_, key_, attempts_.back().written); });
    if (!again_) return result_;
    if (attempts == most_waits) throw Contention("'" + name_ + "' is being put elsewhere; try again");
  }
}

// Whoever finds it missing, or held, waits until it is not being put elsewhere.
bool CounterUpdate::must_look_again(const Observed& observed) {
  if (options_.kept == nullptr) return false;
  Reply seen = Reply::of(observed.found ? Outcome::hit : Outcome::miss, observed.server);
  seen.value = observed.value;
  seen.flags = observed.flags;
  seen.cas = observed.cas;
  if (observed.uncertain && (!observed.found || HeldCounter::parse(observed.value))) give_up();
  if (!observed.found) return options_.kept->elsewhere();
  if (thaw_single(context_, *options_.kept, key_, seen)) return true;
  expect_only_copy(*options_.kept, name_, seen);
  return false;
}

std::optional<Write> CounterUpdate::decide(const Observed& observed) {
  if (!observed.uncertain) attempts_.clear();  // all of them were refused
  again_ = must_look_again(observed);
  if (again_) return std::nullopt;
  if (!observed.found) return change_missing(observed);
  if (const auto record = CounterRecord::parse(observed.value, 1)) return change_exact(observed, *record);
  return change_plain(observed);
}

std::optional<Write> CounterUpdate::change_missing(const Observed& observed) {
  check_unchanged(observed);
  const auto next = next_(std::nullopt);
  if (!next) return leave(observed, std::nullopt, false);
  CounterRecord created = CounterRecord::single();
  created.expire_in(options_.ttl, context_.clock.wall());
  return attempt(observed, std::move(created), {std::nullopt, next, options_.create_exact, observed.server});
}

std::optional<Write> CounterUpdate::change_exact(const Observed& observed, const CounterRecord& record) {
  if (observed.uncertain) {
    for (const Attempt& earlier : attempts_) {
      if (!record.has(earlier.id)) continue;
      result_ = earlier.result;
      return std::nullopt;
    }
    check_conclusive(record);
  }
  const auto next = next_(record.sum());
  if (!next) return leave(observed, record.sum(), true);
  CounterRecord base = record;
  if (options_.new_expiry) base.expire_in(options_.ttl, context_.clock.wall());
  return attempt(observed, std::move(base), {record.sum(), next, true, observed.server});
}

std::optional<Write> CounterUpdate::change_plain(const Observed& observed) {
  const auto value = plain_number(observed.value);
  const std::string server = context_.cluster.address_of(observed.server);
  if (!value) {
    throw CorruptData(no_counter_message(name_, observed.value), server);
  }
  if (options_.exact_only) throw exists_and_is_plain(name_);
  check_unchanged(observed);
  const auto next = next_(value);
  if (!next) return leave(observed, value, false);
  return attempt(observed, CounterRecord::single(), {value, next, false, observed.server});
}

std::optional<Write> CounterUpdate::leave(const Observed& observed, std::optional<std::uint64_t> value,
                                          bool exact) {
  result_ = {value, value, exact, observed.server};
  return std::nullopt;
}

Write CounterUpdate::attempt(const Observed& observed, CounterRecord record, CounterUpdateResult result) {
  attempts_.push_back({context_.random.token(), record.changes(), observed, result, {}});
  attempts_.back().observed.value.clear();
  if (!result.exact) return noted({std::to_string(*result.after), plain_exptime(observed)});
  record.count(*result.after - record.sum(), attempts_.back().id);
  return noted({record.text(1), record.exptime(context_.clock.wall())});
}

Write CounterUpdate::noted(Write write) {
  attempts_.back().written = write.value;
  return write;
}

// A plain value, or none, does not show whether an earlier attempt was applied; that nothing changed since
// does.
void CounterUpdate::check_unchanged(const Observed& observed) const {
  if (!observed.uncertain) return;
  const Observed& before = attempts_.back().observed;
  if (before.found != observed.found || before.cas != observed.cas) give_up();
}

void CounterUpdate::check_conclusive(const CounterRecord& record) const {
  for (const Attempt& earlier : attempts_) {
    if (!earlier.result.exact || !record.tells(earlier.id, record.life, earlier.changes)) give_up();
  }
}

void CounterUpdate::give_up() const {
  throw UnknownOutcome("no reply to a change of '" + name_ +
                       "': it may have been applied; compare its value before trying again");
}

Exptime CounterUpdate::plain_exptime(const Observed& observed) const {
  const WallTime now = context_.clock.wall();
  if (options_.new_expiry || !observed.found) {
    return options_.ttl ? Exptime::after(*options_.ttl, now) : Exptime::never();
  }
  if (!observed.ttl || observed.ttl->count() < 0) return Exptime::never();
  return Exptime::after(*observed.ttl, now);
}

}  // namespace mcds
