#include "common/operations/move/move.hpp"

#include <array>
#include <deque>

#include "common/base/bounds.hpp"
#include "common/base/errors.hpp"
#include "common/operations/expiry.hpp"
#include "common/operations/map.hpp"
#include "common/operations/move/server_starts.hpp"
#include "common/operations/structure_merger.hpp"
#include "common/primitives/key_names.hpp"

namespace mcds {

namespace {

using moving::ClockLook, moving::Clocks, moving::Copied, moving::digest_of, moving::hash_of, moving::Kind;
using moving::Map, moving::MoveDecision, moving::MoveJournal, moving::SpilledRecord, moving::SpillFile;
using moving::StructureMerger;

constexpr std::size_t sample_size = 2000;
// Differences between the ticks of two clocks can change a ttl by this much.
constexpr std::int64_t tick_s = 2;

bool same_expiry(std::uint32_t one, std::uint32_t other) {
  if (one == 0 || other == 0) return one == other;
  return std::abs(static_cast<std::int64_t>(one) - static_cast<std::int64_t>(other)) <= tick_s;
}

// A token that no item has: what is there later is a client's.
constexpr CasUnique no_token{UINT64_MAX};
CasUnique token_of(const Reply& reply) {
  return reply.outcome == Outcome::miss ? no_token : reply.cas;
}

constexpr const char* ended_meanwhile =
    "the item expired or was removed on its new server at the same moment; run the move again";

}  // namespace

struct Move::Parts {
  Parts(const Context& from_context, Cluster& to_cluster, MoveOptions move_options, Cluster* by_others)
      : from(from_context),
        to(to_cluster),
        statistics(by_others == nullptr ? to : *by_others),
        options(std::move(move_options)),
        map(from.cluster.placement(), to.placement(), from.key_prefix, from.copies),
        move_journal(
            options.journal.empty() || options.dry_run
                ? MoveJournal()
                : MoveJournal(options.journal,
                              moving::identity_of(from.cluster.placement(), to.placement(), from.key_prefix),
                              &from.clock)),
        spill_files(options.dry_run ? 0 : Map::passes * move_journal.parts()),
        sample(from.cluster.placement().pool().size(), from.key_prefix,
               sample_size / from.cluster.placement().pool().size() + 1) {
    report.servers.resize(from.cluster.placement().pool().size());
  }

  SpillFile& spill_file(std::size_t pass, std::size_t part) {
    return spill_files[pass * move_journal.parts() + part];
  }

  void take(const LiveKey& key) {
    sample.take(key);
    MovedServer& server = report.servers[key.server];
    ++server.keys;
    const MoveDecision decision = map.of(key.key, key.server);
    // In the order of MoveDecision::What.
    constexpr std::array by_what{&MovedServer::stays, &MovedServer::arrived, &MovedServer::moves,
                                 &MovedServer::misplaced, &MovedServer::locks};
    ++(server.*by_what[static_cast<std::size_t>(decision.what)]);
    if (decision.what != MoveDecision::What::moves) return;
    MovedPair& pair = report.pairs[{key.server, decision.to}];
    ++pair.keys;
    pair.size_bytes += key.size_bytes;
    if (options.dry_run) return;
    SpilledRecord record = moving::record_of(key, decision);
    spill_file(decision.pass, move_journal.part_of(hash_of(key.key, decision.copy))).add(record);
  }

  // Refuses servers without cas. There a change since the copy cannot be detected or copied without a gap,
  // and the last step of the procedure would remove it.
  void expect_cas() const {
    const auto expect_of = [](Cluster& cluster, const std::set<std::size_t>& servers,
                              const std::string& advice) {
      std::vector<Request> requests;
      for (const std::size_t server : servers) requests.push_back(Request::stats(server, "settings"));
      for (const Reply& reply : cluster.execute(requests)) {
        if (reply.failed() || statistic(reply.value, "cas_enabled") != "no") continue;
        throw NotApplied(
            ErrorCode::refused,
            "nothing was copied: the server runs without cas (-C), so what clients write during the "
            "move would be lost; " +
                advice + "stop all writers during the move, and give --without-cas to every step",
            cluster.address_of(reply.server));
      }
    };
    std::set<std::size_t> old_servers, new_servers;
    for (const auto& [servers, pair] : report.pairs) {
      old_servers.insert(servers.first);
      new_servers.insert(servers.second);
    }
    expect_of(statistics, new_servers, "start it without -C, or ");
    expect_of(from.cluster, old_servers, "");
  }

