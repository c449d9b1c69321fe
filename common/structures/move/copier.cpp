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

// A token, with the slot where the lock has several, a blank and a JSON object.
bool is_lock(std::string_view value) {
  const std::size_t blank = value.find(' ');
  if (blank == std::string_view::npos || blank < 16 || value.substr(blank + 1, 1) != "{") return false;
  const std::string_view slot = value.substr(16, blank - 16);
  return parse_hex64(value.substr(0, 16)) &&
         (slot.empty() || (slot.front() == '.' && parse_u64(slot.substr(1))));
}

Failure failure_of(const Cluster& cluster, const Reply& reply) {
  try {
    static_cast<void>(expect(cluster, reply));
  } catch (const Failure& failure) {
    return failure;
  }
  return {ErrorCode::internal, "a reply that did not fail"};
}

}  // namespace

Copier::Copier(const Context& from, Cluster& to, const Map& map, Ledger& ledger, const MoveOptions& options,
               MoveReport& report, const Move::Watch& watch)
    : from_(from),
      to_(to),
      map_(map),
      ledger_(ledger),
      options_(options),
      report_(report),
      watch_(watch),
      roots_(from, to),
      started_(from.clock.steady()),
      largest_batch_(options.rate ? std::clamp<std::size_t>(*options.rate / batches_a_second, 1, most_items)
                                  : most_items) {}

MovedPair& Copier::pair_of(const Item& item) {
  return report_.pairs[{item.record.from, item.record.to}];
}

Copier::State Copier::left(const Item& item, const char* reason, std::string message) {
  ++pair_of(item).left;
  watch_.left({item.record.key, item.record.from, item.record.to, reason, std::move(message)});
  return State::left;
}

Copier::State Copier::left(const Item& item, const Failure& failure) {
  const char* reason = failure.code() == ErrorCode::refused           ? "refused"
                       : failure.code() == ErrorCode::bad_data        ? "damaged"
                       : failure.code() == ErrorCode::try_again       ? "busy"
                       : failure.code() == ErrorCode::unknown_outcome ? "unknown"
                                                                      : "unavailable";
  const std::string at = failure.server().empty() ? "" : failure.server() + ": ";
  return left(item, reason, at + failure.what());
}

void Copier::done(std::size_t count) {
  report_.done += count;
  watch_.progress(report_.done);
}

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
    ++pair_of(item).already;
    return done(1);
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
  reading_.push_back({std::move(next_), from_.cluster.begin(std::move(probes))});
  next_.clear();
  next_bytes_ = 0;
  if (reading_.size() > 1) begin_writing();
}

// False: it has ended.
bool Copier::set_expiry(Item& item, const ItemAge& age) const {
  std::int64_t left_s = -1;
  if (age.ttl) {
    left_s = age.ttl->count();
  } else if (item.record.expires_s != 0) {
    const auto now = std::chrono::floor<std::chrono::seconds>(from_.clock.wall()).time_since_epoch().count();
    left_s = std::max<std::int64_t>(item.record.expires_s - now, 0);
  }
  if (left_s == 0) return false;
  item.exptime =
      left_s < 0 ? Exptime::never() : Exptime::after(std::chrono::seconds(left_s), from_.clock.wall());
  return true;
}

// What to store it by; nullopt: there is nothing to store.
std::optional<Request> Copier::read(Item& item, Reply reply) {
  if (item.record.kind == Kind::journal && reply.outcome == Outcome::hit && Roots::has_segments(reply.value))
    reply = roots_.with_segments({item.record.key, item.record.from, item.record.to}, std::move(reply));
  if (reply.failed()) {
    left(item, failure_of(from_.cluster, reply));
    return std::nullopt;
  }
  if (reply.outcome != Outcome::hit || !set_expiry(item, reply.age)) {
    ++pair_of(item).gone;
    return std::nullopt;
  }
  if (item.record.kind == Kind::locklike && is_lock(reply.value)) {
    ++pair_of(item).locks;
    return std::nullopt;
  }
  item.digest = digest_of(reply.value, reply.flags);
  const bool same = item.before && item.before->settled && item.before->digest == item.digest;
  if (same && same_expiry(item.before->expires_s, item.record.expires_s)) {
    ++pair_of(item).already;
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
      request = read(item, std::move(replies[i]));
    } catch (const Failure& failure) {
      if (failure.code() == ErrorCode::cannot_write) throw;
      left(item, failure);
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
  done(nothing);
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
  const std::span<const Request> batch = writing.pending->batch();
  const std::size_t seen = replies.size() - items.size();
  std::vector<State> states;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto added = items[i].added;
    states.push_back(judge(items[i], added ? &batch[*added] : nullptr, added ? &replies[*added] : nullptr,
                           replies[seen + i]));
  }
  update(items, batch, states);
  touch(items, states);
  // What is left is tried again by the next run.
  for (std::size_t from = 0; from < states.size();) {
    std::size_t to = from;
    while (to < states.size() && states[to] == State::settled) ++to;
    ledger_.settle(writing.first + from, to - from);
    from = to + 1;
  }
  done(items.size());
}

