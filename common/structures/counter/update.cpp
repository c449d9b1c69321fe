#include "common/structures/counter/update.hpp"

#include <algorithm>

#include "common/base/errors.hpp"
#include "common/structures/counter/failures.hpp"
#include "common/structures/counter/lives.hpp"

namespace mcds {

CounterUpdateResult CounterUpdate::run() {
  const auto done = cas_update(context_, key_, [this](const Observed& observed) { return decide(observed); });
  if (done.written) result_ = attempts_.back().result;
  result_.server = done.server;
  return result_;
}

std::optional<Write> CounterUpdate::decide(const Observed& observed) {
  if (!observed.uncertain) attempts_.clear();  // all of them were refused
  if (!observed.found) return change_missing(observed);
  // In a later life, what one copy began would not count.
  if (context_.copies == 1 && observed.flags <= first_life &&
      tells_of_removal(observed.value, observed.flags)) {
    Observed none = observed;
    none.found = false;
    return change_missing(none);
  }
  if (observed.flags != 0 && options_.check_flags) options_.check_flags();
  if (const auto record = CounterRecord::parse(observed.value, context_.copies))
    return change_exact(observed, *record);
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
  attempts_.push_back({context_.random.token(), record.changes(), observed, result});
  attempts_.back().observed.value.clear();
  if (!result.exact) return {std::to_string(*result.after), plain_exptime(observed)};
  record.count(*result.after - record.sum(), attempts_.back().id);
  return {record.text(context_.copies), record.exptime(context_.clock.wall())};
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
