#include "common/primitives/several/kept.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/result.hpp"
#include "common/primitives/key_names.hpp"
#include "common/primitives/several/copies.hpp"

namespace mcds {

namespace {

constexpr auto between_looks = std::chrono::milliseconds(50);
constexpr auto longest_wait = std::chrono::seconds(20);
constexpr int most_looks = 3;  // before a server counts as silent

}  // namespace

Kept::Kept(const Context& context, std::string_view structure, std::string_view name, std::string_view root,
           SameLife same_life, Move move, HasLeft has_left, Unmarked unmarked)
    : context_(context),
      structure_(structure),
      name_(name),
      root_(root),
      same_life_(std::move(same_life)),
      key_(copied_key(context, structure, name)),
      recopying_(context, structure, name),
      move_(std::move(move)),
      has_left_(std::move(has_left)),
      unmarked_(unmarked) {}

std::string Kept::key_for(std::size_t copies) const {
  return copied_key(context_.in_copies(copies), structure_, name_);
}

// What is there under every number.
struct Kept::Look {
  SteadyTime at{};
  std::vector<std::optional<std::string>> unmarked;  // roots, the owner's first
  std::vector<std::size_t> marked;                   // numbers of copies
  std::vector<std::string> left;                     // roots that do not count
  Recopying::Told told = {};                         // of changes
  std::optional<Failure> silent;                     // a server that may have a root
  std::map<std::size_t, Failure> silent_servers;     // all of them

  bool has(std::size_t copies) const {
    return std::find(marked.begin(), marked.end(), copies) != marked.end();
  }
};

Kept::Look Kept::look(bool everywhere) const {
  const Placement& placement = context_.cluster.placement();
  Look look;
  look.at = context_.clock.steady();
  std::vector<Request> batch = recopying_.asks();
  const std::size_t marks = batch.size();
  std::vector<std::size_t> asked;  // 1: unmarked
  const auto ask = [&](std::size_t copies, std::size_t servers) {
    const std::string key = key_for(copies) + root_;
    for (const std::size_t server : placement.servers_of(key, servers)) {
      batch.push_back(Request::get(key).on(server));
      asked.push_back(copies);
    }
  };
  const std::size_t most = std::min(placement.pool().size(), most_copies);
  // Of several copies those that are not on the first server.
  ask(1, is_only(context_.copies) && !everywhere ? 1 : most);
  for (std::size_t copies = 2; copies <= most; ++copies) ask(copies, 2);
  std::vector<Reply> replies = context_.cluster.execute(batch);
  look.told = recopying_.told(std::span(replies).first(marks));
  // All of one number, because a copy may have missed what the others say.
  std::vector<std::vector<std::string>> roots(most + 1);
  for (std::size_t i = 0; has_left_ && i < asked.size(); ++i) {
    if (replies[marks + i].outcome == Outcome::hit) roots[asked[i]].push_back(replies[marks + i].value);
  }
  std::vector<char> has_left;
  for (std::size_t copies = 0; copies < roots.size(); ++copies)
    has_left.push_back(!roots[copies].empty() && has_left_(roots[copies], copies) ? 1 : 0);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    Reply& reply = replies[marks + i];
    bool hit = reply.outcome == Outcome::hit;
    if (reply.failed()) {
      const Failure failure = failure_of_read(context_.cluster, reply);
      if (!look.silent) look.silent = failure;
      look.silent_servers.emplace(reply.server, failure);
    }
    // Unmarked, one may be of several copies, and another of the single one that it is now.
    if (hit && has_left_ && (has_left[asked[i]] != 0 || has_left_(std::span(&reply.value, 1), asked[i]))) {
      look.left.push_back(std::move(reply.value));
      hit = false;
    }
    if (asked[i] == 1)
      look.unmarked.push_back(hit ? std::optional(std::move(reply.value)) : std::nullopt);
    else if (hit && !look.has(asked[i]))
      look.marked.push_back(asked[i]);
  }
  return look;
}

bool Kept::elsewhere(bool certainly) {
  if (!certainly && looked_at_ && context_.clock.steady() - *looked_at_ < look_holds) return false;
  // A look that refuses, or fails, allows nothing: whoever goes on all the same looks again.
  looked_at_.reset();
  const auto [now, waited] = settled_look(false);
  const bool moved = act_upon(now);
  looked_at_ = now.at;
  silent_.clear();
  for (const auto& [server, failure] : now.silent_servers) silent_.insert(server);
  return moved || waited;
}