  Context from;
  Cluster& to;
  Cluster& statistics;
  MoveOptions options;
  Map map;
  MoveJournal move_journal;
  std::vector<SpillFile> spill_files;  // by pass and part of the journal
  MoveReport report;
  PlacementSample sample;
};

// Copies items in overlapping batches. Each is read, then stored by add and read back in one trip.
class Move::Copier {
 public:
  Copier(Parts& parts, const Watch& watch)
      : parts_(parts),
        watch_(watch),
        valid_from_(parts.move_journal, parts.from.cluster, parts.statistics),
        roots_(parts.from, parts.to),
        old_clocks_(moving::read_clocks(parts.from.cluster, parts.from.clock)),
        new_clocks_(moving::read_clocks(parts.statistics, parts.from.clock)),
        limiter_(parts.options.rate, parts.from.clock.steady()),
        largest_batch_(limiter_.largest_batch()) {}

  // Takes a record, and starts a batch once enough are collected.
  void take(SpilledRecord record) {
    Item item;
    item.hash = hash_of(record.key, record.copy);
    if (const Copied* before = parts_.move_journal.find(item.hash)) item.before = *before;
    item.record = std::move(record);
    doubt(item);
    if (skipped(item)) {
      ++pair_of(item).already;
      return done(1);
    }
    item.key = parts_.map.wire_key(item.record.key, item.record.to);
    next_bytes_ += moving::reckoned_size(item.record.size_bytes);
    next_.push_back(std::move(item));
    if (next_.size() >= largest_batch_ || next_bytes_ >= batch_bytes) begin_reading();
  }

  // Finishes all records that were taken.
  void finish() {
    begin_reading();
    while (!reading_.empty()) begin_writing();
    while (!writing_.empty()) finish_writing();
  }

  // Takes records again whose new server evicted items meanwhile, after the others are finished.
  // forget_missing() records those that are missing there as lost.
  void take_again(SpilledRecord record) {
    Item item;
    item.hash = hash_of(record.key, record.copy);
    item.record = std::move(record);
    item.key = parts_.map.wire_key(item.record.key, item.record.to);
    next_bytes_ += moving::reckoned_size(item.record.size_bytes);
    next_.push_back(std::move(item));
    if (next_.size() >= largest_batch_ || next_bytes_ >= batch_bytes) forget_missing();
  }

  void forget_missing() {
    if (next_.empty()) return;
    limiter_.wait_for(next_.size(), parts_.from.clock);
    std::vector<Request> probes;
    for (const Item& item : next_) probes.push_back(Request::probe(item.key, item.record.to));
    const std::vector<Reply> replies = parts_.to.execute(probes);
    for (std::size_t i = 0; i < replies.size(); ++i) {
      if (replies[i].outcome == Outcome::miss)
        parts_.move_journal.add(next_[i].hash, {0, next_[i].record.cas, next_[i].record.expires_s});
    }
    parts_.move_journal.write();
    next_.clear();
    next_bytes_ = 0;
  }

 private:
  struct Item {
    SpilledRecord record;
    std::string key = {};  // in the new place
    moving::KeyHash hash = {};
    std::optional<Copied> before = {};  // the journal's record of it
    std::uint64_t digest = 0;           // of the value that was read
    Exptime exptime = Exptime::never();
    WallTime end = WallTime::max();  // by our clock
    bool only_touched = false;       // only its ttl changed since it was copied; the copy may have expired
    bool stores = true;              // false: its copy is only read, to be touched
    CasUnique new_cas = {};          // of the copy on the new server, as last seen
  };
  using Items = std::vector<Item>;
  struct Reading {
    Items items;
    WallTime asked;
    std::unique_ptr<Pending> pending;
  };
  struct Writing {
    Items items;
    std::unique_ptr<Pending> pending;
    std::uint64_t first = 0;  // journal index of the first item; the others follow
  };
  // The state of an item so far.
  enum class State { settled, declined, left, missing, changed, same, touched };

