#include "common/structures/visitors/visitors.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "common/base/bytes.hpp"
#include "common/base/units.hpp"
#include "common/primitives/active_variants.hpp"
#include "common/primitives/key_names.hpp"

namespace mcds {

namespace {

constexpr int claim_attempts = 3;
constexpr std::uint64_t max_period_s = std::uint64_t{1} << 32;

std::int64_t whole_seconds(Duration period) {
  const std::int64_t seconds = ceil_seconds(period);
  if (seconds < 1 || period != std::chrono::seconds(seconds)) {
    throw InvalidInput("the period must be a whole number of seconds, at least 1s");
  }
  return seconds;
}

// Returns the count, or 0 if the key is missing.
std::uint64_t count_in(const Cluster& cluster, const Reply& reply, const std::string& key) {
  if (expect_read(cluster, reply).outcome != Outcome::hit) return 0;
  const auto number = parse_u64(reply.value);
  if (!number)
    throw CorruptData(
        key + " does not hold a number, but another program's data; remove the key or use another name",
        cluster.address_of(reply.server));
  return *number;
}

// Returns a key that is no period's, because those end in a number, or in an id after one.
std::string conf_key(const std::string& key) {
  return key + ":conf";
}

// Returns the periods in use according to a conf key's value.
std::vector<Duration> periods_in(std::string_view conf, WallTime now) {
  std::vector<Duration> periods;
  for (const ActiveVariant& one : parse_active_variants(conf, now)) {
    const auto seconds = parse_u64(one.what);
    if (seconds && *seconds != 0 && *seconds < max_period_s)
      periods.push_back(std::chrono::seconds(*seconds));
  }
  return periods;
}

}  // namespace

Visitors::Visitors(const Context& context, std::string_view name, Duration period)
    : context_(context.in_copies(1)), period_s_(whole_seconds(period)) {
  const std::string key = structure_key(context_, "visitors", name);
  conf_ = conf_key(key);
  base_ = key + ':' + std::to_string(period_s_);
}

Exptime Visitors::exptime_of(std::int64_t period) const {
  const auto guard = std::chrono::seconds(2) + std::chrono::milliseconds(period_s_ * 500);
  return Exptime::at(start_of(period + 2) + guard, context_.clock.wall());
}

Visitors::Hit Visitors::count(std::int64_t period, std::uint64_t hits) {
  Request request = Request::incr_or_create(key_of(period), hits, hits, exptime_of(period));
  request.creates = std::chrono::seconds(period_s_) == usual_period;
  Reply reply = context_.cluster.execute(request);
  if (reply.outcome == Outcome::not_found) {
    note_period(period);
    request.creates = true;
    reply = context_.cluster.execute(request);
  }
  expect(context_.cluster, reply);
  return {.counted = true,
          .current = reply.number,
          .period_started_at = start_of(period),
          .server = reply.server};
}

// Records T before the first hit of a period, because a reader who does not give T would not find the count.
// If that fails, only a T that was recorded or counted before is continued.
void Visitors::note_period(std::int64_t period) const {
  if (record_active_variant(context_, conf_, {std::to_string(period_s_), start_of(period + 2)})) return;
  Cluster& cluster = context_.cluster;
  const std::array looks{Request::get(conf_), Request::get(key_of(period - 1))};
  const auto seen = cluster.execute(looks);
  const auto known = periods_in(seen[0].value, context_.clock.wall());
  const bool is_known = std::ranges::find(known, this->period()) != known.end();
  if (is_known || seen[1].outcome == Outcome::hit) return;
  throw NotApplied(seen[0].failed() ? ErrorCode::unavailable : ErrorCode::refused,
                   "the length of the period cannot be stored in " + conf_ +
                       ", without which a new count is not found; try again",
                   cluster.address_of(cluster.placement().server_of(conf_)));
}

Duration Visitors::period_in_use(const Context& context, std::string_view name) {
  const Visitors usual(context, name, usual_period);
  const WallTime now = context.clock.wall();
  const std::int64_t period = usual.period_of(now);
  const std::vector<Request> batch{Request::get(usual.conf_), Request::get(usual.key_of(period - 1)),
                                   Request::get(usual.key_of(period))};
  const auto replies = context.cluster.execute(batch);
  const Reply& conf = expect_read(context.cluster, replies[0]);
  require_active_variant(context, usual.conf_, conf.value, conf.server);
  std::vector<Duration> periods;
  if (replies[1].outcome == Outcome::hit || replies[2].outcome == Outcome::hit)
    periods.push_back(usual_period);
  for (const Duration reported : periods_in(conf.value, now)) {
    if (std::ranges::find(periods, reported) == periods.end()) periods.push_back(reported);
  }
  if (periods.size() < 2) return periods.empty() ? usual_period : periods.front();
  throw InvalidInput("--period: this name is counted with the periods " +
                     joined(periods, ", ", format_duration) + "; give one of them");
}

bool Visitors::drop(const Context& context, std::string_view name) {
  const Visitors usual(context, name, usual_period);
  const WallTime now = context.clock.wall();
  std::vector<Request> reads;
  const auto add = [&](const Visitors& one) {
    const std::int64_t period = one.period_of(now);
    for (std::int64_t near = period - 2; near <= period + 2; ++near)
      reads.push_back(Request::get(one.key_of(near)));
  };
  add(usual);
  const Reply conf = context.cluster.execute(Request::get(usual.conf_));
  require_active_variant(context, usual.conf_, expect_read(context.cluster, conf).value, conf.server);
  for (const Duration reported : periods_in(conf.value, now)) add(Visitors(context, name, reported));
  const auto there = context.cluster.execute(reads);
  std::vector<Request> removals{Request::remove(usual.conf_)};
  for (std::size_t i = 0; i < reads.size(); ++i) {
    count_in(context.cluster, there[i], reads[i].key);
    removals.push_back(Request::remove(reads[i].key));
  }
  bool found = false;
  for (const Reply& reply : context.cluster.execute(removals))
    found = expect(context.cluster, reply).outcome == Outcome::deleted || found;
  return found;
}

void Visitors::use_period_at(WallTime at) {
  fixed_ = period_of(at);
  static_cast<void>(period_to_hit());
}

std::int64_t Visitors::period_to_hit() const {
  const std::int64_t running = period_of(context_.clock.wall());
  if (fixed_ && *fixed_ != running && *fixed_ != running - 1) {
    throw InvalidInput("--at: only the running period and the last one are kept, from " +
                       format_time(start_of(running - 1)) + " to " + format_time(start_of(running + 1)));
  }
  return fixed_.value_or(running);
}

Visitors::Hit Visitors::hit() {
  return count(period_to_hit(), 1);
}

Visitors::Hit Visitors::hit(std::string_view id) {
  const std::string one(id);
  IdHit hit = this->hit(std::span(&one, 1)).front();
  if (hit.failure) raise(*hit.failure);
  return hit;
}

// One visitor's attempt to be counted. Its add carries its own digits, so that reading settles a lost reply.
struct Visitors::Claim {
  std::size_t position;  // of its id in the batch
  Request add;
  ClaimState state = ClaimState::open;
  bool looked_up = false;  // sent before: NOT_STORED may then be our own doing, and a failure is not the end
  std::optional<Failure> failure = {};
};

namespace {

// Gives repeated ids the failure of the first one.
std::vector<Visitors::IdHit> with_repeats(std::span<const std::string> ids,
                                          std::vector<Visitors::IdHit> hits) {
  std::unordered_map<std::string_view, std::size_t> first;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto [at, is_first] = first.emplace(ids[i], i);
    if (!is_first) hits[i].failure = hits[at->second].failure;
  }
  return hits;
}

}  // namespace

