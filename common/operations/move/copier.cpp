#include "common/operations/move/copier.hpp"

#include "common/base/errors.hpp"
#include "common/primitives/key_names.hpp"

namespace mcds::moving {

namespace {

// Differences between the ticks of two clocks can change a ttl by this much.
constexpr std::int64_t tick_s = 2;

bool same_expiry(std::uint32_t one, std::uint32_t other) {
  if (one == 0 || other == 0) return one == other;
  return std::abs(static_cast<std::int64_t>(one) - static_cast<std::int64_t>(other)) <= tick_s;
}

}  // namespace

Copier::Copier(const Context& from, Cluster& to, const Map& map, MoveJournal& move_journal,
               const MoveOptions& options, MoveReport& report, const Move::Watch& watch, Clocks new_clocks,
               ValidFrom valid_from)
    : from_(from),
      to_(to),
      map_(map),
      move_journal_(move_journal),
      options_(options),
      valid_from_(std::move(valid_from)),
      report_(report),
      tally_(report, watch),
      roots_(from, to),
      resolver_(from.clock, to, roots_, tally_, options.without_cas),
      old_clocks_(read_clocks(from.cluster, from.clock)),
      new_clocks_(std::move(new_clocks)),
      limiter_(options.rate, from.clock.steady()),
      largest_batch_(limiter_.largest_batch()) {}

// Corrects the journal's record for servers that restarted since. A run by the old list copies lost items
// again. With `again` they are only counted, because clients of the new list may have removed or changed them
// before the restart.
void Copier::doubt(Item& item) {
  if (!item.before) return;
  if (item.before->index < valid_from_.old_servers[item.record.from]) item.before->cas = 0;
  if (!item.before->settled || item.before->index >= valid_from_.new_servers[item.record.to]) return;
  if (options_.again)
    ++report_.lost[item.record.to];
  else
    item.before->settled = false;
}

bool Copier::skipped(const Item& item) const {
  if (!item.before || !item.before->settled) return false;
  if (!options_.again) return true;
  return item.before->cas != 0 && item.before->cas == item.record.cas &&
         same_expiry(item.before->expires_s, item.record.expires_s);
}

void Copier::take(SpilledRecord record) {
  Item item;
  item.hash = hash_of(record.key, record.copy);
  if (const Copied* before = move_journal_.find(item.hash)) item.before = *before;
  item.record = std::move(record);
  doubt(item);
  if (skipped(item)) {
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
  limiter_.wait_for(next_.size(), from_.clock);
  std::vector<Request> probes;
  probes.reserve(next_.size());
  for (const Item& item : next_) probes.push_back(Request::probe(item.record.key, item.record.from));
  reading_.push_back({std::move(next_), from_.clock.wall(), from_.cluster.begin(std::move(probes))});
  next_.clear();
  next_bytes_ = 0;
  if (reading_.size() > 1) begin_writing();
}

// Converts an expiry by the old server's clock to our clock.
WallTime Copier::end_of(std::uint32_t expires_s, std::size_t old_server) const {
  const ClockLook here = old_clocks_[old_server].value_or(ClockLook{});
  return WallTime(
      std::chrono::round<std::chrono::microseconds>(std::chrono::seconds(expires_s) - here.ahead));
}

// Sets the item's expiry. Returns false if it has expired. The new server gets an absolute time by its own
// clock, so that the time of arrival does not matter.
bool Copier::set_end(Item& item) const {
  if (item.record.expires_s == 0) return true;
  item.end = end_of(item.record.expires_s, item.record.from);
  const WallTime now = from_.clock.wall();
  if (item.end <= now) return false;
  const auto& there = new_clocks_[item.record.to];
  const ClockLook here = old_clocks_[item.record.from].value_or(ClockLook{});
  const auto absolute =
      there ? Exptime::absolute(item.record.expires_s + seconds_ahead(here, *there)) : std::nullopt;
  // Otherwise round to the nearest second, because a server's clock shows whole seconds.
  item.exptime = absolute ? *absolute : Exptime::at(item.end - std::chrono::milliseconds(500), now);
  return true;
}

// Returns true if the copy has expired or is about to.
bool Copier::copy_has_ended(const Item& item) const {
  return item.before->expires_s != 0 && end_of(item.before->expires_s, item.record.from) <=
                                            from_.clock.wall() + std::chrono::seconds(tick_s);
}

// Returns the request that stores the item, or nullopt if there is nothing to store.
std::optional<Request> Copier::read(Item& item, Reply reply) {
  if (item.record.kind == Kind::journal && reply.outcome == Outcome::hit &&
      StructureMerger::has_segments(reply.value))
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
  std::vector<SpilledRecord*> records;
  for (Item& item : reading.items) records.push_back(&item.record);
  read_touched_again(from_.cluster, old_clocks_, records, replies, reading.asked, from_.clock.wall());
  Writing writing;
  writing.first = move_journal_.written();
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
    move_journal_.add(item.hash, {item.digest, item.record.cas, item.record.expires_s});
    writing.items.push_back(std::move(item));
  }
  // Record the items before they are sent. A crash after this leaves records of items that may not be stored.
  move_journal_.write();
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
  require(replies.size() == items.size(), "each item on its way has a reply");
  const std::vector<bool> settled = resolver_.settle(items, writing.pending->batch(), replies);
  // Items that are not settled are tried again by the next run.
  for (std::size_t from = 0; from < settled.size();) {
    std::size_t to = from;
    while (to < settled.size() && settled[to]) ++to;
    move_journal_.settle(writing.first + from, to - from);
    from = to + 1;
  }
  tally_.done(items.size());
}

namespace {

constexpr const char* ended_meanwhile =
    "the item expired or was removed on its new server at the same moment; run the move again";

// Sends the requests for the items in state `wanted` in one trip, and judges each by its replies.
template <typename State, typename Ask, typename Judge>
void ask_for(Cluster& to, std::vector<State>& states, State wanted, const Ask& ask, const Judge& judge) {
  std::vector<std::size_t> asked;
  std::vector<Request> requests;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i] != wanted) continue;
    asked.push_back(i);
    for (Request& request : ask(i)) requests.push_back(std::move(request));
  }
  if (asked.empty()) return;
  const std::vector<Reply> replies = to.execute(requests);
  const std::size_t each = replies.size() / asked.size();
  for (std::size_t k = 0; k < asked.size(); ++k) judge(asked[k], std::span(replies).subspan(k * each, each));
}

}  // namespace