  MovedPair& pair_of(const Item& item) { return parts_.report.pairs[{item.record.from, item.record.to}]; }

  // Corrects the journal's record for servers that restarted since, or evicted the item. A run by the old
  // list copies lost items again. With `again` they are only counted, because clients of the new list may
  // have removed or changed them before.
  void doubt(Item& item) {
    if (!item.before) return;
    Copied& before = *item.before;
    if (before.index < valid_from_.old_servers[item.record.from]) before.cas = 0;
    const bool restarted = before.index < valid_from_.new_servers[item.record.to];
    if (restarted) before.stored.clear();
    if (!(restarted && before.settled) && !before.lost) return;
    before.settled = parts_.options.again;
    if (parts_.options.again) ++parts_.report.lost[item.record.to];
  }

  bool skipped(const Item& item) const {
    if (!item.before || !item.before->settled) return false;
    if (!parts_.options.again) return true;
    return item.before->cas != 0 && item.before->cas == item.record.cas &&
           same_expiry(item.before->expires_s, item.record.expires_s);
  }

  void begin_reading() {
    if (next_.empty()) return;
    limiter_.wait_for(next_.size(), parts_.from.clock);
    std::vector<Request> probes;
    probes.reserve(next_.size());
    for (const Item& item : next_) probes.push_back(Request::probe(item.record.key, item.record.from));
    reading_.push_back(
        {std::move(next_), parts_.from.clock.wall(), parts_.from.cluster.begin(std::move(probes))});
    next_.clear();
    next_bytes_ = 0;
    if (reading_.size() > 1) begin_writing();
  }

  // Converts an expiry by the old server's clock to our clock.
  WallTime end_of(std::uint32_t expires_s, std::size_t old_server) const {
    const ClockLook here = old_clocks_[old_server].value_or(ClockLook{});
    return WallTime(
        std::chrono::round<std::chrono::microseconds>(std::chrono::seconds(expires_s) - here.ahead));
  }

  // Sets the item's expiry. Returns false if it has expired. The new server gets an absolute time by its own
  // clock, so that the time of arrival does not matter.
  bool set_end(Item& item) const {
    if (item.record.expires_s == 0) return true;
    item.end = end_of(item.record.expires_s, item.record.from);
    const WallTime now = parts_.from.clock.wall();
    if (item.end <= now) return false;
    const auto& there = new_clocks_[item.record.to];
    const ClockLook here = old_clocks_[item.record.from].value_or(ClockLook{});
    const auto absolute =
        there ? Exptime::absolute(item.record.expires_s + moving::seconds_ahead(here, *there)) : std::nullopt;
    // Otherwise round to the nearest second, because a server's clock shows whole seconds.
    item.exptime = absolute ? *absolute : Exptime::at(item.end - std::chrono::milliseconds(500), now);
    return true;
  }

  // Returns true if the copy has expired or is about to.
  bool copy_has_ended(const Item& item) const {
    return item.before->expires_s != 0 && end_of(item.before->expires_s, item.record.from) <=
                                              parts_.from.clock.wall() + std::chrono::seconds(tick_s);
  }

