#include "common/structures/counter/counter.hpp"

#include <memory_resource>
#include <unordered_map>

#include "common/base/bytes.hpp"
#include "common/structures/counter/replicated.hpp"

namespace mcds {

namespace {

constexpr std::size_t bytes_of_a_name = 64;  // in the map that finds equal names
constexpr std::uint64_t end_of_safe_values = std::uint64_t{1} << 63;

InvalidInput too_large(std::string_view what) {
  return InvalidInput(std::string(what) +
                      " is 2^63 or more, which some servers misread; stay below 9223372036854775808");
}

bool is_safe(std::uint64_t a, std::uint64_t b) {
  return a < end_of_safe_values && b < end_of_safe_values - a;
}

// Returns true if the old value was foreign text.
bool is_text(const Reply& reply) {
  return reply.is(ReplyFailure::Kind::not_a_number) && !reply.value.empty() &&
         !reply.value.starts_with("C1 ");
}

bool is_miss(const Reply& reply) {
  return reply.outcome == Outcome::miss || reply.outcome == Outcome::not_found;
}

// Returns `reply` as the reading of a single copy if it is one, so that the copy need not be read.
std::span<const Reply> read_by(const Reply& reply) {
  const bool is_reading = is_miss(reply) || reply.outcome == Outcome::hit;
  return is_reading ? std::span(&reply, 1) : std::span<const Reply>();
}

// Adds up the increments of equal names.
IncrementResults group(std::span<const Increment> batch) {
  IncrementResults results;
  std::pmr::monotonic_buffer_resource memory(batch.size() * bytes_of_a_name);
  std::pmr::unordered_map<std::string_view, std::size_t> index_of(&memory);
  index_of.reserve(batch.size());
  results.of_names.reserve(batch.size());
  results.of_lines.reserve(batch.size());
  for (const Increment& increment : batch) {
    const auto [at, is_new] = index_of.try_emplace(increment.name, results.of_names.size());
    if (is_new) results.of_names.push_back({.name = increment.name});
    results.of_lines.push_back(at->second);
    IncrementResult& result = results.of_names[at->second];
    if (is_safe(result.delta, increment.delta))
      result.delta += increment.delta;
    else if (!result.answer.failure)
      result.answer.failure = too_large("the sum of the increments of '" + increment.name + "'");
  }
  return results;
}

}  // namespace

void check_counter_value(std::uint64_t value, std::string_view what, std::uint64_t added) {
  if (!is_safe(value, added)) throw too_large(what);
}

Counter::Counter(const Context& context, Names names)
    : context_(names == Names::whole_keys ? context.in_copies(1) : context), names_(names) {}

std::string Counter::key_of(const std::string& name) const {
  if (names_ == Names::whole_keys) return whole_key(context_.key_prefix, name);
  std::string key = copied_key(context_, "counter", name);
  if (name.find(":limit:") != std::string::npos && !structure_named("counter:" + name)->is_root)
    throw InvalidInput(
        "a counter's name must not end in ':limit:', a number, and a number or 'sliding', which is reserved "
        "for uses of limits; use another name");
  return key;
}

// A removed counter is recognized by the tombstones of all copies together.
CopyCountGuard Counter::guard(const Context& context, const std::string& name, const std::string& window) {
  const auto roots_exist = [context](std::span<const std::string> roots, std::size_t copies) {
    const Clock& clock = context.clock;
    CounterRecord all;
    for (const std::string& root : roots) {
      auto record = Counter(context.in_copies(copies)).record_in(root);
      if (!record) return true;
      // If the item expires with the record, its server knows that better than our clock.
      if (record->age(clock.wall()) || !record->replaced()) all.merge(*record);
    }
    return all.exists();
  };
  return {context, "counter", name, window, roots_exist};
}

std::optional<CounterRecord> Counter::record_in(std::string_view value) const {
  auto record = CounterRecord::parse(value);
  return record && record->is_single() == server_counts() ? std::move(record) : std::nullopt;
}

CounterAnswer Counter::incr(const std::string& name, std::uint64_t delta, IncrOptions options) {
  const Increment increment{name, delta};
  options.checked = true;
  CounterAnswer answer = begin_incr(std::span(&increment, 1), options)().of_names.front().answer;
  if (answer.failure) raise(*answer.failure);
  return answer;
}

std::function<IncrementResults()> Counter::begin_incr(std::span<const Increment> batch,
                                                      const IncrOptions& options) {
  IncrementResults results = group(batch);
  std::vector<Request> requests;
  std::vector<std::size_t> sent, open;  // names that take one trip, and more
  requests.reserve(results.of_names.size());
  sent.reserve(results.of_names.size());
  for (std::size_t i = 0; i < results.of_names.size(); ++i) {
    IncrementResult& result = results.of_names[i];
    if (result.answer.failure) continue;
    const auto asked = attempt([&] {
      auto request = first_request(result, options);
      (request ? sent : open).push_back(i);
      if (request) requests.push_back(std::move(*request));
    });
    result.answer.failure = asked.failure();
  }
  std::shared_ptr<Pending> pending;
  if (!requests.empty()) pending = context_.cluster.begin(std::move(requests));
  return [this, options, pending, results = std::move(results), sent = std::move(sent),
          open = std::move(open)]() mutable {
    std::vector<Reply> replies = pending ? pending->finish() : std::vector<Reply>();
    std::vector<Reply> known(open.size());  // replies, in the order of `open`
    for (std::size_t i = 0; i < sent.size(); ++i) {
      IncrementResult& result = results.of_names[sent[i]];
      capture_failure(result.answer, [&] {
        auto answer = counted(result.name, replies[i]);
        if (answer) return std::move(*answer);
        open.push_back(sent[i]);
        known.push_back(std::move(replies[i]));
        return CounterAnswer();
      });
    }
    fibers(open.size(), [&](std::size_t i, Counter& counter) {
      IncrementResult& result = results.of_names[open[i]];
      const auto added = [&](bool, std::uint64_t now) {
        check_counter_value(now, "the new value", result.delta);
        return std::optional(result.delta);
      };
      capture_failure(result.answer, [&] {
        counter.expect_not_counted(result.name, known[i]);
        return CounterCopies::of(counter, result.name, {}, read_by(known[i]))->count(added, options);
      });
    });
    return std::move(results);
  };
}

// Returns the request if the server can count in one trip, or nullopt if the copies must be read first. If
// the counter may exist with another copy count, the request counts only an existing one.
std::optional<Request> Counter::first_request(const IncrementResult& increment,
                                              const IncrOptions& options) const {
  std::string key = key_of(increment.name);
  check_counter_value(options.initial, "the value", increment.delta);
  if (!server_counts() || options.exact) return std::nullopt;
  if (has_copy_counts() && !options.checked) return Request::incr(std::move(key), increment.delta);
  const Exptime exptime =
      options.ttl ? Exptime::after(*options.ttl, context_.clock.wall()) : Exptime::never();
  Request request =
      Request::incr_or_create(std::move(key), increment.delta, options.initial + increment.delta, exptime);
  request.must_expire = options.ttl.has_value();
  request.creates = !has_copy_counts();
  request.checked = options.checked;
  return request;
}

// Returns the answer if the server counted, or nullopt if more trips are needed. Otherwise throws.
std::optional<CounterAnswer> Counter::counted(const std::string& name, const Reply& reply) const {
  if (reply.outcome == Outcome::stored)
    return CounterAnswer{
        .done = true, .value = reply.number, .created = reply.created, .server = reply.server};
  const bool may_be_exact =
      reply.unknown() || (reply.is(ReplyFailure::Kind::not_a_number) && !is_text(reply));
  if (is_miss(reply) || may_be_exact) return std::nullopt;
  fail(name, reply);
}

// Replaces the lost reply to a server's own incr or decr by a reading that shows that it was not applied: it
// cannot change an exact counter. Throws UnknownOutcome for any other reading.
void Counter::expect_not_counted(const std::string& name, Reply& reply) const {
  if (!reply.unknown()) return;
  const Reply there = context_.cluster.execute(Request::probe(key_of(name), reply.server));
  const auto record = there.outcome == Outcome::hit ? record_in(there.value) : std::nullopt;
  if (!record || record->base.plain) fail(name, reply);
  reply = there;
}

// Throws the error for a failed change.
void Counter::fail(const std::string& name, const Reply& reply) const {
  const std::string server = context_.cluster.address_of(reply.server);
  if (is_text(reply)) throw CorruptData(no_counter_message(name, reply.value), server);
  if (reply.unknown()) throw may_be_counted(name, server);
  expect(context_.cluster, reply);
  throw NotApplied(ErrorCode::refused, "the server did not store '" + name + "'; it may be out of memory",
                   server);
}

// Restores text that begins with a number and that a server decremented, unless it has changed. Throws
// CorruptData.
void Counter::put_back(const std::string& name, const Reply& text, std::uint64_t counted) const {
  const std::string key = key_of(name);
  const Reply now = expect_read(context_.cluster, context_.cluster.execute(Request::probe(key, text.server)));
  if (now.outcome == Outcome::hit && parse_padded_u64(now.value) == counted) {
    const auto ttl = now.age.ttl.value_or(std::chrono::seconds(-1));
    const Exptime exptime = ttl.count() < 0 ? Exptime::never() : Exptime::after(ttl, context_.clock.wall());
    Request request = Request::compare_and_set(key, text.value, exptime, now.cas);
    request.flags = text.flags;
    expect(context_.cluster, context_.cluster.execute(std::move(request).on(text.server)));
  }
  throw CorruptData(no_counter_message(name, text.value), context_.cluster.address_of(text.server));
}

CounterAnswer Counter::decr(const std::string& name, std::uint64_t delta) {
  check_counter_value(delta, "the delta");
  Reply reply;
  if (server_counts()) {
    const std::string key = key_of(name);
    const std::array batch{Request::get(key), Request::decr(key, delta)};
    std::vector<Reply> replies = context_.cluster.execute(batch);
    reply = std::move(replies[1]);
    if (reply.outcome == Outcome::stored && replies[0].outcome == Outcome::hit &&
        !parse_padded_u64(replies[0].value))
      put_back(name, replies[0], reply.number);
    if (auto answer = counted(name, reply)) return std::move(*answer);
    expect_not_counted(name, reply);
  }
  const auto added = [=](bool exists, std::uint64_t now) {
    return exists ? std::optional(std::uint64_t{0} - std::min(now, delta)) : std::nullopt;
  };
  return CounterCopies::of(*this, name, {}, read_by(reply))->count(added, {});
}

std::vector<CounterAnswer> Counter::get(std::span<const std::string> names) {
  std::vector<CounterAnswer> answers(names.size());
  std::vector<Request> requests;
  for (const std::string& name : names) {
    // The item of a replicated record may outlive the record's expiry. Its remaining ttl shows the time by
    // the clock that set the expiry (read_clock).
    requests.push_back(read_of_copy(context_, key_of(name), true));
  }
  const CopyReplies replies = execute_copies(context_, requests);
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < names.size(); ++i) {
    capture_failure(answers[i], [&] {
      auto answer = CounterCopies::of(*this, names[i], {}, replies[i])->get_at_once();
      if (!answer) open.push_back(i);
      return answer ? std::move(*answer) : CounterAnswer();
    });
  }
  fibers(open.size(), [&](std::size_t i, Counter& counter) {
    capture_failure(answers[open[i]],
                    [&] { return CounterCopies::of(counter, names[open[i]], {}, replies[open[i]])->get(); });
  });
  return answers;
}

