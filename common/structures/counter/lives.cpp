// Counter's get, set and take, and what its copies are made to agree on: the lives that end and begin.
#include "common/structures/counter/lives.hpp"

#include <algorithm>
#include <utility>

#include "common/structures/counter/copies.hpp"
#include "common/structures/counter/counter.hpp"
#include "common/structures/counter/failures.hpp"
#include "common/structures/counter/update.hpp"

namespace mcds {

namespace {

constexpr std::size_t shown_of_no_counter = 1024;
constexpr int most_rounds = 16;

}  // namespace

std::uint32_t life_of(const VersionedItem& item) {
  std::uint32_t life = any_life;
  for (const VersionedCopy& copy : item.copies) {
    if (copy.found && !copy.failure) life = std::max(life, copy.number);
  }
  return life;
}

std::uint32_t next_life(const VersionedItem& item) {
  const auto number = item.next_number();
  if (!number) throw no_version_left(item.key);
  // Those that do not answer must not be newer.
  if (item.any_failed() && life_of(item) == any_life) return first_in_doubt;
  return std::max(*number, first_life + 1);
}

bool is_of_several(const Reply& reply) {
  return is_hit(reply) && (reply.flags != 0 || reply.value.starts_with("C2 "));
}

bool tells_of_removal(std::string_view value, std::uint32_t flags) {
  const auto record = CounterRecord::parse(value, most_copies);
  return record ? !record->exists() : is_removal(value, flags);
}

bool is_plain_of(const VersionedCopy& copy, std::uint32_t life) {
  return std::max(copy.number, first_life) == std::max(life, first_life) && plain_number(copy.value);
}

std::vector<CounterReading> Counter::get(std::span<const std::string> names) {
  std::vector<Request> requests;
  // To make an exact counter's lost copy whole takes cas uniques.
  for (const std::string& name : names) {
    requests.push_back(context_.copies > 1 ? Request::gets(key_of(name)) : Request::get(key_of(name)));
  }
  auto replies = execute_copies(context_, requests);
  std::vector<CounterReading> readings(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (Reply& reply : replies[i]) {
      // No counter is as large; the beginning says what it is.
      if (reply.value.size() > max_value_size) reply.value = reply.value.substr(0, shown_of_no_counter);
    }
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
  if (context_.copies == 1 && tells_of_removal(replies.front().value, replies.front().flags)) return reading;
  const Versions versions(context_);
  VersionedItem item = versions.item_of(key, replies);
  const auto is_plain = [](const Reply& reply) { return !is_hit(reply) || plain_number(reply.value); };
  if (!std::all_of(replies.begin(), replies.end(), is_plain)) {
    if (auto healed = CounterCopies(context_, name, key).heal(item)) {
      if (healed->exists)
        reading.value = CounterValue{healed->value, false, true, healed->server, std::move(healed->copies)};
      return reading;
    }
  }
  const std::uint32_t life = life_of(item);
  for (const VersionedCopy& copy : item.copies) {
    if (!copy.live() || !is_plain_of(copy, life)) continue;
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
  std::erase_if(item.copies,
                [&](const VersionedCopy& copy) { return !copy.found || is_plain_of(copy, life); });
  if (item.copies.empty()) return;
  VersionedWrite write{.item = &item,
                       .number = life,
                       .removed = removed,
                       .value = "0",
                       .once = true,
                       .exptime = Exptime::never()};
  versions.write(std::span(&write, 1));
}

// Copies of a plain counter go on in a newer life, each with what it has counted; without `life`, in the next one. How many
// are in it, or gone.
std::size_t Counter::begin_life(const std::string& key, std::span<const std::size_t> servers,
                                std::optional<std::uint32_t> life) const {
  Context several = context_;
  several.copies = std::max<std::size_t>(several.copies, 2);
  const Versions versions(several);
  std::vector<Request> probes;
  for (const std::size_t server : servers) probes.push_back(Request::probe(key, server));
  const bool need_not = life.has_value();
  std::size_t done = 0;
  for (int round = 0; done < probes.size() && round < most_rounds; ++round) {
    back_off(context_, round);
    const auto replies = context_.cluster.execute(probes);
    const VersionedItem seen = versions.item_of(key, replies);
    if (!life) life = next_life(seen);
    std::vector<VersionedItem> copies;
    std::vector<VersionedWrite> writes;
    for (const VersionedCopy& copy : seen.copies) copies.push_back({key, {copy}});
    for (std::size_t i = 0; i < copies.size(); ++i) {
      if (!seen.copies[i].found || seen.copies[i].number >= *life) continue;
      // Better none than one without its expiry.
      if (need_not && (!replies[i].age.ttl || seen.copies[i].cas.value == 0)) continue;
      const auto ttl = replies[i].age.ttl.value_or(std::chrono::seconds(-1));
      writes.push_back(
          {.item = &copies[i],
           .number = *life,
           .value = seen.copies[i].value,
           .once = true,
           .exptime = expiry_in(context_, ttl.count() < 0 ? std::nullopt : std::optional<Duration>(ttl))});
    }
    versions.write(writes);
    done = static_cast<std::size_t>(std::count_if(
        copies.begin(), copies.end(), [](const VersionedItem& one) { return !one.copies.front().failure; }));
  }
  return done;
}

// A copy that has perhaps not been decreased has the larger number, and would undo it: the others leave it in its life, so
// that it does not count. Throws UnknownOutcome if too few do.
void Counter::leave_behind(const std::string& key, std::span<const Reply> decreased) const {
  const auto silent =
      std::find_if(decreased.begin(), decreased.end(), [](const Reply& reply) { return reply.failed(); });
  if (silent == decreased.end()) return;
  std::vector<std::size_t> servers;
  for (const Reply& reply : decreased) {
    if (is_stored(reply)) servers.push_back(reply.server);
  }
  if (enough_written(begin_life(key, servers, std::nullopt), decreased.size())) return;
  throw UnknownOutcome("the counter was decreased in too few of its copies, and another may undo it",
                       context_.cluster.address_of(silent->server));
}

// Copies that differ may be of different lives: then the newest one's is the value; nullopt: it was removed.
std::optional<CounterValue> Counter::checked(const std::string& name, const std::string& key,
                                             CounterValue value, std::span<const Reply> replies) {
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
    if (all_seen && !reading.value) return std::nullopt;
    const std::uint32_t life = life_of(Versions(context_).item_of(key, seen));
    if (reading.value && (all_seen || life > first_life)) value.value = reading.value->value;
  } catch (const NotApplied&) {
    // It is counted; that others do not answer now changes nothing.
  }
  return value;
}

SetResult Counter::set(const std::string& name, std::uint64_t value, std::optional<Duration> ttl,
                       bool if_absent) {
  check_counter_value(value, "the value");
  if (context_.copies > 1) return set_copies(name, value, ttl, if_absent);
  const auto next = [=](std::optional<std::uint64_t> now) -> std::optional<std::uint64_t> {
    if (if_absent && now) return std::nullopt;
    return value;
  };
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
  // Where nothing is found, what another copy has does not matter: a set ends its life.
  const bool decides = if_absent || std::any_of(replies.begin(), replies.end(), is_hit);
  const CounterReading reading =
      decides ? merge(name, key, replies) : CounterReading{{}, {}, replies.front().server};
  if (if_absent && reading.value) return {false, reading.value->value, reading.server, reading.value->copies};
  const Versions versions(context_);
  VersionedItem item = versions.item_of(key, replies);
  if (reading.value && reading.value->exact) {
    const auto set = CounterCopies(context_, name, key).set(item, value, ttl);
    if (const auto failure = item.failure_of_write()) raise(*failure);
    return {true, value, set.server, set.copies};
  }
  VersionedWrite write{.item = &item,
                       .number = next_life(item),
                       .value = std::to_string(value),
                       .exptime = expiry_in(context_, ttl)};
  versions.write(std::span(&write, 1));
  if (const auto failure = item.failure_of_write()) raise(*failure);
  SetResult result{true, value, reading.server, item.outcomes()};
  for (CopyOutcome& copy : result.copies) {
    if (!copy.failure) copy.number = value;
  }
  return result;
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
  expect_read(context_.cluster, replies.front());
  std::size_t copies = 1;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (is_hit(replies[i]) && replies[i].flags != 0) copies = i + 2;
  }
  if (copies == 1) return;
  throw Failure(ErrorCode::bad_data, "the counter " + in_quotes(name) + " is kept in " +
                                         std::to_string(copies) + " copies; give --copies " +
                                         std::to_string(copies));
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

// To see whether there is one more copy than the caller knows of; nullopt: no place for it.
std::optional<Request> Counter::look_at(const std::string& key, std::size_t copy) const {
  const Placement& placement = context_.cluster.placement();
  if (names_ == Names::whole_keys || copy >= std::min(placement.pool().size(), most_copies))
    return std::nullopt;
  return Request::get(key).on(placement.servers_of(key, copy + 1)[copy]);
}

// Also in the copies that the caller does not know of: their larger number would undo it. A single one tells itself whether
// there may be others, in the same trip.
std::vector<Reply> Counter::decr_all(const std::string& key, std::uint64_t delta) const {
  const bool single = context_.copies == 1;
  std::vector<Request> batch;
  auto look = look_at(key, context_.copies);
  if (look) batch.push_back(single ? *look_at(key, 0) : *look);
  for (const std::size_t server : copy_servers(context_, key))
    batch.push_back(Request::decr(key, delta).on(server));
  auto decreased = context_.cluster.execute(batch);
  bool more = look && is_of_several(decreased.front());
  if (look) decreased.erase(decreased.begin());
  if (more && single) {
    const Reply next = context_.cluster.execute(*look);
    if (next.failed() && is_stored(decreased.front()))
      throw UnknownOutcome(
          "decreased on one server; another that may have a copy does not answer, and would undo it",
          context_.cluster.address_of(next.server));
    more = is_of_several(next);
  }
  for (std::size_t copies = context_.copies; more;) {
    batch = {Request::decr(key, delta).on(*look->server)};
    look = look_at(key, ++copies);
    if (look) batch.push_back(*look);
    const auto replies = context_.cluster.execute(batch);
    decreased.push_back(replies.front());
    more = look && is_of_several(replies.back());
  }
  return decreased;
}

}  // namespace mcds
