#include "common/structures/move/copier.hpp"

#include <algorithm>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"

namespace mcds::moving {

namespace {

constexpr std::size_t most_items = 512;
constexpr std::size_t most_bytes = std::size_t{1} << 20;
// Of a rate, in one batch: so many parts of a second.
constexpr std::uint64_t batches_a_second = 50;
// What a ttl may seem to change by itself: the ticks of two clocks.
constexpr std::int64_t tick_s = 2;

bool same_expiry(std::uint32_t one, std::uint32_t other) {
  if (one == 0 || other == 0) return one == other;
  return std::abs(static_cast<std::int64_t>(one) - static_cast<std::int64_t>(other)) <= tick_s;
}

// To the nearest second: a server's clock shows whole ones.
Exptime exptime_of(WallTime end, WallTime now) {
  if (end == never_ends) return Exptime::never();
  return Exptime::at(end - std::chrono::milliseconds(500), now);
}

// A token, with the slot where the lock has several, a blank and a JSON object.
bool is_lock(std::string_view value) {
  const std::size_t blank = value.find(' ');
  if (blank == std::string_view::npos || blank < 16 || value.substr(blank + 1, 1) != "{") return false;
  const std::string_view slot = value.substr(16, blank - 16);
  return parse_hex64(value.substr(0, 16)) &&
         (slot.empty() || (slot.front() == '.' && parse_u64(slot.substr(1))));
}

}  // namespace

Copier::Copier(const Context& from, Cluster& to, const Map& map, Ledger& ledger, const MoveOptions& options,
               MoveReport& report, const Move::Watch& watch)
    : from_(from),
      to_(to),
      map_(map),
      ledger_(ledger),
      options_(options),
      tally_(report, watch),
      roots_(from, to),
      settler_(from.clock, to, roots_, tally_),
      started_(from.clock.steady()),
      largest_batch_(options.rate ? std::clamp<std::size_t>(*options.rate / batches_a_second, 1, most_items)
                                  : most_items) {}

bool Copier::passed_over(const Item& item) const {
  if (!item.before || !item.before->settled) return false;
  if (!options_.again) return true;
  return item.before->cas != 0 && item.before->cas == item.record.cas &&
         same_expiry(item.before->expires_s, item.record.expires_s);
}

void Copier::take(Spooled record) {
  Item item;
  item.hash = hash_of(record.key);
  if (const Copied* before = ledger_.find(item.hash)) item.before = *before;
  item.record = std::move(record);
  if (passed_over(item)) {
    ++tally_.pair_of(item).already;
    return tally_.done(1);
  }
  item.key = map_.wire_key(item.record.key, item.record.to);
  next_bytes_ += reckoned_size(item.record);
  next_.push_back(std::move(item));
  if (next_.size() >= largest_batch_ || next_bytes_ >= most_bytes) begin_reading();
}

void Copier::finish() {
  begin_reading();
  while (!reading_.empty()) begin_writing();
  while (!writing_.empty()) finish_writing();
}

void Copier::keep_pace(std::size_t count) {
  if (!options_.rate) return;
  const auto due = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(static_cast<double>(paced_) / static_cast<double>(*options_.rate)));
  const SteadyTime now = from_.clock.steady();
  if (started_ + due > now) from_.clock.sleep_for(started_ + due - now);
  paced_ += count;
}

void Copier::begin_reading() {
  if (next_.empty()) return;
  keep_pace(next_.size());
  std::vector<Request> probes;
  probes.reserve(next_.size());
  for (const Item& item : next_) probes.push_back(Request::probe(item.record.key, item.record.from));
  reading_.push_back({std::move(next_), from_.clock.wall(), from_.cluster.begin(std::move(probes))});
  next_.clear();
  next_bytes_ = 0;
  if (reading_.size() > 1) begin_writing();
}

// By our clock; the server's answer is of some time between question and reply. nullopt: it has ended.
std::optional<WallTime> Copier::end_of(const Item& item, const ItemAge& age, WallTime asked) const {
  const WallTime now = from_.clock.wall();
  WallTime end = never_ends;
  if (age.ttl && age.ttl->count() >= 0) end = asked + (now - asked) / 2 + *age.ttl;
  if (!age.ttl && item.record.expires_s != 0) end = WallTime(std::chrono::seconds(item.record.expires_s));
  return end > now ? std::optional(end) : std::nullopt;
}

// What to store it by; nullopt: there is nothing to store.
std::optional<Request> Copier::read(Item& item, Reply reply, WallTime asked) {
  if (item.record.kind == Kind::journal && reply.outcome == Outcome::hit && Roots::has_segments(reply.value))
    reply = roots_.with_segments({item.record.key, item.record.from, item.record.to}, std::move(reply));
  if (reply.failed()) {
    tally_.left(item, failure_of(from_.cluster, reply));
    return std::nullopt;
  }
  const auto end = end_of(item, reply.age, asked);
  if (reply.outcome != Outcome::hit || !end) {
    ++tally_.pair_of(item).gone;
    return std::nullopt;
  }
  if (item.record.kind == Kind::locklike && is_lock(reply.value)) {
    ++tally_.pair_of(item).locks;
    return std::nullopt;
  }
  item.end = *end;
  item.exptime = exptime_of(*end, from_.clock.wall());
  item.digest = digest_of(reply.value, reply.flags);
  const bool same = item.before && item.before->settled && item.before->digest == item.digest;
  if (same && same_expiry(item.before->expires_s, item.record.expires_s)) {
    ++tally_.pair_of(item).already;
    return std::nullopt;
  }
  item.only_touched = same;
  Request request = Request::add(item.key, std::move(reply.value), item.exptime).on(item.record.to);
  request.flags = reply.flags;
  item.record.cas = reply.cas.value;
  return request;
}

void Copier::begin_writing() {
  Reading reading = std::move(reading_.front());
  reading_.pop_front();
  std::vector<Reply> replies = reading.pending->finish();
  Writing writing;
  writing.first = ledger_.written();
  std::vector<Request> requests;
  std::size_t nothing = 0;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    Item& item = reading.items[i];
    std::optional<Request> request;
    try {
      request = read(item, std::move(replies[i]), reading.asked);
    } catch (const Failure& failure) {
      if (failure.code() == ErrorCode::cannot_write) throw;
      tally_.left(item, failure);
    }
    if (!request) {
      ++nothing;
      continue;
    }
    if (!item.only_touched) {
      item.added = requests.size();
      requests.push_back(std::move(*request));
    }
    ledger_.add(item.hash, {item.digest, item.record.cas, item.record.expires_s});
    writing.items.push_back(std::move(item));
  }
  // They are known before the new servers are.
  ledger_.write();
  for (const Item& item : writing.items) requests.push_back(Request::get(item.key).on(item.record.to));
  tally_.done(nothing);
  if (writing.items.empty()) return;
  writing.pending = to_.begin(std::move(requests));
  writing_.push_back(std::move(writing));
  if (writing_.size() > 1) finish_writing();
}

void Copier::finish_writing() {
  Writing writing = std::move(writing_.front());
  writing_.pop_front();
  Items& items = writing.items;
  const std::vector<Reply> replies = writing.pending->finish();
  const std::vector<bool> settled = settler_.settle(items, writing.pending->batch(), replies);
  // What is left is tried again by the next run.
  for (std::size_t from = 0; from < settled.size();) {
    std::size_t to = from;
    while (to < settled.size() && settled[to]) ++to;
    ledger_.settle(writing.first + from, to - from);
    from = to + 1;
  }
  tally_.done(items.size());
}

}  // namespace mcds::moving