CounterAnswer Counter::set(const std::string& name, std::uint64_t value, std::optional<Duration> ttl,
                           bool if_absent) {
  check_counter_value(value, "the value");
  return CounterCopies::of(*this, name)->set(value, ttl, if_absent);
}

CounterAnswer Counter::take(const std::string& name) {
  std::uint64_t taken = 0;
  const auto added = [&](bool exists, std::uint64_t now) {
    taken = now;
    return exists && now != 0 ? std::optional(std::uint64_t{0} - now) : std::nullopt;
  };
  const Counter counter(context_.in_copies(1), names_);
  try {
    CounterAnswer answer = CounterCopies::of(counter, name)->count(added, {});
    answer.value = taken;
    return answer;
  } catch (const UnknownOutcome& lost) {  // `taken` is the amount of the write with the unknown outcome
    throw UnknownOutcome(
        "the counter may have been reset; if so, " + std::to_string(taken) + " was taken: " + lost.what(),
        lost.server());
  }
}

std::vector<CounterAnswer> Counter::remove(std::span<const std::string> names) {
  std::vector<CounterAnswer> answers(names.size());
  fibers(names.size(), [&](std::size_t i, Counter& counter) {
    capture_failure(answers[i], [&] {
      if (has_copy_counts()) return CounterCopies::of(counter, names[i])->remove();
      Cluster& cluster = counter.context_.cluster;
      const Reply reply = expect(cluster, cluster.execute(Request::remove(key_of(names[i]))));
      return CounterAnswer{.done = reply.outcome == Outcome::deleted, .server = reply.server};
    });
  });
  return answers;
}

}  // namespace mcds
