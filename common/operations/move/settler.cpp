#include "common/operations/move/settler.hpp"

#include "common/base/result.hpp"

namespace mcds::moving {

namespace {

constexpr const char* ended_meanwhile =
    "it ended or was removed on its new server at the same moment; run the move again";

// Asks the new servers for the items in this state, in one trip, and judges each by its replies.
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

std::vector<bool> Settler::settle(Items& items, std::span<const Request> batch,
                                  std::span<const Reply> replies) {
  std::vector<State> states;
  states.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) states.push_back(judge(items[i], batch[i], replies[i]));
  const auto get = [&](std::size_t i, auto by) { return by(items[i].key).on(items[i].record.to); };
  // What is not there although it was added: why, an add by itself says.
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
  // Changed on the old server since it was copied, and not on the new one.
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
  // The same value with another end.
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

Settler::State Settler::judge(const Item& item, const Request& request, const Reply& seen) {
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

Request Settler::update_of(const Item& item, const Request& add, const Reply& now) const {
  const bool no_cas = now.cas.value == 0;
  const bool still = now.outcome == Outcome::hit && item.before->may_be(digest_of(now.value, now.flags)) &&
                     (!no_cas || without_cas_);
  // In vain on purpose: what is no more as it was copied stays.
  if (!still) return Request::get(item.key).on(item.record.to);
  Request request = no_cas ? Request::set(item.key, add.value, item.exptime)
                           : Request::compare_and_set(item.key, add.value, item.exptime, now.cas);
  request.flags = add.flags;
  return std::move(request).on(item.record.to);
}

Settler::State Settler::judge_update(const Item& item, const Request& add, const Reply& now,
                                     const Reply& changed) {
  if (changed.failed()) return left(item, failure_of(to_, changed));
  if (changed.outcome == Outcome::stored) {
    ++tally_.pair_of(item).updated;
    return State::settled;
  }
  if (now.outcome == Outcome::miss || changed.outcome == Outcome::not_found)
    return left(item, "busy", ended_meanwhile);
  if (now.cas.value == 0 && !without_cas_)
    return left(item, "without_cas",
                "its new server runs without cas (-C), so its copy cannot be compared and replaced; stop the "
                "writers and give --without-cas");
  return judge_other(item, add, now);
}

Settler::State Settler::judge_touch(const Item& item, const Reply& touched) {
  if (touched.failed()) return left(item, failure_of(to_, touched));
  if (touched.outcome != Outcome::stored && !has_ended(item)) return left(item, "busy", ended_meanwhile);
  MovedPair& pair = tally_.pair_of(item);
  ++(touched.outcome == Outcome::stored ? pair.updated : pair.gone);
  return State::settled;
}

}  // namespace mcds::moving