std::vector<Visitors::IdHit> Visitors::hit(std::span<const std::string> ids) {
  const auto kept = attempt([&] { return period_to_hit(); });
  if (kept.failure()) {
    IdHit failed;
    failed.counted = false;
    failed.failure = Failure(ErrorCode::bad_data, kept.failure()->what());
    return std::vector<IdHit>(ids.size(), failed);
  }
  const std::int64_t period = kept.value();
  IdHit not_counted;
  not_counted.counted = false;
  not_counted.period_started_at = start_of(period);
  not_counted.server = context_.cluster.placement().server_of(key_of(period));
  std::vector<IdHit> hits(ids.size(), not_counted);
  std::vector<Claim> claims = claim(period, ids);
  std::vector<Claim*> fresh;
  for (Claim& one : claims) {
    hits[one.position].failure = one.failure;
    if (one.state == ClaimState::ours) fresh.push_back(&one);
  }
  if (fresh.empty()) return with_repeats(ids, std::move(hits));
  const auto done = attempt([&] { return count(period, fresh.size()); });
  if (done.failure()) take_back(fresh, *done.failure());
  IdHit counted = not_counted;
  if (!done.failure()) static_cast<Hit&>(counted) = done.value();
  for (const Claim* one : fresh) {
    hits[one->position] = counted;
    hits[one->position].failure = one->failure;
  }
  return with_repeats(ids, std::move(hits));
}

// Removes the marks of visitors that were not counted, so that their next attempt counts. The outcome is
// unknown if the hit may have been counted, or may still be marked.
void Visitors::take_back(std::span<Claim* const> claims, const Failure& why) {
  for (Claim* one : claims) one->failure = why;
  if (why.code() == ErrorCode::unknown_outcome) return;
  std::vector<Request> reads, removals;
  std::vector<Claim*> marked;
  for (const Claim* one : claims) reads.push_back(Request::gets(one->add.key));
  const auto doubt = [&](Claim& one, const Reply& reply) {
    one.failure = UnknownOutcome(
        "the visitor was recorded as seen but may not have been counted: " + std::string(why.what()),
        context_.cluster.address_of(reply.server));
  };
  const auto there = context_.cluster.execute(reads);
  for (std::size_t i = 0; i < claims.size(); ++i) {
    // An add that was sent before the one that was stored may yet be executed.
    if (there[i].failed() || claims[i]->looked_up) doubt(*claims[i], there[i]);
    if (there[i].outcome != Outcome::hit || there[i].value != claims[i]->add.value) continue;
    removals.push_back(Request::remove_if(reads[i].key, there[i].cas));
    marked.push_back(claims[i]);
  }
  const auto removed = context_.cluster.execute(removals);
  for (std::size_t i = 0; i < removed.size(); ++i) {
    // EXISTS may mean that the item only moved in its server's memory.
    const bool gone = removed[i].outcome == Outcome::deleted || removed[i].outcome == Outcome::not_found;
    if (!gone) doubt(*marked[i], removed[i]);
  }
}

