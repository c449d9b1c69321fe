#include "common/structures/counter/counter.hpp"

#include <algorithm>
#include <memory_resource>
#include <unordered_map>

#include "common/base/bytes.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/primitives/key_names.hpp"
#include "common/structures/counter/copies.hpp"
#include "common/structures/counter/failures.hpp"
#include "common/structures/counter/recopy.hpp"
#include "common/structures/counter/update.hpp"

namespace mcds {

namespace {

constexpr int most_deletions = 200;
constexpr std::size_t bytes_of_a_name = 64;  // in the map that finds equal ones
constexpr std::uint64_t end_of_safe_values = std::uint64_t{1} << 63;

InvalidInput too_large(std::string_view what) {
  return InvalidInput(std::string(what) +
                      " is 2^63 or more, which some servers misread; stay below 9223372036854775808");
}

std::optional<std::uint64_t> safe_sum(std::uint64_t a, std::uint64_t b) {
  if (a >= end_of_safe_values || b >= end_of_safe_values - a) return std::nullopt;
  return a + b;
}

// Seen before it was changed, and no record of ours.
bool is_text(const Reply& reply) {
  const bool record = reply.value.starts_with("C1 ") || reply.value.starts_with("C2 ");
  return reply.is(ReplyFailure::Kind::not_a_number) && !reply.value.empty() && !record;
}

CounterValue value_of(const CounterUpdateResult& result) {
  return {*result.after, !result.before, result.exact, result.server};
}

CounterUpdate::Next adding(std::uint64_t delta, std::uint64_t initial) {
  return [=](std::optional<std::uint64_t> now) {
    return checked_sum(now.value_or(initial), delta, "the new value");
  };
}

CounterUpdate::Next subtracting(std::uint64_t delta) {
  return [=](std::optional<std::uint64_t> now) -> std::optional<std::uint64_t> {
    if (!now) return std::nullopt;
    return *now - std::min(*now, delta);
  };
}

// Sums up equal names.
IncrementResults group(std::span<const Increment> batch) {
  IncrementResults results;
  std::pmr::monotonic_buffer_resource memory(batch.size() * bytes_of_a_name);
  std::pmr::unordered_map<std::string_view, std::size_t> index_of(&memory);
  index_of.reserve(batch.size());
  results.of_names.reserve(batch.size());
  results.of_lines.reserve(batch.size());
  for (const Increment& increment : batch) {
    const auto [at, is_new] = index_of.try_emplace(increment.name, results.of_names.size());
    if (is_new) results.of_names.push_back({increment.name, 0, {}, {}});
    results.of_lines.push_back(at->second);
    IncrementResult& result = results.of_names[at->second];
    if (const auto sum = safe_sum(result.delta, increment.delta)) {
      result.delta = *sum;
    } else if (!result.failure) {
      result.failure = too_large("the sum of the increments of " + in_quotes(increment.name));
    }
  }
  return results;
}

bool is_no_number(const Reply& reply) {
  return reply.is(ReplyFailure::Kind::not_a_number);
}

Request increment(const Context& context, const std::string& key, std::uint64_t delta,
                  const IncrOptions& options) {
  Request request =
      Request::incr_or_create(key, delta, options.initial + delta, expiry_in(context, options.ttl));
  request.must_expire = options.ttl.has_value();
  return request;
}

}  // namespace

void check_counter_value(std::uint64_t value, std::string_view what) {
  if (value >= end_of_safe_values) throw too_large(what);
}

std::uint64_t checked_sum(std::uint64_t a, std::uint64_t b, std::string_view what) {
  if (const auto sum = safe_sum(a, b)) return *sum;
  throw too_large(what);
}

void fail_counter(const Context& context, const std::string& name, const Reply& reply) {
  if (reply.unknown()) {
    throw UnknownOutcome("no reply to a change of " + in_quotes(name) +
                             ": it may have been counted; compare its value before trying again",
                         context.cluster.address_of(reply.server));
  }
  expect(context.cluster, reply);
  throw NotApplied(ErrorCode::refused,
                   "the server did not store " + in_quotes(name) + "; it may be out of memory",
                   context.cluster.address_of(reply.server));
}

Counter::Counter(const Context& context, Names names) : context_(context), names_(names) {
  if (names == Names::whole_keys) context_.copies = 1;
}

std::string Counter::key_of(const std::string& name) const {
  return names_ == Names::whole_keys ? whole_key(context_.key_prefix, name)
                                     : copied_key(context_, "counter", name);
}

// Roots of several copies that say together that the counter was removed. A limit's window of before 0.3 ends
// by itself.
Kept Counter::kept(const Context& context, const std::string& name, const std::string& window) {
  const auto has_left = [window](std::span<const std::string> roots, std::size_t copies) {
    if (copies == 1) return !window.empty() && roots.size() > 1;
    CounterRecord all;
    for (const std::string& root : roots) {
      const auto held = HeldCounter::parse(root);
      const auto record = CounterRecord::parse(held ? held->value : root, copies);
      if (!record) return false;
      all.learn(*record);
    }
    return !all.exists();
  };
  const auto complete = [context, name](const Recopying::Seen& left) {
    complete_recopy(context, name, left);
  };
  return {context,
          "counter",
          name,
          window,
          [](const std::string&, const std::string&) { return true; },
          complete,
          has_left,
          Kept::Unmarked::refused};
}

// A single server holds one copy of everything.
bool Counter::may_be_elsewhere() const {
  return names_ == Names::counters && context_.cluster.placement().pool().size() > 1;
}

std::optional<Kept> Counter::kept_single(const std::string& name, const std::string& window) const {
  return may_be_elsewhere() ? std::optional(kept(context_, name, window)) : std::nullopt;
}

void Counter::confirm(Kept& kept, const std::string& key, const std::string& value) const {
  kept.confirm([&] { return take_back(context_, key, value); });
}

CounterValue Counter::incr(const std::string& name, std::uint64_t delta, const IncrOptions& options) {
  const std::string key = key_of(name);
  checked_sum(options.initial, delta, "the value");
  if (has_copies() || options.exact) return incr_by_update(name, delta, options);
  Request request = increment(context_, key, delta, options).checking_for_text();
  if (may_be_elsewhere()) request = std::move(request).without_creating();
  return finish_incr(name, delta, options, context_.cluster.execute(request));
}

CounterValue Counter::finish_incr(const std::string& name, std::uint64_t delta, const IncrOptions& options,
                                  const Reply& reply) const {
  if (is_text(reply))
    throw CorruptData(no_counter_message(name, reply.value), context_.cluster.address_of(reply.server));
  if (is_no_number(reply)) return incr_by_update(name, delta, options);
  if (is_miss(reply)) return create(name, delta, options);
  if (!is_stored(reply)) fail_counter(context_, name, reply);
  return {reply.number, reply.created, false, reply.server};
}

// A plain counter that was missing.
CounterValue Counter::create(const std::string& name, std::uint64_t delta, const IncrOptions& options) const {
  const std::string key = key_of(name);
  Kept kept = Counter::kept(context_, name);
  static_cast<void>(kept.elsewhere());
  const Reply reply = context_.cluster.execute(increment(context_, key, delta, options).checking_for_text());
  CounterValue value = finish_incr(name, delta, options, reply);
  if (value.created && !value.exact) confirm(kept, key, std::to_string(value.value));
  return value;
}

void Counter::refuse_with_copies(const char* what) const {
  if (!has_copies()) return;
  throw InvalidInput(std::string(what) +
                     " depends on the value, on which copies cannot agree; use --copies 1 for this counter");
}

CounterValue Counter::incr_by_update(const std::string& name, std::uint64_t delta,
                                     const IncrOptions& options) const {
  if (has_copies()) {
    const auto added = [&](bool, std::uint64_t now) {
      checked_sum(now, delta, "the new value");
      return std::optional(delta);
    };
    const auto expires_at = expiry_second(options.ttl, context_.clock.wall());
    return CounterCopies(context_, name).count(added, {options.initial, expires_at}).value;
  }
  auto kept = kept_single(name);
  const CounterUpdateOptions how{.create_exact = options.exact,
                                 .exact_only = options.exact,
                                 .ttl = options.ttl,
                                 .kept = kept ? &*kept : nullptr};
  return value_of(CounterUpdate(context_, name, key_of(name), adding(delta, options.initial), how).run());
}

IncrementResults Counter::incr(std::span<const Increment> batch, const IncrOptions& options) {
  return begin_incr(batch, options).finish();
}

Counter::Incrementing Counter::begin_incr(std::span<const Increment> batch, const IncrOptions& options) {
  Incrementing begun(*this, options);
  begun.results_ = group(batch);
  std::vector<IncrementResult>& names = begun.results_.of_names;
  std::vector<IncrementResult*> updates;
  std::vector<Request> requests;
  requests.reserve(names.size());
  begun.sent_.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    IncrementResult& result = names[i];
    if (result.failure) continue;
    keep_failure(result, [&] {
      std::string key = key_of(result.name);
      checked_sum(options.initial, result.delta, "the value");
      if (has_copies() || options.exact) return updates.push_back(&result);
      requests.push_back(may_be_elsewhere() ? Request::incr(std::move(key), result.delta)
                                            : increment(context_, key, result.delta, options));
      begun.sent_.push_back(i);
    });
  }
  if (!requests.empty()) begun.pending_ = context_.cluster.begin(std::move(requests));
  side_by_side(updates.size(), [&](std::size_t i, Counter& counter) {
    IncrementResult& result = *updates[i];
    keep_failure(result, [&] { result.value = counter.incr(result.name, result.delta, options); });
  });
  return begun;
}

