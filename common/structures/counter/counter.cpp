#include "common/structures/counter/counter.hpp"

#include <algorithm>
#include <memory_resource>
#include <unordered_map>

#include "common/base/bytes.hpp"
#include "common/primitives/key_names.hpp"
#include "common/structures/counter/copies.hpp"
#include "common/structures/counter/failures.hpp"
#include "common/structures/counter/recopy.hpp"

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

// Seen before it was changed, and no record of ours.
bool is_text(const Reply& reply) {
  const bool record = reply.value.starts_with("C1 ") || reply.value.starts_with("C2 ");
  return reply.is(ReplyFailure::Kind::not_a_number) && !reply.value.empty() && !record;
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
  if (is_text(reply))
    throw CorruptData(no_counter_message(name, reply.value), context.cluster.address_of(reply.server));
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
  const auto has_left = [window, &clock = context.clock](std::span<const std::string> roots,
                                                         std::size_t copies) {
    if (copies == 1) return !window.empty() && roots.size() > 1;
    CounterRecord all;
    for (const std::string& root : roots) {
      const auto held = HeldCounter::parse(root);
      auto record = CounterRecord::parse(held ? held->value : root, copies);
      if (!record) return false;
      if (record->age(clock.wall())) all.learn(*record);
    }
    return !all.exists();
  };
  return {context,
          "counter",
          name,
          window,
          [](const std::string&, const std::string&) { return true; },
          [context, name](Recopying& change) { move_counter(change, context, name); },
          has_left,
          Kept::Unmarked::refused};
}

bool Counter::may_be_elsewhere() const {
  return names_ == Names::counters && context_.cluster.placement().pool().size() > 1;
}

Counter Counter::with_one_copy() const {
  Context context = context_;
  context.copies = 1;
  return Counter(context, names_);
}

CounterValue Counter::incr(const std::string& name, std::uint64_t delta, const IncrOptions& options) {
  const Increment increment{name, delta};
  IncrementResult result =
      std::move(begin_incr(std::span(&increment, 1), options, true).finish().of_names.front());
  if (result.failure) raise(*result.failure);
  return std::move(*result.value);
}

IncrementResults Counter::incr(std::span<const Increment> batch, const IncrOptions& options) {
  return begin_incr(batch, options).finish();
}

Counter::Incrementing Counter::begin_incr(std::span<const Increment> batch, const IncrOptions& options) {
  return begin_incr(batch, options, false);
}

Counter::Incrementing Counter::begin_incr(std::span<const Increment> batch, const IncrOptions& options,
                                          bool checked) {
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
      const bool asks = add_first_request(result, options, checked, requests);
      (asks ? begun.sent_ : begun.unsent_).push_back(i);
    });
  }
  if (!requests.empty()) begun.pending_ = context_.cluster.begin(std::move(requests));
  return begun;
}

// What its server counts by itself; false: the copies are to be read. Where it may be elsewhere, only what is
// there is counted. `checked`: never on a text that begins with a number.
bool Counter::add_first_request(const IncrementResult& increment, const IncrOptions& options, bool checked,
                                std::vector<Request>& requests) const {
  std::string key = key_of(increment.name);
  const std::uint64_t created = checked_sum(options.initial, increment.delta, "the value");
  if (!is_single() || options.exact) return false;
  if (may_be_elsewhere() && !checked) {
    requests.push_back(Request::incr(std::move(key), increment.delta));
    return true;
  }
  const Exptime exptime = expiry_in(context_, options.ttl);
  Request& request =
      requests.emplace_back(Request::incr_or_create(std::move(key), increment.delta, created, exptime));
  request.must_expire = options.ttl.has_value();
  request.creates = !may_be_elsewhere();
  request.checked = checked;
  return true;
}