  // Returns the request that stores the item, or nullopt if there is nothing to store.
  std::optional<Request> read(Item& item, Reply reply) {
    if (item.record.kind == Kind::journal && reply.outcome == Outcome::hit &&
        StructureMerger::has_segments(reply.value))
      reply = roots_.with_segments({item.record.key, item.record.from, item.record.to}, std::move(reply));
    if (reply.failed()) {
      left(item, failure_of(parts_.from.cluster, reply));
      return std::nullopt;
    }
    if (reply.outcome != Outcome::hit || !set_end(item)) {
      ++pair_of(item).gone;
      return std::nullopt;
    }
    if (item.record.kind == Kind::locklike && is_lock_value(reply.value)) {
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
    item.record.cas = reply.cas.value;
    item.stores = !same || copy_has_ended(item);
    if (!item.stores) return Request::probe(item.key, item.record.to);
    Request request = Request::add_and_get(item.key, std::move(reply.value), item.exptime).on(item.record.to);
    // A key with spaces or control characters is read, and then added if it is missing.
    if (!is_one_word(item.key)) request.op = Op::gets;
    request.flags = reply.flags;
    return request;
  }

  void begin_writing() {
    Reading reading = std::move(reading_.front());
    reading_.pop_front();
    std::vector<Reply> replies = reading.pending->finish();
    std::vector<SpilledRecord*> records;
    for (Item& item : reading.items) records.push_back(&item.record);
    moving::read_touched_again(parts_.from.cluster, old_clocks_, records, replies, reading.asked,
                               parts_.from.clock.wall());
    Writing writing;
    writing.first = parts_.move_journal.written();
    std::vector<Request> requests;
    requests.reserve(replies.size());
    writing.items.reserve(replies.size());
    for (std::size_t i = 0; i < replies.size(); ++i) {
      Item& item = reading.items[i];
      auto request = attempt([&] { return read(item, std::move(replies[i])); });
      if (const auto& failure = request.failure()) {
        if (failure->code() == ErrorCode::cannot_write) raise(*failure);
        left(item, *failure);
        continue;
      }
      if (!request.value()) continue;
      requests.push_back(std::move(*request.value()));
      parts_.move_journal.add(item.hash, {item.digest, item.record.cas, item.record.expires_s});
      writing.items.push_back(std::move(item));
    }
    // Record the items before they are sent. A crash after this leaves records of items that may not be
    // stored.
    parts_.move_journal.write();
    done(replies.size() - requests.size());
    if (requests.empty()) return;
    writing.pending = parts_.to.begin(std::move(requests));
    writing_.push_back(std::move(writing));
    if (writing_.size() > 1) finish_writing();
  }

  void finish_writing() {
    Writing writing = std::move(writing_.front());
    writing_.pop_front();
    Items& items = writing.items;
    const std::vector<Reply> replies = writing.pending->finish();
    require(replies.size() == items.size(), "each item on its way has a reply");
    const std::vector<State> states = settle(items, writing.pending->batch(), replies);
    // Items that are not settled are tried again by the next run.
    for (std::size_t i = 0; i < states.size(); ++i) {
      const std::uint64_t index = writing.first + i;
      if (states[i] == State::settled)
        parts_.move_journal.settle(items[i].hash, index, items[i].new_cas.value);
      if (states[i] == State::declined) parts_.move_journal.decline(items[i].hash, index);
    }
    parts_.move_journal.write();
    done(items.size());
  }

  // Reports that the item is not copied, with the reason.
  State left(const Item& item, const char* reason, std::string message) {
    ++pair_of(item).left;
    watch_.left({item.record.key, item.record.from, item.record.to, reason, std::move(message)});
    return State::left;
  }

  State left(const Item& item, const Failure& failure) {
    const char* reason = failure.code() == ErrorCode::refused           ? "refused"
                         : failure.code() == ErrorCode::bad_data        ? "damaged"
                         : failure.code() == ErrorCode::try_again       ? "busy"
                         : failure.code() == ErrorCode::unknown_outcome ? "unknown"
                                                                        : "unavailable";
    const std::string at = failure.server().empty() ? "" : failure.server() + ": ";
    return left(item, reason, at + failure.what());
  }

  // Counts an item that needs nothing more.
  State settled(const Item& item, std::uint64_t MovedPair::*counter) {
    ++(pair_of(item).*counter);
    return State::settled;
  }

  // Reports that `count` more items are finished, with any result.
  void done(std::size_t count) {
    parts_.report.done += count;
    watch_.progress(parts_.report.done);
  }

  // Sends the requests for the items in state `wanted` in one trip, and judges each by its replies.
  template <typename Ask, typename Judge>
  void ask_for(const std::vector<State>& states, State wanted, const Ask& ask, const Judge& judge) {
    std::vector<std::size_t> asked;
    std::vector<Request> requests;
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (states[i] != wanted) continue;
      asked.push_back(i);
      for (Request& request : ask(i)) requests.push_back(std::move(request));
    }
    if (asked.empty()) return;
    const std::vector<Reply> replies = parts_.to.execute(requests);
    const std::size_t each = replies.size() / asked.size();
    for (std::size_t k = 0; k < asked.size(); ++k)
      judge(asked[k], std::span(replies).subspan(k * each, each));
  }