std::optional<Failure> Kept::newly_silent(const Look& look) const {
  for (const auto& [server, failure] : look.silent_servers) {
    if (!silent_.contains(server)) return failure;
  }
  return std::nullopt;
}

void Kept::confirm(const std::function<bool()>& take_back) {
  if (is_unmarked()) return;
  const std::string what = created();
  const auto looked = attempt([&] {
    Look seen = look();
    for (int again = 1; again < most_looks && newly_silent(seen); ++again) seen = look();
    return seen;
  });
  // It is there, whatever the look failed with.
  if (looked.failure()) {
    throw UnknownOutcome(what + ", and the servers that may have it in another number do not answer",
                         looked.failure()->server());
  }
  const Look& now = looked.value();
  // What was created before somebody began to change its number goes along.
  const auto& change = now.told.change;
  if (change && change->mark.from == Place{context_.copies}) return;
  std::optional<std::size_t> other;
  for (const Place& place : places_of(now)) {
    if (place != Place{context_.copies}) other = place.copies;
  }
  if (!other && change) other = change->mark.from.copies;
  const auto silent = newly_silent(now);
  if (!other && !silent) return;
  if (!other)
    throw UnknownOutcome(what + ", and a server that may have it in another number does not answer",
                         silent->server());
  if (change) {
    expect_taken_back(*other, take_back);
    throw Contention("the " + structure_ + " '" + name_ + "' is being put elsewhere; try again");
  }
  refuse_created(*other, take_back);
}

std::string Kept::created() const {
  return "the " + structure_ + " '" + name_ + "' was created in " + in_words(context_.copies);
}

void Kept::refuse_created(std::size_t other, const std::function<bool()>& take_back) const {
  expect_taken_back(other, take_back);
  refuse(other);
}

void Kept::expect_taken_back(std::size_t other, const std::function<bool()>& take_back) const {
  const auto taken = attempt(take_back);
  if (!taken.failure() && taken.value()) return;
  throw UnknownOutcome(created() + ", and another is kept in " + in_words(other) +
                       "; fetch each with --copies" +
                       (taken.failure() ? std::string(": ") + taken.failure()->what() : std::string()));
}

// What is there while nothing is being changed; and whether something was, so that what was asked for before
// may be there now.
std::pair<Kept::Look, bool> Kept::settled_look(bool everywhere) {
  std::optional<std::uint32_t> gone;
  for (bool waited = false;; waited = true) {
    Look now = look(everywhere);
    const auto& [change, done] = now.told;
    if (change && change->number != gone) {
      gone = wait_for_change(*change);
    } else if (std::exchange(done_, done) == done) {
      // Perhaps it was put on the server that does not answer: who creates it anew would have a second one.
      if (done && now.silent && places_of(now).empty()) raise(*now.silent);
      return {std::move(now), waited};
    }
  }
}

bool Kept::act_upon(const Look& look) {
  left_.clear();
  const auto use = [&](const std::string& key) { return std::exchange(key_, key) != key; };
  const std::vector<Place> places = places_of(look);
  if (std::find(places.begin(), places.end(), Place{context_.copies}) != places.end())
    return use(key_for(context_.copies));
  if (places.empty()) {
    left_ = look.left;
    return false;
  }
  if (places.front().unmarked && unmarked_ == Unmarked::refused) refuse_unmarked();
  if (!places.front().unmarked || places.front().copies != context_.copies) refuse(places.front().copies);
  return use(unmarked_key());
}

std::vector<Kept::Place> Kept::places_of(const Look& look) const {
  std::vector<Place> places;
  if (const std::size_t copies = unmarked_copies(look.unmarked); copies > 1)
    places.push_back({copies, true});
  else if (look.unmarked.front())
    places.push_back({});
  for (const std::size_t copies : look.marked) places.push_back({copies});
  return places;
}

// Until the mark is gone or says something else; the number that it had last.
std::uint32_t Kept::wait_for_change(const Recopying::Seen& seen) {
  const SteadyTime begun = context_.clock.steady();
  SteadyTime since = begun;
  std::uint32_t number = seen.number;
  for (;;) {
    context_.clock.sleep_for(between_looks);
    const auto now = recopying_.look();
    if (!now) return number;
    const SteadyTime time = context_.clock.steady();
    if (now->number != number) since = time;
    number = now->number;
    std::string why;
    if (move_ && time - since > recopy_lease) {
      const auto completed = attempt([&] {
        Recopying change = recopying_;
        change.take_over(*now);
        move_(change);
      });
      if (!completed.failure()) return number;
      // Others may be completing it.
      if (completed.failure()->code() != ErrorCode::try_again)
        why = std::string(": ") + completed.failure()->what();
      since = context_.clock.steady();
    }
    if (time - begun > longest_wait || !why.empty()) {
      const std::size_t to = now->mark.to;
      std::string what = to == 0 ? "dropped" : "put into ";
      if (to != 0) what += in_words(to);
      throw Contention("the " + structure_ + " '" + name_ + "' is being " + what + "; try again" + why);
    }
  }
}