IncrementResults Counter::Incrementing::finish() {
  std::vector<Reply> replies = pending_ ? pending_->finish() : std::vector<Reply>();
  std::vector<std::pair<std::size_t, Reply>> open;  // which take more trips, and what is known of them
  for (std::size_t i = 0; i < sent_.size(); ++i) {
    IncrementResult& result = results_.of_names[sent_[i]];
    Reply& reply = replies[i];
    if (is_stored(reply))
      result.value = {reply.number, reply.created, false, reply.server};
    else if (is_miss(reply) || (is_no_number(reply) && !is_text(reply)))
      open.emplace_back(sent_[i], std::move(reply));
    else
      keep_failure(result, [&] { fail_counter(counter_->context_, result.name, reply); });
  }
  for (const std::size_t one : unsent_) open.emplace_back(one, Reply());
  counter_->side_by_side(open.size(), [&](std::size_t i, Counter& counter) {
    IncrementResult& result = results_.of_names[open[i].first];
    keep_failure(result, [&] { result.value = counter.count_up(result, options_, open[i].second); });
  });
  return std::move(results_);
}

CounterValue Counter::count_up(const IncrementResult& increment, const IncrOptions& options,
                               const Reply& first) const {
  CounterCopies copies(*this, increment.name);
  if (is_miss(first)) copies.begin_with(std::span(&first, 1));
  const auto added = [&](bool, std::uint64_t now) {
    checked_sum(now, increment.delta, "the new value");
    return std::optional(increment.delta);
  };
  return copies.count(added, {options.initial, options.ttl, options.exact}).value;
}

std::optional<CounterValue> Counter::decr(const std::string& name, std::uint64_t delta) {
  check_counter_value(delta, "the delta");
  CounterCopies copies(*this, name);
  Reply reply;
  if (is_single()) {
    reply = context_.cluster.execute(Request::decr(key_of(name), delta));
    if (is_stored(reply)) return CounterValue{reply.number, false, false, reply.server};
    if (is_miss(reply))
      copies.begin_with(std::span(&reply, 1));
    else if (!is_no_number(reply))
      fail_counter(context_, name, reply);
  }
  const auto added = [=](bool exists, std::uint64_t now) {
    return exists ? std::optional(std::uint64_t{0} - std::min(now, delta)) : std::nullopt;
  };
  auto counted = copies.count(added, {});
  return counted.made ? std::optional(std::move(counted.value)) : std::nullopt;
}

std::vector<CounterReading> Counter::get(std::span<const std::string> names) {
  std::vector<CounterReading> readings(names.size());
  std::vector<Request> requests;
  // Some servers of other makers know no gets; a single copy is not written by who reads it.
  for (const std::string& name : names)
    requests.push_back(is_single() ? Request::get(key_of(name)) : Request::gets(key_of(name)));
  const CopyReplies replies = execute_copies(context_, requests);
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < names.size(); ++i) {
    keep_failure(readings[i], [&] {
      CounterCopies copies(*this, names[i]);
      copies.begin_with(replies[i]);
      if (auto reading = copies.get_at_once())
        readings[i] = std::move(*reading);
      else
        open.push_back(i);
    });
  }
  side_by_side(open.size(), [&](std::size_t i, Counter& counter) {
    keep_failure(readings[open[i]], [&] {
      CounterCopies copies(counter, names[open[i]]);
      copies.begin_with(replies[open[i]]);
      readings[open[i]] = copies.get();
    });
  });
  return readings;
}

SetResult Counter::set(const std::string& name, std::uint64_t value, std::optional<Duration> ttl,
                       bool if_absent) {
  check_counter_value(value, "the value");
  return CounterCopies(*this, name).set(value, ttl, if_absent);
}

std::optional<CounterValue> Counter::take(const std::string& name) {
  const auto added = [](bool exists, std::uint64_t now) {
    return exists && now != 0 ? std::optional(std::uint64_t{0} - now) : std::nullopt;
  };
  const Counter counter = with_one_copy();
  auto counted = CounterCopies(counter, name).count(added, {});
  if (!counted.exists) return std::nullopt;
  counted.value.value = counted.before;
  return std::move(counted.value);
}

std::vector<CounterRemoval> Counter::remove(std::span<const std::string> names) {
  std::vector<CounterRemoval> removals(names.size());
  side_by_side(names.size(), [&](std::size_t i, Counter& counter) {
    keep_failure(removals[i], [&] {
      if (may_be_elsewhere()) {
        removals[i] = CounterCopies(counter, names[i]).remove();
        return;
      }
      Cluster& cluster = counter.context_.cluster;
      const Reply reply = expect(cluster, cluster.execute(Request::remove(key_of(names[i]))));
      removals[i] = {reply.outcome == Outcome::deleted, {}, reply.server};
    });
  });
  return removals;
}

}  // namespace mcds