  // Decides what happens to the items of a batch after the new servers have replied, and counts the results.
  // `batch` has an add_and_get for each item, or a gets or probe (see read()).
  std::vector<State> settle(Items& items, std::span<const Request> batch, std::span<const Reply> replies) {
    std::vector<State> states;
    states.reserve(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      items[i].new_cas = is_ours(items[i], replies[i]) ? token_of(replies[i]) : no_token;
      states.push_back(judge(items[i], batch[i], replies[i]));
    }
    const auto gets = [&](std::size_t i) { return Request::gets(items[i].key).on(items[i].record.to); };
    // An item that is missing although it was added: a separate add shows why.
    ask_for(
        states, State::missing,
        [&](std::size_t i) {
          Request add = batch[i];
          add.op = Op::add;
          return std::vector{std::move(add), gets(i)};
        },
        [&](std::size_t i, std::span<const Reply> of_item) {
          const bool refused = !of_item[0].failed() && of_item[0].outcome != Outcome::stored;
          items[i].new_cas = refused ? no_token : of_item[1].cas;
          states[i] = judge_added(items[i], batch[i], of_item[0], of_item[1]);
        });
    // The item changed on the old server since it was copied, but not on the new one.
    std::vector<Reply> now(items.size());
    ask_for(
        states, State::changed, [&](std::size_t i) { return std::vector{gets(i)}; },
        [&](std::size_t i, std::span<const Reply> of_item) { now[i] = of_item[0]; });
    ask_for(
        states, State::changed,
        [&](std::size_t i) {
          return std::vector{update_of(items[i], batch[i], now[i]), gets(i)};
        },
        [&](std::size_t i, std::span<const Reply> of_item) {
          items[i].new_cas = of_item[1].cas;
          states[i] = judge_update(items[i], batch[i], now[i], of_item[0]);
        });
    // The same value; its expiry may be another.
    ask_for(
        states, State::same,
        [&](std::size_t i) { return std::vector{Request::probe(items[i].key, items[i].record.to)}; },
        [&](std::size_t i, std::span<const Reply> of_item) {
          states[i] = judge_expiry(items[i], of_item[0]);
        });
    ask_for(
        states, State::touched,
        [&](std::size_t i) {
          return std::vector{Request::touch(items[i].key, items[i].exptime).on(items[i].record.to)};
        },
        [&](std::size_t i, std::span<const Reply> of_item) {
          states[i] = judge_touch(items[i], of_item[0]);
        });
    if (!parts_.options.journal.empty() && !parts_.options.without_cas) read_tokens(items, states);
    return states;
  }