void Tally::left(const Item& item, const char* reason, std::string message) {
  ++pair_of(item).left;
  watch_.left({item.record.key, item.record.from, item.record.to, reason, std::move(message)});
}

void Tally::left(const Item& item, const Failure& failure) {
  const char* reason = failure.code() == ErrorCode::refused           ? "refused"
                       : failure.code() == ErrorCode::bad_data        ? "damaged"
                       : failure.code() == ErrorCode::try_again       ? "busy"
                       : failure.code() == ErrorCode::unknown_outcome ? "unknown"
                                                                      : "unavailable";
  const std::string at = failure.server().empty() ? "" : failure.server() + ": ";
  left(item, reason, at + failure.what());
}

void Tally::done(std::size_t count) {
  report_.done += count;
  watch_.progress(report_.done);
}

std::vector<bool> ConflictResolver::settle(Items& items, std::span<const Request> batch,
                                           std::span<const Reply> replies) {
  std::vector<State> states;
  states.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) states.push_back(judge(items[i], batch[i], replies[i]));
  const auto get = [&](std::size_t i, auto by) { return by(items[i].key).on(items[i].record.to); };
  // An item that is missing although it was added: a separate add shows why.
  ask_for(
      to_, states, State::missing,
      [&](std::size_t i) {
        Request add = batch[i];
        add.op = Op::add;
        return std::vector{std::move(add), get(i, Request::get)};
      },
      [&](std::size_t i, std::span<const Reply> of_item) {
        states[i] = judge_added(items[i], batch[i], of_item[0], of_item[1]);
      });
  // The item changed on the old server since it was copied, but not on the new one.
  std::vector<Reply> now(items.size());
  ask_for(
      to_, states, State::changed, [&](std::size_t i) { return std::vector{get(i, Request::gets)}; },
      [&](std::size_t i, std::span<const Reply> of_item) { now[i] = of_item[0]; });
  ask_for(
      to_, states, State::changed,
      [&](std::size_t i) { return std::vector{update_of(items[i], batch[i], now[i])}; },
      [&](std::size_t i, std::span<const Reply> of_item) {
        states[i] = judge_update(items[i], batch[i], now[i], of_item[0]);
      });
  // The same value with another expiry.
  ask_for(
      to_, states, State::touched,
      [&](std::size_t i) {
        return std::vector{Request::touch(items[i].key, items[i].exptime).on(items[i].record.to)};
      },
      [&](std::size_t i, std::span<const Reply> of_item) { states[i] = judge_touch(items[i], of_item[0]); });
  std::vector<bool> settled;
  settled.reserve(items.size());
  for (const State state : states) settled.push_back(state == State::settled);
  return settled;
}

