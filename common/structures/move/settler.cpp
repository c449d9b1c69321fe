#include "common/structures/move/settler.hpp"

#include "common/base/result.hpp"

namespace mcds::moving {

namespace {

constexpr const char* ended_meanwhile =
    "it ended or was removed on its new server at the same moment; run the move again";

}  // namespace

std::vector<bool> Settler::settle(Items& items, std::span<const Request> batch,
                                  std::span<const Reply> replies) {
  std::vector<State> states;
  states.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) states.push_back(judge(items[i], batch[i], replies[i]));
  add_again(items, batch, states);
  update(items, batch, states);
  touch(items, states);
  std::vector<bool> settled;
  settled.reserve(items.size());
  for (const State state : states) settled.push_back(state == State::settled);
  return settled;
}

Settler::State Settler::judge(const Item& item, const Request& request, const Reply& seen) {
  if (seen.failed()) return left(item, failure_of(to_, seen));
  const bool hit = seen.outcome == Outcome::hit;
  if (item.only_touched) {
    if (hit && digest_of(seen.value, seen.flags) == item.digest)
      return seen.created ? judge_found(item, request, seen) : State::touched;
    if (!hit && request.op == Op::add_and_get) return State::missing;
    ++tally_.pair_of(item).already;  // the new pool's clients changed or removed it
    return State::settled;
  }
  if (hit) return judge_found(item, request, seen);
  if (!has_ended(item)) return State::missing;
  ++tally_.pair_of(item).gone;
  return State::settled;
}

Settler::State Settler::judge_found(const Item& item, const Request& add, const Reply& seen) {
  const std::uint64_t digest = digest_of(seen.value, seen.flags);
  if (digest == item.digest) {
    // Stored by a run that was ended, and touched since, or not any more by that run.
    if (!seen.created && item.before && !item.before->settled && item.before->may_be(digest))
      return State::touched;
    MovedPair& pair = tally_.pair_of(item);
    ++(seen.created ? pair.copied : pair.already);
    return State::settled;
  }
  if (item.before && item.before->may_be(digest)) return State::changed;
  return judge_other(item, add, seen);
}

// What is not there although it was added: why, an add by itself says.
void Settler::add_again(Items& items, std::span<const Request> batch, std::vector<State>& states) {
  std::vector<std::size_t> missing;
  std::vector<Request> requests;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (states[i] != State::missing) continue;
    missing.push_back(i);
    Request add = batch[i];
    add.op = Op::add;
    requests.push_back(std::move(add));
    requests.push_back(Request::get(items[i].key).on(items[i].record.to));
  }
  if (missing.empty()) return;
  const std::vector<Reply> replies = to_.execute(requests);
  for (std::size_t k = 0; k < missing.size(); ++k) {
    states[missing[k]] =
        judge_added(items[missing[k]], batch[missing[k]], replies[2 * k], replies[2 * k + 1]);
  }
}

Settler::State Settler::judge_added(const Item& item, const Request& add, const Reply& added,
                                    const Reply& seen) {
  const bool hit = seen.outcome == Outcome::hit;
  if (added.failed() && !hit) return left(item, failure_of(to_, added));
  if (seen.failed()) return left(item, failure_of(to_, seen));
  if (!hit && has_ended(item)) {
    ++tally_.pair_of(item).gone;
    return State::settled;
  }
  if (!hit && added.outcome == Outcome::stored)
    return left(item, "lost", "it was stored but is gone again; is the server out of memory?");
  if (!hit)
    return left(item, "busy", "it was removed from its new server at the same moment; run the move again");
  Reply found = seen;
  found.created = added.failed() || added.outcome == Outcome::stored;
  return judge_found(item, add, found);
}

// Or is about to: the second that the server is in may have been its last.
bool Settler::has_ended(const Item& item) const {
  return item.end != never_ends && item.end <= clock_.wall() + std::chrono::seconds(2);
}

// Another value is there, which is not what this move stored.
Settler::State Settler::judge_other(const Item& item, const Request& add, const Reply& seen) {
  const Kind kind = item.record.kind;
  if (!Roots::is_of(kind, add.value) || !Roots::is_of(kind, seen.value)) {
    return left(item, "differs",
                item.before ? "it was changed on both servers since it was copied; the new value stays"
                            : "another value is on its new server and stays");
  }
  const auto united = attempt([&] {
    roots_.unite({item.record.key, item.record.from, item.record.to}, kind, add.value);
  });
  if (united.failure()) return left(item, *united.failure());
  ++tally_.pair_of(item).united;
  return State::settled;
}

// Changed on the old server since it was copied, and not on the new one.
void Settler::update(Items& items, std::span<const Request> batch, std::vector<State>& states) {
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
    const Request& add = batch[changed[k]];
    const bool no_cas = now[k].cas.value == 0;
    Request request = no_cas ? Request::set(item.key, add.value, item.exptime)
                             : Request::compare_and_set(item.key, add.value, item.exptime, now[k].cas);
    request.flags = add.flags;
    request = std::move(request).on(item.record.to);
    const bool still = now[k].outcome == Outcome::hit &&
                       item.before->may_be(digest_of(now[k].value, now[k].flags)) &&
                       (!no_cas || without_cas_);
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
      ++tally_.pair_of(item).updated;
      state = State::settled;
    } else if (now[k].outcome == Outcome::miss || replies[k].outcome == Outcome::not_found) {
      state = left(item, "busy", ended_meanwhile);
    } else if (now[k].cas.value == 0 && !without_cas_) {
      state =
          left(item, "without_cas",
               "its new server runs without cas (-C), so its copy cannot be compared and replaced; stop the "
               "writers and give --without-cas");
    } else {
      state = judge_other(item, batch[changed[k]], now[k]);
    }
  }
}

// The same value with another end.
void Settler::touch(Items& items, std::vector<State>& states) {
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
    if (replies[k].outcome != Outcome::stored && has_ended(item)) {
      ++tally_.pair_of(item).gone;
      states[touched[k]] = State::settled;
      continue;
    }
    if (replies[k].outcome != Outcome::stored) {
      states[touched[k]] = left(item, "busy", ended_meanwhile);
      continue;
    }
    ++tally_.pair_of(item).updated;
    states[touched[k]] = State::settled;
  }
}

}  // namespace mcds::moving