IncrementResults Counter::Incrementing::finish() {
  if (!pending_) return std::move(results_);
  const auto replies = pending_->finish();
  std::vector<std::size_t> open;  // those that take more trips
  for (std::size_t i = 0; i < sent_.size(); ++i) {
    if (is_miss(replies[i]) || is_no_number(replies[i])) {
      open.push_back(i);
      continue;
    }
    IncrementResult& result = results_.of_names[sent_[i]];
    keep_failure(result, [&] {
      result.value = counter_->finish_incr(result.name, result.delta, options_, replies[i]);
    });
  }
  counter_->side_by_side(open.size(), [&](std::size_t i, Counter& counter) {
    IncrementResult& result = results_.of_names[sent_[open[i]]];
    keep_failure(result, [&] {
      result.value = counter.finish_incr(result.name, result.delta, options_, replies[open[i]]);
    });
  });
  return std::move(results_);
}

std::optional<CounterValue> Counter::decr(const std::string& name, std::uint64_t delta) {
  check_counter_value(delta, "the delta");
  if (has_copies()) {
    const auto added = [=](bool exists, std::uint64_t now) {
      return exists ? std::optional(std::uint64_t{0} - std::min(now, delta)) : std::nullopt;
    };
    auto counted = CounterCopies(context_, name).count(added);
    return counted.made ? std::optional(std::move(counted.value)) : std::nullopt;
  }
  const std::string key = key_of(name);
  auto kept = kept_single(name);
  const Reply reply = context_.cluster.execute(Request::decr(key, delta));
  if (is_stored(reply)) return CounterValue{reply.number, false, false, reply.server};
  if (!is_miss(reply) && !is_no_number(reply)) fail_counter(context_, name, reply);
  if (is_miss(reply) && !kept) return std::nullopt;
  const CounterUpdateOptions how{.kept = kept ? &*kept : nullptr};
  const auto result = CounterUpdate(context_, name, key, subtracting(delta), how).run();
  return result.before ? std::optional(value_of(result)) : std::nullopt;
}