  // Reads the tokens of settled copies that the replies did not show: those of a proxy never do, and those of
  // a new connection not before the server is known.
  void read_tokens(Items& items, std::vector<State> states) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (items[i].new_cas.value != 0) states[i] = State::left;
    }
    ask_for(
        states, State::settled,
        [&](std::size_t i) { return std::vector{Request::gets(items[i].key).on(items[i].record.to)}; },
        [&](std::size_t i, std::span<const Reply> of_item) { items[i].new_cas = token_of(of_item[0]); });
  }

  // Returns true if a move stored what was found, not a client that stored the same.
  static bool is_ours(const Item& item, const Reply& seen) {
    return seen.outcome != Outcome::hit || seen.created ||
           (item.before && item.before->may_be(digest_of(seen.value, seen.flags), seen.cas.value));
  }

  State judge(const Item& item, const Request& request, const Reply& seen) {
    if (seen.failed()) return left(item, failure_of(parts_.to, seen));
    const bool hit = seen.outcome == Outcome::hit;
    if (item.only_touched) {
      if (hit && !item.stores) return judge_expiry(item, seen);
      if (hit && digest_of(seen.value, seen.flags) == item.digest)
        return seen.created ? judge_found(item, request, seen) : State::same;
      if (!hit && item.stores) return State::missing;
      // Otherwise the new pool's clients changed or removed it.
      return settled(item, hit ? &MovedPair::already : &MovedPair::gone);
    }
    if (hit) return judge_found(item, request, seen);
    if (!has_ended(item)) return State::missing;
    return settled(item, &MovedPair::gone);
  }

  State judge_found(const Item& item, const Request& add, const Reply& seen) {
    const std::uint64_t digest = digest_of(seen.value, seen.flags);
    if (digest == item.digest) {
      // An interrupted run stored it, and its ttl may have changed since.
      if (!seen.created && item.before && !item.before->settled && item.before->may_be(digest))
        return State::same;
      return settled(item, seen.created ? &MovedPair::copied : &MovedPair::already);
    }
    if (item.before && item.before->may_be(digest)) return State::changed;
    return judge_other(item, add, seen);
  }

  State judge_added(const Item& item, const Request& add, const Reply& added, const Reply& seen) {
    const bool hit = seen.outcome == Outcome::hit;
    if (added.failed() && !hit) return left(item, failure_of(parts_.to, added));
    if (seen.failed()) return left(item, failure_of(parts_.to, seen));
    if (!hit && has_ended(item)) return settled(item, &MovedPair::gone);
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
  bool has_ended(const Item& item) const {
    return item.end != WallTime::max() && item.end <= parts_.from.clock.wall() + std::chrono::seconds(2);
  }

  // Handles a value on the new server that this move did not store: merges it or leaves the item.
  State judge_other(const Item& item, const Request& add, const Reply& seen) {
    const Kind kind = item.record.kind;
    if (!StructureMerger::is_of(kind, add.value) || !StructureMerger::is_of(kind, seen.value)) {
      left(item, "differs",
           item.before ? "the item was changed on both servers since it was copied; the new value was kept"
                       : "the new server has another value, which was kept");
      return State::declined;
    }
    const auto merged = attempt([&] {
      roots_.merge({item.record.key, item.record.from, item.record.to}, kind, add.value);
    });
    if (merged.failure()) return left(item, *merged.failure());
    return settled(item, &MovedPair::merged);
  }

  Request update_of(const Item& item, const Request& add, const Reply& now) const {
    const bool no_cas = now.cas.value == 0;
    const bool still = now.outcome == Outcome::hit &&
                       item.before->may_be(digest_of(now.value, now.flags), now.cas.value) &&
                       (!no_cas || parts_.options.without_cas);
    // An item that is no longer the copy must stay, so a get, which changes nothing, replaces the write.
    if (!still) return Request::get(item.key).on(item.record.to);
    Request request = no_cas ? Request::set(item.key, add.value, item.exptime)
                             : Request::compare_and_set(item.key, add.value, item.exptime, now.cas);
    request.flags = add.flags;
    return std::move(request).on(item.record.to);
  }

  State judge_update(const Item& item, const Request& add, const Reply& now, const Reply& changed) {
    if (changed.failed()) return left(item, failure_of(parts_.to, changed));
    if (changed.outcome == Outcome::stored) return settled(item, &MovedPair::updated);
    if (now.outcome == Outcome::miss || changed.outcome == Outcome::not_found)
      return left(item, "busy", ended_meanwhile);
    if (now.cas.value == 0 && !parts_.options.without_cas)
      return left(
          item, "without_cas",
          "the new server runs without cas (-C), so the copy there cannot be compared and replaced; stop the "
          "writers and give --without-cas");
    return judge_other(item, add, now);
  }

  State judge_expiry(const Item& item, const Reply& seen) {
    if (seen.failed()) return left(item, failure_of(parts_.to, seen));
    if (seen.outcome != Outcome::hit) return judge_touch(item, seen);
    const bool same = digest_of(seen.value, seen.flags) == item.digest;
    return same && must_touch(item, seen) ? State::touched : settled(item, &MovedPair::already);
  }

  // Returns true if the copy ends before the item. A copy that ends after it is shortened only if it still
  // ends as it was copied: clients of the new list may have extended it. If the server reports no ttl, the
  // item's counts.
  bool must_touch(const Item& item, const Reply& seen) const {
    if (!seen.age.ttl) return true;
    const auto is_before = [](WallTime one, WallTime other) {
      return one < other && (other == WallTime::max() || one + std::chrono::seconds(tick_s) < other);
    };
    const WallTime ends =
        seen.age.ttl->count() < 0 ? WallTime::max() : parts_.from.clock.wall() + *seen.age.ttl;
    const std::uint32_t copied = item.before->expires_s;
    const WallTime as_copied = copied == 0 ? WallTime::max() : end_of(copied, item.record.from);
    return is_before(ends, item.end) ||
           (is_before(item.end, ends) && !is_before(as_copied, ends) && !is_before(ends, as_copied));
  }

  State judge_touch(const Item& item, const Reply& touched) {
    if (touched.failed()) return left(item, failure_of(parts_.to, touched));
    if (touched.outcome != Outcome::stored && !has_ended(item)) return left(item, "busy", ended_meanwhile);
    return settled(item, touched.outcome == Outcome::stored ? &MovedPair::updated : &MovedPair::gone);
  }

  Parts& parts_;
  const Watch& watch_;
  const moving::ValidFrom valid_from_;
  StructureMerger roots_;
  Clocks old_clocks_, new_clocks_;
  RateLimiter limiter_;
  std::size_t largest_batch_;
  Items next_;
  std::size_t next_bytes_ = 0;
  std::deque<Reading> reading_;
  std::deque<Writing> writing_;
};