std::vector<Visitors::Claim> Visitors::claim(std::int64_t period, std::span<const std::string> ids) {
  std::vector<Claim> claims;
  std::unordered_set<std::string_view> seen;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!seen.insert(ids[i]).second) continue;
    if (ids[i].empty()) {
      const Failure empty(ErrorCode::bad_data, "the visitor id is empty; omit the id to count every hit");
      claims.push_back({i, {}, ClaimState::failed, false, empty});
      continue;
    }
    claims.push_back({i, Request::add(element_key(key_of(period), ids[i]), 'V' + context_.random.token(),
                                      exptime_of(period))});
  }
  // Sends a request for each open claim, and takes the replies.
  const auto ask = [&](const auto& request_of, const auto& take) {
    std::vector<Request> batch;
    std::vector<Claim*> sent;
    for (Claim& one : claims) {
      if (one.state != ClaimState::open) continue;
      batch.push_back(request_of(one));
      sent.push_back(&one);
    }
    if (batch.empty()) return;
    const auto replies = context_.cluster.execute(batch);
    for (std::size_t i = 0; i < sent.size(); ++i) take(*sent[i], replies[i]);
  };
  const auto look_up = [](Claim& one) {
    one.looked_up = true;
    return Request::get(one.add.key);
  };
  const auto take_found = [](Claim& one, const Reply& reply) {
    if (reply.outcome == Outcome::hit)
      one.state = reply.value == one.add.value ? ClaimState::ours : ClaimState::taken;
  };
  for (int attempt = 0; attempt < claim_attempts; ++attempt) {
    ask([](const Claim& one) { return one.add; },
        [&](Claim& one, const Reply& reply) { take_added(one, reply); });
    ask(look_up, take_found);
  }
  for (Claim& one : claims) {
    if (one.state != ClaimState::open) continue;
    one.state = ClaimState::failed;
    one.failure = UnknownOutcome(
        "no reply while counting a visitor, who may have been recorded as seen without being counted",
        context_.cluster.address_of(context_.cluster.server_of(one.add)));
  }
  return claims;
}

// Settles a claim by the reply to its add, unless the outcome must be looked up.
void Visitors::take_added(Claim& one, const Reply& reply) const {
  const bool refused = reply.outcome == Outcome::not_stored;
  if (reply.unknown() || (one.looked_up && reply.outcome != Outcome::stored)) return;
  if (!refused) one.failure = attempt([&] { expect(context_.cluster, reply); }).failure();
  if (refused)
    one.state = ClaimState::taken;
  else
    one.state = one.failure ? ClaimState::failed : ClaimState::ours;
}

Visitors::Value Visitors::value() {
  const WallTime now = context_.clock.wall();
  const std::int64_t period = period_of(now);
  const std::int64_t asked = fixed_.value_or(period - 1);
  const std::vector<Request> batch{Request::get(key_of(asked)), Request::get(key_of(period))};
  const auto replies = context_.cluster.execute(batch);
  Value value;
  value.visitors = count_in(context_.cluster, replies[0], batch[0].key);
  value.current = count_in(context_.cluster, replies[1], batch[1].key);
  value.period_started_at = start_of(asked);
  const std::chrono::duration<double> elapsed = now - start_of(period);
  value.elapsed = std::clamp(elapsed.count() / static_cast<double>(period_s_), 0.0, 1.0);
  value.server = replies[0].server;
  return value;
}

double Visitors::Value::estimate() const {
  return static_cast<double>(visitors) * (1 - elapsed) + static_cast<double>(current);
}

double Visitors::Value::standard_error() const {
  return std::sqrt(static_cast<double>(visitors) * elapsed * (1 - elapsed));
}

std::uint64_t Visitors::jittered(double visitors, double fraction) {
  // The sum of twelve uniform numbers is close enough to normal. Exact methods need libm, and loading that
  // library would cost every command a tenth of its time.
  double normal = -6;
  for (int i = 0; i < 12; ++i) normal += context_.random.unit();
  return static_cast<std::uint64_t>(std::clamp(visitors * (1 + fraction * normal) + 0.5, 0.0, 1.8e19));
}

std::vector<std::string> Visitors::keys() const {
  const std::int64_t period = period_of(context_.clock.wall());
  return {key_of(period - 1), key_of(period)};
}

}  // namespace mcds