Copier::State Copier::judge(const Item& item, const Request* add, const Reply* added, const Reply& seen) {
  MovedPair& pair = pair_of(item);
  if (added != nullptr && added->failed() && seen.outcome != Outcome::hit)
    return left(item, failure_of(to_, *added));
  if (seen.failed()) return left(item, failure_of(to_, seen));
  const bool hit = seen.outcome == Outcome::hit;
  const std::uint64_t digest = hit ? digest_of(seen.value, seen.flags) : 0;
  if (added == nullptr) {
    if (hit && digest == item.digest) return State::touched;
    ++pair.already;  // the new pool's clients changed or removed it
    return State::settled;
  }
  if (!hit && added->outcome == Outcome::stored)
    return left(item, "lost", "it was stored but is gone again; is the server out of memory?");
  if (!hit)
    return left(item, "busy", "it was removed from its new server at the same moment; run the move again");
  if (added->outcome == Outcome::stored) {
    ++pair.copied;
    return State::settled;
  }
  if (digest == item.digest) {
    ++(added->failed() ? pair.copied : pair.already);
    return State::settled;
  }
  if (added->failed()) return left(item, failure_of(to_, *added));
  if (item.before && item.before->may_be(digest)) return State::changed;
  return judge_other(item, *add, seen);
}

// Another value is there, which is not what this move stored.
Copier::State Copier::judge_other(const Item& item, const Request& add, const Reply& seen) {
  const Kind kind = item.record.kind;
  if (!Roots::is_of(kind, add.value) || !Roots::is_of(kind, seen.value)) {
    return left(item, "differs",
                item.before ? "it was changed on both servers since it was copied; the new value stays"
                            : "another value is on its new server and stays");
  }
  try {
    roots_.unite({item.record.key, item.record.from, item.record.to}, kind, add.value);
  } catch (const Failure& failure) {
    return left(item, failure);
  }
  ++pair_of(item).united;
  return State::settled;
}

// Changed on the old server since it was copied, and not on the new one.
void Copier::update(Items& items, std::span<const Request> batch, std::vector<State>& states) {
  std::vector<std::size_t> changed;
  std::vector<Request> gets;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (states[i] != State::changed) continue;
    changed.push_back(i);
    gets.push_back(Request::gets(items[i].key).on(items[i].record.to));
  }
  if (changed.empty()) return;
  const std::vector<Reply> now = to_.execute(gets);
  std::vector<Request> changes;
  for (std::size_t k = 0; k < changed.size(); ++k) {
    const Item& item = items[changed[k]];
    const Request& add = batch[*item.added];
    Request request =
        Request::compare_and_set(item.key, add.value, item.exptime, now[k].cas).on(item.record.to);
    request.flags = add.flags;
    const bool still = now[k].outcome == Outcome::hit &&
                       item.before->may_be(digest_of(now[k].value, now[k].flags)) && now[k].cas.value != 0;
    // In vain on purpose: what is no more as it was copied stays.
    if (!still) request = Request::get(item.key).on(item.record.to);
    changes.push_back(std::move(request));
  }
  const std::vector<Reply> replies = to_.execute(changes);
  for (std::size_t k = 0; k < changed.size(); ++k) {
    const Item& item = items[changed[k]];
    State& state = states[changed[k]];
    if (replies[k].failed()) {
      state = left(item, failure_of(to_, replies[k]));
    } else if (replies[k].outcome == Outcome::stored) {
      ++pair_of(item).updated;
      state = State::settled;
    } else {
      state = judge_other(item, batch[*item.added], now[k]);
    }
  }
}

// The same value with another end.
void Copier::touch(Items& items, std::vector<State>& states) {
  std::vector<std::size_t> touched;
  std::vector<Request> touches;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (states[i] != State::touched) continue;
    touched.push_back(i);
    touches.push_back(Request::touch(items[i].key, items[i].exptime).on(items[i].record.to));
  }
  if (touched.empty()) return;
  const std::vector<Reply> replies = to_.execute(touches);
  for (std::size_t k = 0; k < touched.size(); ++k) {
    const Item& item = items[touched[k]];
    if (replies[k].failed()) {
      states[touched[k]] = left(item, failure_of(to_, replies[k]));
      continue;
    }
    ++pair_of(item).updated;
    states[touched[k]] = State::settled;
  }
}

}  // namespace mcds::moving