Move::Move(const Context& from, Cluster& to, MoveOptions options, Cluster* statistics)
    : parts_(std::make_unique<Parts>(from, to, std::move(options), statistics)) {
  if (parts_->options.again && !parts_->options.dry_run && !parts_->move_journal.has_history())
    throw InvalidInput("--again needs the --journal of the first run");
}

Move::~Move() = default;

bool Move::continues() const {
  return parts_->move_journal.has_history();
}

const MoveReport& Move::report() const {
  return parts_->report;
}

const std::vector<KeyLocation>& Move::sample() const {
  return parts_->sample.keys();
}

std::uint64_t Move::list(const ReadKeys& read) {
  Parts& parts = *parts_;
  KeySelection selection = parts.options.selection;
  selection.key_prefix = parts.from.key_prefix;
  parts.report.dumps = read([&](const LiveKey& key) {
    if (selection.has(key.key)) parts.take(key);
    return true;
  });
  if (!parts.options.without_cas) parts.expect_cas();
  std::uint64_t count = 0;
  for (const auto& [servers, pair] : parts.report.pairs) count += pair.keys;
  return count;
}

const MoveReport& Move::copy(const Watch& watch) {
  Parts& parts = *parts_;
  const moving::ServerRestarts restarts(parts.statistics);
  const SteadyTime started = parts.from.clock.steady();
  parts.report.lost.assign(parts.to.placement().pool().size(), 0);
  Copier copier(parts, watch);
  for (std::size_t pass = 0; pass < Map::passes; ++pass) {
    for (std::size_t part = 0; part < parts.move_journal.parts(); ++part) {
      parts.move_journal.load(part);
      parts.spill_file(pass, part).for_each([&](SpilledRecord record) { copier.take(std::move(record)); });
    }
    copier.finish();
  }
  parts.report.copying = parts.from.clock.steady() - started;
  parts.report.restarts = restarts.look();
  if (parts.options.journal.empty()) return parts.report;
  for (SpillFile& spill_file : parts.spill_files) {
    spill_file.for_each([&](SpilledRecord record) {
      const auto& event = parts.report.restarts[record.to];
      if (event && event->evicted > 0) copier.take_again(std::move(record));
    });
  }
  copier.forget_missing();
  return parts.report;
}

}  // namespace mcds
