#include "common/structures/visitors/visitors.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "common/base/bytes.hpp"
#include "common/base/result.hpp"
#include "common/base/units.hpp"
#include "common/primitives/in_use.hpp"
#include "common/primitives/key_names.hpp"
#include "common/primitives/several/replicas.hpp"

namespace mcds {

namespace {

constexpr int claim_attempts = 3;
constexpr std::uint64_t longest_period_s = std::uint64_t{1} << 32;

std::int64_t whole_seconds(Duration period) {
  const std::int64_t seconds = ceil_seconds(period);
  if (seconds < 1 || period != std::chrono::seconds(seconds)) {
    throw InvalidInput("the period must be a whole number of seconds, at least 1s");
  }
  return seconds;
}

// The largest copy's count; 0 when those that answer have none.
std::uint64_t count_in(const Cluster& cluster, std::span<const Reply> replies, const std::string& key) {
  std::optional<std::uint64_t> largest;
  for (const Reply& reply : replies) {
    if (reply.outcome != Outcome::hit) continue;
    const auto number = parse_u64(reply.value);
    if (!number)
      throw CorruptData(
          key +
              " does not hold a number: another program uses it, or it was overwritten; remove it "
              "or use another name",
          cluster.address_of(reply.server));
    largest = std::max(largest.value_or(0), *number);
  }
  const auto answers = [](const Reply& reply) { return !reply.failed(); };
  if (std::ranges::none_of(replies, answers)) expect(cluster, telling(replies));
  return largest.value_or(0);
}

// No period's key: those end in a number, or an id behind one.
std::string conf_key(const std::string& key) {
  return key + ":conf";
}

bool is_stored(const Reply& reply) {
  return reply.outcome == Outcome::stored;
}

// In use, as a conf key's value says.
std::vector<Duration> periods_in(std::string_view conf, WallTime now) {
  std::vector<Duration> periods;
  for (const InUse& one : parse_in_use(conf, now)) {
    const auto seconds = parse_u64(one.what);
    if (seconds && *seconds != 0 && *seconds < longest_period_s)
      periods.push_back(std::chrono::seconds(*seconds));
  }
  return periods;
}

// A mark of clients with one copy has no time: whoever made it has counted, without a look at other copies.
bool is_older_mark(const std::string& one, const std::string& other) {
  return one.size() != other.size() ? one.size() < other.size() : one < other;
}

}  // namespace

Visitors::Visitors(Context context, std::string_view name, Duration period)
    : context_(std::move(context)), period_s_(whole_seconds(period)) {
  const std::string key = structure_key(context_, "visitors", name);
  conf_ = conf_key(key);
  base_ = key + ':' + std::to_string(period_s_);
}

Exptime Visitors::exptime_of(std::int64_t period) const {
  const auto guard = std::chrono::seconds(2) + std::chrono::milliseconds(period_s_ * 500);
  return Exptime::at(start_of(period + 2) + guard, context_.clock.wall());
}

Visitors::Hit Visitors::count(std::int64_t period, std::uint64_t hits) {
  const auto request = Request::incr_or_create(key_of(period), hits, hits, exptime_of(period));
  const auto replies = execute_copies(context_, request);
  if (std::ranges::none_of(replies, is_stored)) expect(context_.cluster, telling(replies));
  Hit hit{
      .counted = true, .current = 0, .period_started_at = start_of(period), .server = replies.front().server};
  for (const Reply& reply : replies) {
    if (is_stored(reply)) hit.current = std::max(hit.current, reply.number);
  }
  hit.copies = copy_outcomes(context_, replies);
  if (std::ranges::any_of(replies, [](const Reply& reply) { return reply.created; })) note_period(period);
  return hit;
}

void Visitors::note_period(std::int64_t period) const {
  if (std::chrono::seconds(period_s_) == usual_period) return;
  const Replicas copies(context_);
  static_cast<void>(copies.each([&](std::size_t copy) {
    note_in_use(copies.at(copy), conf_, {std::to_string(period_s_), start_of(period + 2)});
  }));
}

Duration Visitors::period_in_use(const Context& context, std::string_view name) {
  const Visitors usual(context, name, usual_period);
  const WallTime now = context.clock.wall();
  const std::int64_t period = usual.period_of(now);
  const std::vector<Request> batch{Request::get(usual.conf_), Request::get(usual.key_of(period - 1)),
                                   Request::get(usual.key_of(period))};
  const auto replies = execute_copies(context, batch);
  std::vector<Duration> periods;
  const auto is_hit = [](const Reply& reply) { return reply.outcome == Outcome::hit; };
  if (std::ranges::any_of(replies[1], is_hit) || std::ranges::any_of(replies[2], is_hit))
    periods.push_back(usual_period);
  // A copy may have missed what another was told, or have lost it.
  for (const Reply& conf : replies[0]) {
    for (const Duration told : periods_in(conf.value, now)) {
      if (std::ranges::find(periods, told) == periods.end()) periods.push_back(told);
    }
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
  for (const Reply& conf : execute_copies(context, Request::get(usual.conf_))) {
    expect_in_use(context, usual.conf_, expect_read(context.cluster, conf).value, conf.server);
    for (const Duration told : periods_in(conf.value, now)) add(Visitors(context, name, told));
  }
  const auto there = execute_copies(context, reads);
  std::vector<Request> removals{Request::remove(usual.conf_)};
  for (std::size_t i = 0; i < reads.size(); ++i) {
    count_in(context.cluster, there[i], reads[i].key);
    removals.push_back(Request::remove(reads[i].key));
  }
  bool found = false;
  for (const Reply& reply : execute_copies(context, removals).take_all())
    found = expect(context.cluster, reply).outcome == Outcome::deleted || found;
  return found;
}

void Visitors::use_period_at(WallTime at) {
  const std::int64_t running = period_of(context_.clock.wall());
  const std::int64_t period = period_of(at);
  if (period != running && period != running - 1) {
    throw InvalidInput("--at: only the running period and the last one are kept, from " +
                       format_time(start_of(running - 1)) + " to " + format_time(start_of(running + 1)));
  }
  fixed_ = period;
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

// One visitor's attempt to be counted: its add carries its own digits, so that a lost reply can be settled by
// reading.
struct Visitors::Claim {
  std::size_t position;  // of its id in the batch
  Request add;
  using State = ClaimState;
  State state = State::open;
  bool looked_up = false;  // sent before: NOT_STORED may then be our own doing
  std::optional<Failure> failure = {};
  std::vector<bool> ours_perhaps{};  // which copies may have our mark
  std::vector<bool> others{};        // which have another's, that one may have to yield to
};

std::vector<Visitors::IdHit> Visitors::hit(std::span<const std::string> ids) {
  const std::int64_t period = period_to_hit();
  IdHit not_counted;
  not_counted.counted = false;
  not_counted.period_started_at = start_of(period);
  not_counted.server = context_.cluster.placement().server_of(key_of(period));
  std::vector<IdHit> hits(ids.size(), not_counted);
  std::vector<Claim> claims = claim(period, ids);
  std::vector<Claim*> fresh;
  for (Claim& one : claims) {
    hits[one.position].failure = one.failure;
    if (one.state == Claim::State::ours) fresh.push_back(&one);
  }
  if (fresh.empty()) return hits;
  const auto done = attempt([&] { return count(period, fresh.size()); });
  if (done.failure()) take_back(fresh, *done.failure());
  IdHit counted = not_counted;
  if (!done.failure()) static_cast<Hit&>(counted) = done.value();
  for (const Claim* one : fresh) {
    hits[one->position] = counted;
    hits[one->position].failure = one->failure;
  }
  return hits;
}

// Nothing was counted: without its mark, a visitor counts at the next attempt. What may have been counted, or
// may still be marked, is in doubt.
void Visitors::take_back(std::span<Claim* const> claims, const Failure& why) {
  for (Claim* one : claims) one->failure = why;
  if (why.code() == ErrorCode::unknown_outcome) return;
  std::vector<Request> reads, removals;
  std::vector<Claim*> marked;
  for (const Claim* one : claims) reads.push_back(Request::gets(one->add.key));
  const auto doubt = [&](Claim& one, const Reply& reply) {
    one.failure = UnknownOutcome("it is marked as counted, and was not counted: " + std::string(why.what()),
                                 context_.cluster.address_of(reply.server));
  };
  const auto there = execute_copies(context_, reads);
  for (std::size_t i = 0; i < claims.size(); ++i) {
    for (const Reply& reply : there[i]) {
      if (reply.failed()) doubt(*claims[i], reply);
      if (reply.outcome != Outcome::hit || reply.value != claims[i]->add.value) continue;
      removals.push_back(Request::remove_if(reads[i].key, reply.cas).on(reply.server));
      marked.push_back(claims[i]);
    }
  }
  const auto removed = context_.cluster.execute(removals);
  for (std::size_t i = 0; i < removed.size(); ++i) {
    // exists: perhaps only moved in its server's memory.
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
      claims.push_back({i, {}, Claim::State::failed, false, empty});
      continue;
    }
    claims.push_back({i, Request::add(element_key(key_of(period), ids[i]), mark(), exptime_of(period))});
  }
  for (int attempt = 0; attempt < claim_attempts; ++attempt) {
    add_open(claims);
    look_up_open(claims);
  }
  for (Claim& one : claims) {
    if (one.state != Claim::State::open) continue;
    one.state = Claim::State::failed;
    one.failure =
        UnknownOutcome("no reply while counting a visitor; it may be marked as counted without being counted",
                       context_.cluster.address_of(context_.cluster.server_of(one.add)));
  }
  return claims;
}

// With several copies the time stands first: of two marks the smaller is the older.
std::string Visitors::mark() const {
  const auto now =
      static_cast<std::uint64_t>(std::max<std::int64_t>(context_.clock.wall().time_since_epoch().count(), 0));
  return 'V' + of_several(context_.copies, hex64(now)) + context_.random.token();
}

// nullopt: the outcome must be looked up.
std::optional<Visitors::ClaimState> Visitors::decide(Claim& one, std::span<const Reply> replies) const {
  one.ours_perhaps.resize(replies.size());
  one.others.resize(replies.size());
  for (std::size_t i = 0; i < replies.size(); ++i) {
    const bool refused_there = replies[i].outcome == Outcome::not_stored;
    one.others[i] = one.others[i] || (refused_there && !one.ours_perhaps[i]);
    one.ours_perhaps[i] = one.ours_perhaps[i] || is_stored(replies[i]) || replies[i].unknown();
  }
  const auto count = [&](auto matches) {
    return static_cast<std::size_t>(std::ranges::count_if(replies, matches));
  };
  const std::size_t stored = count(is_stored);
  const std::size_t refused = count([](const Reply& reply) { return reply.outcome == Outcome::not_stored; });
  if (count([](const Reply& reply) { return reply.unknown(); }) != 0) return std::nullopt;
  if (refused != 0 && (one.looked_up || stored != 0)) return std::nullopt;
  if (stored != 0) return Claim::State::ours;
  if (refused != 0) return Claim::State::taken;
  one.failure = copy_outcome(context_, telling(replies)).failure;
  return Claim::State::failed;
}

void Visitors::add_open(std::vector<Claim>& claims) {
  std::vector<Request> batch;
  std::vector<Claim*> sent;
  for (Claim& one : claims) {
    if (one.state != Claim::State::open) continue;
    batch.push_back(one.add);
    sent.push_back(&one);
  }
  if (batch.empty()) return;
  const auto replies = execute_copies(context_, batch);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    if (const auto state = decide(*sent[i], replies[i])) sent[i]->state = *state;
  }
}

void Visitors::look_up_open(std::vector<Claim>& claims) {
  std::vector<Request> batch;
  std::vector<Claim*> sent;
  for (Claim& one : claims) {
    if (one.state != Claim::State::open) continue;
    batch.push_back(Request::get(one.add.key));
    sent.push_back(&one);
    one.looked_up = true;
  }
  if (batch.empty()) return;
  const auto replies = execute_copies(context_, batch);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const std::string* oldest = nullptr;
    bool hidden = false;
    for (std::size_t copy = 0; copy < replies[i].size(); ++copy) {
      const Reply& reply = replies[i][copy];
      hidden = hidden || (reply.failed() && sent[i]->others[copy]);
      if (reply.outcome == Outcome::hit && (oldest == nullptr || is_older_mark(reply.value, *oldest)))
        oldest = &reply.value;
    }
    if (oldest == nullptr || hidden) continue;
    sent[i]->state = *oldest == sent[i]->add.value ? Claim::State::ours : Claim::State::taken;
  }
}