std::vector<CounterReading> Counter::get(std::span<const std::string> names) {
  std::vector<CounterReading> readings(names.size());
  std::vector<std::size_t> open;
  std::vector<Request> requests;
  for (const std::string& name : names) requests.push_back(Request::get(key_of(name)));
  auto replies = has_copies() ? std::vector<Reply>() : context_.cluster.execute(requests);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto value = has_copies() ? std::nullopt : value_seen(replies[i]);
    const bool foreign = !has_copies() && !value && is_hit(replies[i]) && replies[i].flags == 0;
    if (value || (!has_copies() && !may_be_elsewhere() && is_miss(replies[i]))) {
      readings[i] = {value, {}, replies[i].server};
    } else if (foreign || (!has_copies() && replies[i].failed())) {
      keep_failure(readings[i], [&] {
        const Reply& reply = expect_read(context_.cluster, replies[i]);
        throw CorruptData(no_counter_message(names[i], reply.value),
                          context_.cluster.address_of(reply.server));
      });
    } else {
      open.push_back(i);
    }
  }
  replies.clear();  // others' values may be large
  side_by_side(open.size(), [&](std::size_t i, Counter& counter) {
    CounterReading& reading = readings[open[i]];
    const std::string& name = names[open[i]];
    keep_failure(reading, [&] {
      reading = has_copies() ? CounterCopies(counter.context_, name).get() : counter.read_alone(name);
    });
  });
  return readings;
}

