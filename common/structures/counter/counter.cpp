#include "common/structures/counter/counter.hpp"

#include <algorithm>
#include <memory_resource>
#include <unordered_map>

#include "common/base/bytes.hpp"
#include "common/primitives/key_names.hpp"
#include "common/structures/counter/copies.hpp"
#include "common/structures/counter/failures.hpp"
#include "common/structures/counter/update.hpp"

namespace mcds {

namespace {

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

std::uint64_t checked_sum(std::uint64_t a, std::uint64_t b, std::string_view what) {
  if (const auto sum = safe_sum(a, b)) return *sum;
  throw too_large(what);
}

Exptime exptime_of(const Context& context, std::optional<Duration> ttl) {
  return ttl ? Exptime::after(*ttl, context.clock.wall()) : Exptime::never();
}

Request increment(const Context& context, const std::string& key, std::uint64_t delta, std::uint64_t first,
                  std::optional<Duration> ttl) {
  Request request = Request::incr_or_create(key, delta, first, exptime_of(context, ttl));
  request.must_expire = ttl.has_value();
  return request;
}

// Seen before it was changed, and no record of ours.
bool is_text(const Reply& reply) {
  const bool record = reply.value.starts_with("C1 ") || reply.value.starts_with("C2 ");
  return reply.is(ReplyFailure::Kind::not_a_number) && !reply.value.empty() && !record;
}

std::string in_quotes(const std::string& name) {
  return '\'' + name + '\'';
}

CounterValue value_of(const CounterUpdateResult& result) {
  return {*result.after, !result.before, result.exact, result.server};
}

CounterValue parse_value(const Context& context, const std::string& name, const Reply& reply) {
  if (const auto number = plain_number(reply.value)) return {*number, false, false, reply.server};
  if (const auto record = CounterRecord::parse(reply.value)) return {record->sum, false, true, reply.server};
  throw CorruptData(no_counter_message(name, reply.value), context.cluster.address_of(reply.server));
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

bool is_stored(const Reply& reply) {
  return reply.outcome == Outcome::stored;
}
bool is_hit(const Reply& reply) {
  return reply.outcome == Outcome::hit;
}
bool is_miss(const Reply& reply) {
  return reply.outcome == Outcome::miss || reply.outcome == Outcome::not_found;
}

bool any_not_a_number(std::span<const Reply> replies) {
  return std::any_of(replies.begin(), replies.end(),
                     [](const Reply& reply) { return reply.is(ReplyFailure::Kind::not_a_number); });
}

// A counter's life begins with a set, or a removal that did not reach every copy: its number is the copies' version.
std::uint32_t life_of(const VersionedItem& item) {
  std::uint32_t life = 0;
  for (const VersionedCopy& copy : item.copies) {
    if (copy.found && !copy.failure) life = std::max(life, copy.number);
  }
  return life;
}

bool holds_one(const VersionedItem& item) {
  const std::uint32_t life = life_of(item);
  return std::any_of(item.copies.begin(), item.copies.end(),
                     [&](const VersionedCopy& copy) { return copy.live() && copy.number == life; });
}

// Runs `work` and keeps its failure, if any, in the result.
template <typename Result, typename Work>
void keep_failure(Result& result, Work work) {
  try {
    work();
  } catch (const Failure& failure) {
    result.failure = failure;
  }
}

}  // namespace

void check_counter_value(std::uint64_t value, std::string_view what) {
  if (value >= end_of_safe_values) throw too_large(what);
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

std::string Counter::key_of(const std::string& name) const {
  return names_ == Names::whole_keys ? whole_key(context_.key_prefix, name)
                                     : structure_key(context_, "counter", name);
}

CounterValue Counter::incr(const std::string& name, std::uint64_t delta, const IncrOptions& options) {
  const std::string key = key_of(name);
  const std::uint64_t first = checked_sum(options.initial, delta, "the value");
  if (options.exact) return incr_by_update(name, key, delta, options);
  const auto replies =
      execute_copies(context_, increment(context_, key, delta, first, options.ttl).checking_for_text());
  return finish_incr(name, key, delta, options, replies);
}

// Of the copies that were changed: the largest value is the counter's.
CounterValue Counter::best_of(std::span<const Reply> replies) const {
  CounterValue value{0, true, false, replies.front().server, copy_outcomes(context_, replies)};
  for (const Reply& reply : replies) {
    if (!is_stored(reply)) continue;
    value.value = std::max(value.value, reply.number);
    value.created = value.created && reply.created;
  }
  return value;
}

// Copies that differ may be of different lives: then the newest one's is the value.
CounterValue Counter::checked(const std::string& name, const std::string& key, CounterValue value,
                              std::span<const Reply> replies) {
  const auto differs = [&](const Reply& reply) { return is_stored(reply) && reply.number != value.value; };
  if (std::none_of(replies.begin(), replies.end(), differs)) return value;
  try {
    const auto seen = execute_copies(context_, Request::gets(key));
    const CounterReading reading = merge(name, key, seen);
    // A copy that was changed just now, and cannot be read, counts while all others are of the first life: after a set it
    // may be one that missed it.
    bool all_seen = true;
    for (std::size_t i = 0; i < replies.size(); ++i)
      all_seen = all_seen && (!is_stored(replies[i]) || is_hit(seen[i]));
    if (reading.value && (all_seen || life_of(Versions(context_).item_of(key, seen)) > 0))
      value.value = reading.value->value;
  } catch (const NotApplied&) {
    // It is counted; that others do not answer now changes nothing.
  }
  return value;
}

void Counter::refuse_with_copies(const char* what) const {
  if (context_.copies == 1) return;
  throw InvalidInput(std::string(what) +
                     " depends on the value, on which copies cannot agree; use --copies 1 for this counter");
}

// What it has in its flags is the life of a counter with several copies, or another program's: that is on no other server.
void Counter::expect_only_copy(const std::string& name, const std::string& key) const {
  if (names_ == Names::whole_keys) return;
  const Placement& placement = context_.cluster.placement();
  const auto servers = placement.servers_of(key, std::min(placement.pool().size(), most_copies));
  std::vector<Request> batch;
  for (std::size_t i = 1; i < servers.size(); ++i) batch.push_back(Request::gets(key).on(servers[i]));
  if (batch.empty()) return;
  const auto replies = context_.cluster.execute(batch);
  std::size_t copies = 1;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (is_hit(replies[i]) && replies[i].flags != 0) copies = i + 2;
  }
  if (copies == 1) return;
  throw Failure(ErrorCode::bad_data, "the counter " + in_quotes(name) + " is kept in " +
                                         std::to_string(copies) + " copies; give --copies " +
                                         std::to_string(copies));
}

CounterValue Counter::finish_incr(const std::string& name, const std::string& key, std::uint64_t delta,
                                  const IncrOptions& options, std::span<const Reply> replies) {
  if (const auto text = std::find_if(replies.begin(), replies.end(), is_text); text != replies.end())
    throw CorruptData(text->failure->message, context_.cluster.address_of(text->server));
  // An exact counter's lost copy may have been created plain just now; the update puts that right.
  if (any_not_a_number(replies)) return incr_by_update(name, key, delta, options);
  if (std::any_of(replies.begin(), replies.end(), is_stored))
    return checked(name, key, best_of(replies), replies);
  fail_counter(context_, name, telling(replies));
}

CounterValue Counter::incr_by_update(const std::string& name, const std::string& key, std::uint64_t delta,
                                     const IncrOptions& options) {
  if (context_.copies > 1) {
    auto result = CounterCopies(context_, name, key).incr(delta, options.initial, options.ttl);
    return {result.value, result.created, true, result.server, std::move(result.copies)};
  }
  const CounterUpdateOptions how{
      .create_exact = options.exact, .exact_only = options.exact, .ttl = options.ttl};
  return value_of(CounterUpdate(context_, name, key, adding(delta, options.initial), how).run());
}

IncrementResults Counter::incr(std::span<const Increment> batch, const IncrOptions& options) {
  return begin_incr(batch, options).finish();
}

Counter::Incrementing Counter::begin_incr(std::span<const Increment> batch, const IncrOptions& options) {
  Incrementing begun(*this, options);
  begun.results_ = group(batch);
  std::vector<IncrementResult>& names = begun.results_.of_names;
  std::vector<Request> requests;
  requests.reserve(names.size());
  begun.sent_.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    IncrementResult& result = names[i];
    if (result.failure) continue;
    keep_failure(result, [&] {
      std::string key = key_of(result.name);
      const std::uint64_t first = checked_sum(options.initial, result.delta, "the value");
      if (options.exact) {
        result.value = incr_by_update(result.name, key, result.delta, options);
        return;
      }
      requests.push_back(increment(context_, key, result.delta, first, options.ttl));
      begun.sent_.push_back({i, std::move(key)});
    });
  }
  if (!requests.empty()) begun.replies_.emplace(context_, std::move(requests));
  return begun;
}

IncrementResults Counter::Incrementing::finish() {
  if (!replies_) return std::move(results_);
  const auto replies = replies_->finish();
  for (std::size_t i = 0; i < sent_.size(); ++i) {
    IncrementResult& result = results_.of_names[sent_[i].result];
    keep_failure(result, [&] {
      result.value = counter_->finish_incr(result.name, sent_[i].key, result.delta, options_, replies[i]);
    });
  }
  return std::move(results_);
}

std::optional<CounterValue> Counter::decr(const std::string& name, std::uint64_t delta) {
  check_counter_value(delta, "the delta");
  const std::string key = key_of(name);
  const auto replies = execute_copies(context_, Request::decr(key, delta));
  if (!any_not_a_number(replies)) {
    if (std::any_of(replies.begin(), replies.end(), is_stored)) {
      CounterValue value = best_of(replies);
      value.created = false;
      return checked(name, key, std::move(value), replies);
    }
    if (std::all_of(replies.begin(), replies.end(), is_miss)) return std::nullopt;
    fail_counter(context_, name, telling(replies));
  }
  refuse_with_copies("decr of an exact counter");
  const auto result = CounterUpdate(context_, name, key, subtracting(delta), {}).run();
  if (!result.before) return std::nullopt;
  return value_of(result);
}

std::vector<CounterReading> Counter::get(std::span<const std::string> names) {
  std::vector<Request> requests;
  // To make an exact counter's lost copy whole takes cas uniques.
  for (const std::string& name : names) {
    requests.push_back(context_.copies > 1 ? Request::gets(key_of(name)) : Request::get(key_of(name)));
  }
  const auto replies = execute_copies(context_, requests);
  std::vector<CounterReading> readings(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    readings[i].server = replies[i].front().server;
    keep_failure(readings[i], [&] { readings[i] = merge(names[i], requests[i].key, replies[i]); });
  }
  return readings;
}

CounterReading Counter::merge(const std::string& name, const std::string& key,
                              std::span<const Reply> replies) {
  CounterReading reading{{}, {}, replies.front().server};
  if (std::none_of(replies.begin(), replies.end(), is_hit)) {
    // A copy that does not answer may be the only one that has it, unless most copies miss.
    const auto misses = static_cast<std::size_t>(std::count_if(replies.begin(), replies.end(), is_miss));
    if (2 * misses <= replies.size()) expect_read(context_.cluster, telling(replies));
    return reading;
  }
  const auto is_plain = [](const Reply& reply) { return !is_hit(reply) || plain_number(reply.value); };
  if (replies.size() > 1 && !std::all_of(replies.begin(), replies.end(), is_plain)) {
    auto healed = CounterCopies(context_, name, key).heal(replies);
    reading.value = {healed->value, false, true, healed->server, std::move(healed->copies)};
    return reading;
  }
  if (replies.size() == 1) {
    reading.value = parse_value(context_, name, replies.front());
    return reading;
  }
  const Versions versions(context_);
  VersionedItem item = versions.item_of(key, replies);
  const std::uint32_t life = life_of(item);
  for (const VersionedCopy& copy : item.copies) {
    if (!copy.live() || copy.number != life) continue;
    const std::uint64_t value = *plain_number(copy.value);
    if (!reading.value || value > reading.value->value)
      reading.value = CounterValue{value, false, false, copy.server};
  }
  begin_again(versions, item, life, !reading.value);
  if (!reading.value) return reading;
  reading.value->server = reading.server;
  reading.value->copies = copy_outcomes(context_, replies);
  return reading;
}

// A copy of an older life counts from 0 in this one: what the others count may be in transit to it, too.
void Counter::begin_again(const Versions& versions, VersionedItem& item, std::uint32_t life, bool removed) {
  std::erase_if(item.copies, [&](const VersionedCopy& copy) { return !copy.found || copy.number == life; });
  VersionedWrite write{.item = &item,
                       .number = life,
                       .removed = removed,
                       .value = "0",
                       .once = true,
                       .exptime = Exptime::never()};
  versions.write(std::span(&write, 1));
}

SetResult Counter::set(const std::string& name, std::uint64_t value, std::optional<Duration> ttl,
                       bool if_absent) {
  check_counter_value(value, "the value");
  const auto next = [=](std::optional<std::uint64_t> now) -> std::optional<std::uint64_t> {
    if (if_absent && now) return std::nullopt;
    return value;
  };
  if (context_.copies > 1) return set_copies(name, value, ttl, if_absent);
  const std::string key = key_of(name);
  const CounterUpdateOptions how{
      .new_expiry = true, .ttl = ttl, .check_flags = [&] { expect_only_copy(name, key); }};
  const auto result = CounterUpdate(context_, name, key, next, how).run();
  return {!(if_absent && result.before), *result.after, result.server};
}

SetResult Counter::set_copies(const std::string& name, std::uint64_t value, std::optional<Duration> ttl,
                              bool if_absent) {
  const std::string key = key_of(name);
  auto replies = execute_copies(context_, Request::gets(key));
  const CounterReading reading = merge(name, key, replies);
  if (reading.value && reading.value->exact) refuse_with_copies("set of an exact counter");
  if (if_absent && reading.value) return {false, reading.value->value, reading.server, reading.value->copies};
  const Versions versions(context_);
  VersionedItem item = versions.item_of(key, replies);
  const auto number = item.next_number();
  if (!number) throw no_version_left(key);
  VersionedWrite write{
      .item = &item, .number = *number, .value = std::to_string(value), .exptime = exptime_of(context_, ttl)};
  versions.write(std::span(&write, 1));
  if (const auto failure = item.failure_of_write()) throw Failure(*failure);
  SetResult result{true, value, reading.server, item.outcomes()};
  for (CopyOutcome& copy : result.copies) {
    if (!copy.failure) copy.number = value;
  }
  return result;
}

std::optional<CounterValue> Counter::take(const std::string& name) {
  refuse_with_copies("take");
  const auto next = [](std::optional<std::uint64_t> now) -> std::optional<std::uint64_t> {
    if (!now || *now == 0) return std::nullopt;
    return 0;
  };
  const std::string key = key_of(name);
  const CounterUpdateOptions how{.check_flags = [&] { expect_only_copy(name, key); }};
  const auto result = CounterUpdate(context_, name, key, next, how).run();
  if (!result.before) return std::nullopt;
  return CounterValue{*result.before, false, result.exact, result.server};
}

std::vector<CounterRemoval> Counter::remove(std::span<const std::string> names) {
  if (context_.copies > 1) return remove_copies(names);
  std::vector<Request> requests;
  for (const std::string& name : names) requests.push_back(Request::remove(key_of(name)));
  const auto replies = context_.cluster.execute(requests);
  std::vector<CounterRemoval> removals(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    removals[i].server = replies[i].server;
    removals[i].removed = replies[i].outcome == Outcome::deleted;
    if (!removals[i].removed) keep_failure(removals[i], [&] { expect(context_.cluster, replies[i]); });
  }
  return removals;
}

// Where a copy does not answer, the others keep word of it: a new life that has not begun to count.
std::vector<CounterRemoval> Counter::remove_copies(std::span<const std::string> names) {
  const Versions versions(context_);
  std::vector<std::string> keys;
  for (const std::string& name : names) keys.push_back(key_of(name));
  std::vector<VersionedItem> items = versions.read(keys);
  std::vector<Request> requests;
  std::vector<VersionedCopy*> asked;
  for (VersionedItem& item : items) {
    for (VersionedCopy& copy : item.copies) {
      if (copy.failure || !copy.found || item.any_failed()) continue;
      requests.push_back(Request::remove(item.key).on(copy.server));
      asked.push_back(&copy);
    }
  }
  std::vector<CounterRemoval> removals(names.size());
  for (std::size_t i = 0; i < items.size(); ++i) removals[i].removed = holds_one(items[i]);
  std::vector<std::optional<std::uint32_t>> numbers;
  for (const VersionedItem& item : items) numbers.push_back(item.next_number());
  const auto replies = context_.cluster.execute(requests);
  for (std::size_t i = 0; i < replies.size(); ++i) {
    asked[i]->failure = copy_outcome(context_, replies[i]).failure;
    asked[i]->found = false;
  }
  std::vector<VersionedWrite> writes;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].any_failed() && numbers[i])
      writes.push_back({.item = &items[i],
                        .number = *numbers[i],
                        .removed = true,
                        .value = "0",
                        .exptime = Exptime::never()});
  }
  versions.write(writes);
  for (std::size_t i = 0; i < items.size(); ++i) {
    removals[i].server = items[i].copies.front().server;
    removals[i].copies = items[i].outcomes();
    removals[i].failure = items[i].failure_of_write();
  }
  return removals;
}

}  // namespace mcds