std::vector<Kept::Place> Kept::places(bool ours) {
  Look now = ours ? look(true) : settled_look(true).first;
  std::vector<Place> places = places_of(now);
  if (places.empty() && now.left.empty() && now.silent) raise(*now.silent);
  left_ = places.empty() ? std::move(now.left) : std::vector<std::string>();
  return places;
}

std::optional<Kept::Place> Kept::only(const std::vector<Place>& places) const {
  if (places.empty()) return std::nullopt;
  if (places.size() > 1) {
    throw Failure(ErrorCode::bad_data,
                  "there is one " + structure_ + " '" + name_ + "' in " + in_words(places[0].copies) +
                      " and another in " + in_words(places[1].copies) +
                      (structure_ == "counter" ? "; get each with --copies, remove each"
                                               : "; fetch each with --copies, drop it, which ends both,") +
                      " and put back what is to stay");
  }
  const bool same_keys = key_for(context_.copies) == unmarked_key();
  if (places.front().unmarked && same_keys && unmarked_ == Unmarked::continues) {
    throw Failure(ErrorCode::bad_data, "the " + structure_ + " '" + name_ +
                                           "' was written before 0.2, which is changed to one copy in two "
                                           "steps: to another number first");
  }
  return places.front();
}

Kept::Recopied Kept::recopy() {
  const auto found = places();
  const auto place = only(found);
  if (!place) return {};
  const bool converted = place->unmarked && unmarked_ == Unmarked::refused;
  if (place->copies != context_.copies || converted) change(*place, context_.copies, found);
  return {.found = true, .from = place->copies};
}

void Kept::change(const Place& from, std::size_t to, const std::vector<Place>& places) {
  Recopying change = recopying_;
  change.begin(from, to);
  // Others may have come to the end of a change since.
  if (to != 0 && this->places(true) != places) {
    change.finish();
    throw Contention("another client is changing the number of copies; try again");
  }
  move_(change);
}

bool Kept::drop() {
  // One that was left by who died is completed by looking.
  bool found = recopying_.look().has_value();
  for (auto left = places(); !left.empty(); left = places(), found = true) change(left.front(), 0, left);
  return found;
}

// How many there are at least; some may be lost.
std::size_t Kept::unmarked_copies(const std::vector<std::optional<std::string>>& roots) const {
  std::size_t copies = 1;
  for (std::size_t i = 1; i < roots.size(); ++i) {
    if (roots[i] && (!roots.front() || same_life_(*roots.front(), *roots[i]))) copies = i + 1;
  }
  return copies;
}

void Kept::refuse(std::size_t copies) const {
  // A limit's windows end by themselves.
  throw Failure(ErrorCode::bad_data,
                "the " + structure_ + " '" + name_ + "' is kept in " + in_words(copies) + "; give --copies " +
                    std::to_string(copies) +
                    (root_.starts_with(":limit:") ? ", or wait until its window ends"
                                                  : ", or change the number with recopy"));
}

void Kept::refuse_unmarked() const {
  throw Failure(ErrorCode::bad_data,
                "the " + structure_ + " '" + name_ +
                    "' was kept in several copies by an earlier version; convert it with: mcds " +
                    structure_ + " recopy " + name_ + " --copies " + std::to_string(context_.copies));
}

bool take_back(Cluster& cluster, std::span<const Request> gets, const IsOurs& is_ours, bool in_order) {
  const auto there = cluster.execute(gets);
  std::vector<Request> removals;
  for (std::size_t i = 0; i < gets.size(); ++i) {
    if (expect_read(cluster, there[i]).outcome == Outcome::miss) continue;
    if (there[i].cas.value == 0 || !is_ours(i, there[i])) return false;
    removals.push_back(Request::remove_if(gets[i].key, there[i].cas).on(there[i].server));
  }
  const std::size_t at_once = in_order ? 1 : removals.size();
  for (std::size_t from = 0; from < removals.size(); from += at_once) {
    for (const Reply& gone : cluster.execute(std::span(removals).subspan(from, at_once))) {
      if (expect(cluster, gone).outcome == Outcome::exists) return false;
    }
  }
  return true;
}

}  // namespace mcds