// Of one copy; nullopt: more must be asked.
std::optional<CounterValue> Counter::value_seen(const Reply& reply) const {
  if (!is_hit(reply) || (reply.flags != 0 && may_be_elsewhere())) return std::nullopt;
  const auto number = plain_number(reply.value);
  if (number) return CounterValue{*number, false, false, reply.server};
  const auto record = CounterRecord::parse(reply.value, 1);
  return record ? std::optional(CounterValue{record->sum(), false, true, reply.server}) : std::nullopt;
}

CounterReading Counter::read_alone(const std::string& name) const {
  auto kept = kept_single(name);
  std::optional<CounterReading> reading;
  const auto look = [&](std::optional<std::uint64_t> now) {
    reading.emplace();
    if (now) reading->value = CounterValue{*now, false, false, 0};
    return std::optional<std::uint64_t>();
  };
  const CounterUpdateOptions how{.kept = kept ? &*kept : nullptr};
  const auto found = CounterUpdate(context_, name, key_of(name), look, how).run();
  reading->server = found.server;
  if (reading->value) reading->value = CounterValue{*found.before, false, found.exact, found.server};
  return *reading;
}

SetResult Counter::set(const std::string& name, std::uint64_t value, std::optional<Duration> ttl,
                       bool if_absent) {
  check_counter_value(value, "the value");
  if (has_copies()) return CounterCopies(context_, name).set(value, ttl, if_absent);
  const auto next = [=](std::optional<std::uint64_t> now) -> std::optional<std::uint64_t> {
    if (if_absent && now) return std::nullopt;
    return value;
  };
  auto kept = kept_single(name);
  const CounterUpdateOptions how{.new_expiry = true, .ttl = ttl, .kept = kept ? &*kept : nullptr};
  const auto result = CounterUpdate(context_, name, key_of(name), next, how).run();
  return {!(if_absent && result.before), *result.after, result.server};
}

std::optional<CounterValue> Counter::take(const std::string& name) {
  refuse_with_copies("take");
  const auto next = [](std::optional<std::uint64_t> now) -> std::optional<std::uint64_t> {
    if (!now || *now == 0) return std::nullopt;
    return 0;
  };
  auto kept = kept_single(name);
  const CounterUpdateOptions how{.kept = kept ? &*kept : nullptr};
  const auto result = CounterUpdate(context_, name, key_of(name), next, how).run();
  if (!result.before) return std::nullopt;
  return CounterValue{*result.before, false, result.exact, result.server};
}

std::vector<CounterRemoval> Counter::remove(std::span<const std::string> names) {
  std::vector<CounterRemoval> removals(names.size());
  side_by_side(names.size(), [&](std::size_t i, Counter& counter) {
    keep_failure(removals[i], [&] {
      removals[i] =
          has_copies() ? CounterCopies(counter.context_, names[i]).remove() : counter.remove_alone(names[i]);
    });
  });
  return removals;
}

// Only what was seen: it may be on its way elsewhere.
CounterRemoval Counter::remove_alone(const std::string& name) const {
  const std::string key = key_of(name);
  auto kept = kept_single(name);
  for (int attempts = 0; kept && attempts < most_deletions; ++attempts) {
    back_off(context_, attempts);
    const Reply seen = expect_read(context_.cluster, context_.cluster.execute(Request::gets(key)));
    if (!is_hit(seen)) {
      if (kept->elsewhere()) continue;
      return {false, {}, seen.server};
    }
    if (thaw_single(context_, *kept, key, seen)) continue;
    expect_only_copy(*kept, name, seen);
    if (seen.cas.value == 0) break;
    const Reply reply = context_.cluster.execute(Request::remove_if(key, seen.cas).on(seen.server));
    if (reply.outcome == Outcome::deleted) return {true, {}, reply.server};
    expect(context_.cluster, reply);
  }
  const Reply reply = expect(context_.cluster, context_.cluster.execute(Request::remove(key)));
  return {reply.outcome == Outcome::deleted, {}, reply.server};
}

}  // namespace mcds
