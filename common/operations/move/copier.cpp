#include "common/operations/move/copier.hpp"

#include "common/base/bounds.hpp"
#include "common/base/rely.hpp"
#include "common/base/result.hpp"
#include "common/primitives/structure_names.hpp"

namespace mcds::moving {

namespace {

// What a ttl may seem to change by itself: the ticks of two clocks.
constexpr std::int64_t tick_s = 2;

bool same_expiry(std::uint32_t one, std::uint32_t other) {
  if (one == 0 || other == 0) return one == other;
  return std::abs(static_cast<std::int64_t>(one) - static_cast<std::int64_t>(other)) <= tick_s;
}

}  // namespace

Copier::Copier(const Context& from, Cluster& to, const Map& map, Ledger& ledger, const MoveOptions& options,
               MoveReport& report, const Move::Watch& watch, Clocks new_clocks, Since since)
    : from_(from),
      to_(to),
      map_(map),
      ledger_(ledger),
      options_(options),
      since_(std::move(since)),
      report_(report),
      tally_(report, watch),
      roots_(from, to),
      settler_(from.clock, to, roots_, tally_, options.without_cas),
      old_clocks_(look_at_clocks(from.cluster, from.clock)),
      new_clocks_(std::move(new_clocks)),
      pace_(options.rate, from.clock.steady()),
      largest_batch_(pace_.largest_batch()) {}

// What the journal says of servers that were restarted since. A run by the old list copies again what a new
// server lost; with `again` that may have been removed or changed there before, by clients of the new list,
// and is only counted.
void Copier::doubt(Item& item) {
  if (!item.before) return;
  if (item.before->index < since_.old_servers[item.record.from]) item.before->cas = 0;
  if (!item.before->settled || item.before->index >= since_.new_servers[item.record.to]) return;
  if (options_.again)
    ++report_.lost[item.record.to];
  else
    item.before->settled = false;
}

bool Copier::passed_over(const Item& item) const {
  if (!item.before || !item.before->settled) return false;
  if (!options_.again) return true;
  return item.before->cas != 0 && item.before->cas == item.record.cas &&
         same_expiry(item.before->expires_s, item.record.expires_s);
}

void Copier::take(Spooled record) {
  Item item;
  item.hash = hash_of(record.key, record.copy);
  if (const Copied* before = ledger_.find(item.hash)) item.before = *before;
  item.record = std::move(record);
  doubt(item);
  if (passed_over(item)) {
    ++tally_.pair_of(item).already;
    return tally_.done(1);
  }
  item.key = map_.wire_key(item.record.key, item.record.to);
  next_bytes_ += reckoned_size(item.record.size_bytes);
  next_.push_back(std::move(item));
  if (next_.size() >= largest_batch_ || next_bytes_ >= batch_bytes) begin_reading();
}

void Copier::finish() {
  begin_reading();
  while (!reading_.empty()) begin_writing();
  while (!writing_.empty()) finish_writing();
}

void Copier::begin_reading() {
  if (next_.empty()) return;
  pace_.wait_for(next_.size(), from_.clock);
  std::vector<Request> probes;
  probes.reserve(next_.size());
  for (const Item& item : next_) probes.push_back(Request::probe(item.record.key, item.record.from));
  reading_.push_back({std::move(next_), from_.clock.wall(), from_.cluster.begin(std::move(probes))});
  next_.clear();
  next_bytes_ = 0;
  if (reading_.size() > 1) begin_writing();
}

// By our clock, of what ends so by the clock of its old server.
WallTime Copier::end_of(std::uint32_t expires_s, std::size_t old_server) const {
  const ClockLook here = old_clocks_[old_server].value_or(ClockLook{});
  return WallTime(
      std::chrono::round<std::chrono::microseconds>(std::chrono::seconds(expires_s) - here.ahead));
}

// False: it has ended. What ends is stored with its new server's time of that, so it does not matter when it
// arrives.
bool Copier::set_end(Item& item) const {
  if (item.record.expires_s == 0) return true;
  item.end = end_of(item.record.expires_s, item.record.from);
  const WallTime now = from_.clock.wall();
  if (item.end <= now) return false;
  const auto& there = new_clocks_[item.record.to];
  const ClockLook here = old_clocks_[item.record.from].value_or(ClockLook{});
  const auto absolute =
      there ? Exptime::absolute(item.record.expires_s + seconds_ahead(here, *there)) : std::nullopt;
  // Else to the nearest second: a server's clock shows whole ones.
  item.exptime = absolute ? *absolute : Exptime::at(item.end - std::chrono::milliseconds(500), now);
  return true;
}

// Or is about to.
bool Copier::copy_has_ended(const Item& item) const {
  return item.before->expires_s != 0 && end_of(item.before->expires_s, item.record.from) <=
                                            from_.clock.wall() + std::chrono::seconds(tick_s);
}

// What to store it by; nullopt: there is nothing to store.
std::optional<Request> Copier::read(Item& item, Reply reply) {
  if (item.record.kind == Kind::journal && reply.outcome == Outcome::hit && Roots::has_segments(reply.value))
    reply = roots_.with_segments({item.record.key, item.record.from, item.record.to}, std::move(reply));
  if (reply.failed()) {
    tally_.left(item, failure_of(from_.cluster, reply));
    return std::nullopt;
  }
  if (reply.outcome != Outcome::hit || !set_end(item)) {
    ++tally_.pair_of(item).gone;
    return std::nullopt;
  }
  if (item.record.kind == Kind::locklike && is_lock_value(reply.value)) {
    ++tally_.pair_of(item).locks;
    return std::nullopt;
  }
  item.digest = digest_of(reply.value, reply.flags);
  const bool same = item.before && item.before->settled && item.before->digest == item.digest;
  if (same && same_expiry(item.before->expires_s, item.record.expires_s)) {
    ++tally_.pair_of(item).already;
    return std::nullopt;
  }
  item.only_touched = same;
  item.record.cas = reply.cas.value;
  if (same && !copy_has_ended(item)) return Request::get(item.key).on(item.record.to);
  Request request = Request::add_and_get(item.key, std::move(reply.value), item.exptime).on(item.record.to);
  request.flags = reply.flags;
  return request;
}

void Copier::begin_writing() {
  Reading reading = std::move(reading_.front());
  reading_.pop_front();
  std::vector<Reply> replies = reading.pending->finish();
  std::vector<Spooled*> records;
  for (Item& item : reading.items) records.push_back(&item.record);
  read_touched_again(from_.cluster, old_clocks_, records, replies, reading.asked, from_.clock.wall());
  Writing writing;
  writing.first = ledger_.written();
  std::vector<Request> requests;
  requests.reserve(replies.size());
  writing.items.reserve(replies.size());
  for (std::size_t i = 0; i < replies.size(); ++i) {
    Item& item = reading.items[i];
    auto request = attempt([&] { return read(item, std::move(replies[i])); });
    if (const auto& failure = request.failure()) {
      if (failure->code() == ErrorCode::cannot_write) raise(*failure);
      tally_.left(item, *failure);
      continue;
    }
    if (!request.value()) continue;
    requests.push_back(std::move(*request.value()));
    ledger_.add(item.hash, {item.digest, item.record.cas, item.record.expires_s});
    writing.items.push_back(std::move(item));
  }
  // They are known before the new servers are.
  ledger_.write();
  tally_.done(replies.size() - requests.size());
  if (requests.empty()) return;
  writing.pending = to_.begin(std::move(requests));
  writing_.push_back(std::move(writing));
  if (writing_.size() > 1) finish_writing();
}

void Copier::finish_writing() {
  Writing writing = std::move(writing_.front());
  writing_.pop_front();
  Items& items = writing.items;
  const std::vector<Reply> replies = writing.pending->finish();
  rely_on(replies.size() == items.size(), "each item on its way has a reply");
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