ConflictResolver::State ConflictResolver::judge(const Item& item, const Request& request, const Reply& seen) {
  if (seen.failed()) return left(item, failure_of(to_, seen));
  const bool hit = seen.outcome == Outcome::hit;
  if (item.only_touched) {
    if (hit && digest_of(seen.value, seen.flags) == item.digest)
      return seen.created ? judge_found(item, request, seen) : State::touched;
    if (!hit && request.op == Op::add_and_get) return State::missing;
    MovedPair& pair = tally_.pair_of(item);
    ++(hit ? pair.already : pair.gone);  // the new pool's clients changed or removed it
    return State::settled;
  }
  if (hit) return judge_found(item, request, seen);
  if (!has_ended(item)) return State::missing;
  ++tally_.pair_of(item).gone;
  return State::settled;
}

ConflictResolver::State ConflictResolver::judge_found(const Item& item, const Request& add,
                                                      const Reply& seen) {
  const std::uint64_t digest = digest_of(seen.value, seen.flags);
  if (digest == item.digest) {
    // An interrupted run stored it, and its ttl may have changed since.
    if (!seen.created && item.before && !item.before->settled && item.before->may_be(digest))
      return State::touched;
    MovedPair& pair = tally_.pair_of(item);
    ++(seen.created ? pair.copied : pair.already);
    return State::settled;
  }
  if (item.before && item.before->may_be(digest)) return State::changed;
  return judge_other(item, add, seen);
}

ConflictResolver::State ConflictResolver::judge_added(const Item& item, const Request& add,
                                                      const Reply& added, const Reply& seen) {
  const bool hit = seen.outcome == Outcome::hit;
  if (added.failed() && !hit) return left(item, failure_of(to_, added));
  if (seen.failed()) return left(item, failure_of(to_, seen));
  if (!hit && has_ended(item)) {
    ++tally_.pair_of(item).gone;
    return State::settled;
  }
  if (!hit && added.outcome == Outcome::stored)
    return left(item, "lost", "the item was stored but is gone again; is the server out of memory?");
  if (!hit)
    return left(item, "busy",
                "the item was removed from its new server at the same moment; run the move again");
  Reply found = seen;
  found.created = added.failed() || added.outcome == Outcome::stored;
  return judge_found(item, add, found);
}

// Returns true if the item has expired or is about to: the server may be in its last second.
bool ConflictResolver::has_ended(const Item& item) const {
  return item.end != never_ends && item.end <= clock_.wall() + std::chrono::seconds(2);
}

// Handles a value on the new server that this move did not store: merges it or leaves the item.
ConflictResolver::State ConflictResolver::judge_other(const Item& item, const Request& add,
                                                      const Reply& seen) {
  const Kind kind = item.record.kind;
  if (!StructureMerger::is_of(kind, add.value) || !StructureMerger::is_of(kind, seen.value)) {
    return left(item, "differs",
                item.before
                    ? "the item was changed on both servers since it was copied; the new value was kept"
                    : "the new server has another value, which was kept");
  }
  const auto merged = attempt([&] {
    roots_.merge({item.record.key, item.record.from, item.record.to}, kind, add.value);
  });
  if (merged.failure()) return left(item, *merged.failure());
  ++tally_.pair_of(item).merged;
  return State::settled;
}

Request ConflictResolver::update_of(const Item& item, const Request& add, const Reply& now) const {
  const bool no_cas = now.cas.value == 0;
  const bool still = now.outcome == Outcome::hit && item.before->may_be(digest_of(now.value, now.flags)) &&
                     (!no_cas || without_cas_);
  // An item that is no longer the copy must stay, so a get, which changes nothing, replaces the write.
  if (!still) return Request::get(item.key).on(item.record.to);
  Request request = no_cas ? Request::set(item.key, add.value, item.exptime)
                           : Request::compare_and_set(item.key, add.value, item.exptime, now.cas);
  request.flags = add.flags;
  return std::move(request).on(item.record.to);
}

ConflictResolver::State ConflictResolver::judge_update(const Item& item, const Request& add, const Reply& now,
                                                       const Reply& changed) {
  if (changed.failed()) return left(item, failure_of(to_, changed));
  if (changed.outcome == Outcome::stored) {
    ++tally_.pair_of(item).updated;
    return State::settled;
  }
  if (now.outcome == Outcome::miss || changed.outcome == Outcome::not_found)
    return left(item, "busy", ended_meanwhile);
  if (now.cas.value == 0 && !without_cas_)
    return left(
        item, "without_cas",
        "the new server runs without cas (-C), so the copy there cannot be compared and replaced; stop the "
        "writers and give --without-cas");
  return judge_other(item, add, now);
}

ConflictResolver::State ConflictResolver::judge_touch(const Item& item, const Reply& touched) {
  if (touched.failed()) return left(item, failure_of(to_, touched));
  if (touched.outcome != Outcome::stored && !has_ended(item)) return left(item, "busy", ended_meanwhile);
  MovedPair& pair = tally_.pair_of(item);
  ++(touched.outcome == Outcome::stored ? pair.updated : pair.gone);
  return State::settled;
}

}  // namespace mcds::moving
