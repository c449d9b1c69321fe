#include "common/structures/counter/counter.hpp"

#include <algorithm>
#include <memory_resource>
#include <unordered_map>

#include "common/base/bytes.hpp"
#include "common/primitives/key_names.hpp"
#include "common/primitives/side_by_side.hpp"
#include "common/structures/counter/copies.hpp"
#include "common/structures/counter/failures.hpp"
#include "common/structures/counter/lives.hpp"
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

Request increment(const Context& context, const std::string& key, std::uint64_t delta, std::uint64_t first,
                  std::optional<Duration> ttl) {
  Request request = Request::incr_or_create(key, delta, first, expiry_in(context, ttl));
  request.must_expire = ttl.has_value();
  return request;
}

// Seen before it was changed, and no record of ours.
bool is_text(const Reply& reply) {
  const bool record = reply.value.starts_with("C1 ") || reply.value.starts_with("C2 ");
  return reply.is(ReplyFailure::Kind::not_a_number) && !reply.value.empty() && !record;
}

CounterValue value_of(const CounterUpdateResult& result) {
  return {*result.after, !result.before, result.exact, result.server};
}

CounterValue value_of(CounterCopiesValue result) {
  return {result.value, result.created, true, result.server, std::move(result.copies)};
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

std::string Counter::key_of(const std::string& name) const {
  return names_ == Names::whole_keys ? whole_key(context_.key_prefix, name)
                                     : structure_key(context_, "counter", name);
}

CounterValue Counter::incr(const std::string& name, std::uint64_t delta, const IncrOptions& options) {
  const std::string key = key_of(name);
  checked_sum(options.initial, delta, "the value");
  if (by_update(options)) return incr_by_update(name, key, delta, options);
  const Request request = increment(context_, key, delta, options.initial + delta, options.ttl);
  const auto replies = execute_copies(context_, Request(request).checking_for_text());
  return finish_incr(name, key, delta, options, replies);
}

bool Counter::by_update(const IncrOptions& options) const {
  return options.exact || (context_.copies > 1 && names_ == Names::counters);
}

// A copy that is missing is created in the life of the others, so that their numbers go on counting. One that was made by a
// client that knew no other is put into the first life, so that it tells of the others from now on.
CounterValue Counter::incr_plain(const std::string& name, const std::string& key, std::uint64_t delta,
                                 const IncrOptions& options, const CounterCopies& seen) {
  const std::uint64_t first = options.initial + delta;
  begin_life(key, seen.servers_of_any_life(), first_life);
  std::vector<Request> batch;
  for (const std::size_t server : copy_servers(context_, key)) {
    Request request = increment(context_, key, delta, first, options.ttl).on(server);
    request.flags = seen.flags_of_plain();
    if (seen.is_missing(batch.size())) {
      request.op = Op::add;
      request.value = std::to_string(first);
    }
    batch.push_back(std::move(request));
  }
  auto replies = context_.cluster.execute(batch);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (batch[i].op != Op::add) continue;
    replies[i].number = first;
    replies[i].created = true;
    if (replies[i].outcome != Outcome::not_stored) continue;
    batch[i].op = Op::incr_or_create;
    replies[i] = context_.cluster.execute(batch[i]);
  }
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

void Counter::refuse_with_copies(const char* what) const {
  if (context_.copies == 1) return;
  throw InvalidInput(std::string(what) +
                     " depends on the value, on which copies cannot agree; use --copies 1 for this counter");
}

CounterValue Counter::finish_incr(const std::string& name, const std::string& key, std::uint64_t delta,
                                  const IncrOptions& options, std::span<const Reply> replies) {
  if (const auto seen = std::find_if(replies.begin(), replies.end(), is_text); seen != replies.end())
    throw CorruptData(seen->failure->message, context_.cluster.address_of(seen->server));
  const bool stored = std::any_of(replies.begin(), replies.end(), is_stored);
  const auto text = std::find_if(replies.begin(), replies.end(), is_no_number);
  if (text != replies.end()) {
    if (context_.copies == 1) return incr_by_update(name, key, delta, options);
    // An exact counter's lost copy may have been created plain just now, which then does not count. If it is plain, what was
    // stored counts, and what was perhaps stored may: nothing is sent again.
    if (auto result = CounterCopies(context_, name, key).incr(delta, options.initial, options.ttl, true))
      return value_of(std::move(*result));
    if (!stored &&
        std::none_of(replies.begin(), replies.end(), [](const Reply& one) { return one.unknown(); }))
      throw CorruptData(no_counter_message(name, {}), context_.cluster.address_of(text->server));
  }
  if (stored) {
    const CounterValue best = best_of(replies);
    return checked(name, key, best, replies).value_or(best);
  }
  fail_counter(context_, name, telling(replies));
}

CounterValue Counter::incr_by_update(const std::string& name, const std::string& key, std::uint64_t delta,
                                     const IncrOptions& options) {
  if (context_.copies > 1) {
    CounterCopies copies(context_, name, key);
    const bool plain = options.plain && names_ == Names::counters;
    auto result = copies.incr(delta, options.initial, options.ttl, !plain);
    if (result) return value_of(std::move(*result));
    if (options.exact) throw exists_and_is_plain(name);
    return incr_plain(name, key, delta, options, copies);
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
  std::vector<IncrementResult*> updates;
  std::vector<Request> requests;
  requests.reserve(names.size());
  begun.sent_.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    IncrementResult& result = names[i];
    if (result.failure) continue;
    keep_failure(result, [&] {
      std::string key = key_of(result.name);
      const std::uint64_t first = checked_sum(options.initial, result.delta, "the value");
      if (by_update(options)) return updates.push_back(&result);
      requests.push_back(increment(context_, key, result.delta, first, options.ttl));
      begun.sent_.push_back({i, std::move(key)});
    });
  }
  if (!requests.empty()) begun.replies_.emplace(context_, std::move(requests));
  for (std::size_t i = 0; i < updates.size(); i += most_side_by_side) {
    const auto some = std::span<IncrementResult* const>(updates).subspan(i);
    incr_side_by_side(some.first(std::min(some.size(), most_side_by_side)), options);
  }
  return begun;
}

void Counter::incr_side_by_side(std::span<IncrementResult* const> results, const IncrOptions& options) const {
  const SideBySide runs(context_, results.size());
  runs.each([&](std::size_t i) {
    IncrementResult& result = *results[i];
    keep_failure(
        result, [&] { result.value = Counter(runs.at(i), names_).incr(result.name, result.delta, options); });
  });
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
  const auto all = decr_all(key, delta);
  const auto replies = std::span(all).first(context_.copies);
  if (std::any_of(replies.begin(), replies.end(), is_no_number)) {
    if (context_.copies == 1) {
      const auto result = CounterUpdate(context_, name, key, subtracting(delta), {}).run();
      return result.before ? std::optional(value_of(result)) : std::nullopt;
    }
    if (auto result = CounterCopies(context_, name, key).decr(delta)) return value_of(std::move(*result));
  }
  if (std::any_of(replies.begin(), replies.end(), is_stored)) {
    leave_behind(key, all);
    CounterValue value = best_of(replies);
    value.created = false;
    return checked(name, key, std::move(value), replies);
  }
  const auto tells_nothing = [](const Reply& reply) {
    return is_miss(reply) || reply.is(ReplyFailure::Kind::not_a_number);
  };
  if (std::all_of(replies.begin(), replies.end(), tells_nothing)) return std::nullopt;
  fail_counter(context_, name, telling(replies));
}

}  // namespace mcds