Visitors::Value Visitors::value() {
  const WallTime now = context_.clock.wall();
  const std::int64_t period = period_of(now);
  const std::int64_t asked = fixed_.value_or(period - 1);
  const std::vector<Request> batch{Request::get(key_of(asked)), Request::get(key_of(period))};
  const auto replies = execute_copies(context_, batch);
  Value value;
  value.visitors = count_in(context_.cluster, replies[0], batch[0].key);
  value.current = count_in(context_.cluster, replies[1], batch[1].key);
  value.period_started_at = start_of(asked);
  const std::chrono::duration<double> elapsed = now - start_of(period);
  value.elapsed = std::clamp(elapsed.count() / static_cast<double>(period_s_), 0.0, 1.0);
  value.server = replies[0].front().server;
  value.copies = copy_outcomes(context_, replies[0]);
  return value;
}

double Visitors::Value::estimate() const {
  return static_cast<double>(visitors) * (1 - elapsed) + static_cast<double>(current);
}

double Visitors::Value::standard_error() const {
  return std::sqrt(static_cast<double>(visitors) * elapsed * (1 - elapsed));
}

std::uint64_t Visitors::jittered(double visitors, double fraction) {
  // The sum of twelve uniform numbers is as good as normal here and, unlike the exact ways, needs no libm:
  // loading that library would cost every command a tenth of its time.
  double normal = -6;
  for (int i = 0; i < 12; ++i) normal += context_.random.unit();
  return static_cast<std::uint64_t>(std::clamp(visitors * (1 + fraction * normal) + 0.5, 0.0, 1.8e19));
}

std::vector<std::string> Visitors::keys() const {
  const std::int64_t period = period_of(context_.clock.wall());
  return {key_of(period - 1), key_of(period)};
}

}  // namespace mcds
