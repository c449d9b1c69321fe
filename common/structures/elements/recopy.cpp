// Putting a table or hash into another number of copies: the steps of common/primitives/recopying.hpp for elements.
//
// The mark names a batch of elements: `<mover>`, the batch's number, then a line for each. Who takes over finds each
//   under the old keys     and goes on as if nobody had begun. From several copies the newest counts, the staged value
//                          among them: a copy that is left may have missed what was removed from the others.
//   nowhere, and staged    From several copies: a mover removed it, because a client's removal leaves its word. From one: a
//                          mover did if it said so on that server before (begun_key), or if the mark says that it was in
//                          doubt already; else a client did. Into one copy: if the mover before said on that server that
//                          all was stored (stored_key), a client has removed it there since.
//   nowhere, not staged    it was stored under the new keys, or removed by a client
// From one copy what is still there first gets another cas unique, so that nothing the mover before may still send removes it:
// from then on, what is missing was removed by a client.
// The new index says that it is unfinished, from before the first name is listed until the old one is gone: a fetch under
// the new number waits. So the index is there even if it has nothing to list, and an empty structure keeps its number.
// Invariant: an element that a client has acknowledged under the new number was stored there by a mover, or created after
// the change; nothing that is stored later replaces it: into several copies because its version is higher, into one because
// what exists is not stored over.
#include <algorithm>
#include <set>
#include <unordered_set>
#include <utility>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/json.hpp"
#include "common/primitives/key_names.hpp"
#include "common/structures/elements/elements.hpp"

namespace mcds {

namespace {

constexpr std::size_t first_names = 16;  // they show how large values are
constexpr std::size_t names_at_once = 500;
constexpr std::size_t name_bytes_at_once = 128 * 1024;
constexpr std::size_t value_bytes_at_once = 2 << 20;
constexpr int most_rounds = 100;
constexpr auto staged_for = std::chrono::hours(24);

void expect_all(std::span<const std::optional<Failure>> failures) {
  for (const auto& failure : failures) {
    if (failure) throw Failure(*failure);
  }
}

void expect_read(const VersionedItem& item) {
  for (const VersionedCopy& copy : item.copies) {
    if (copy.failure) throw Failure(*copy.failure);
  }
}

}  // namespace

class Elements::Recopier {
 public:
  Recopier(Recopying& recopying, const std::string& structure, const std::string& name,
           const Journal::Options& options)
      : recopying_(recopying),
        old_(recopying.old_context(), structure, name, options),
        new_(recopying.new_context(), structure, name, options),
        safe_(recopying.safe_context()) {
    if (recopying.mark().from_unmarked) {
      old_.kept_.use_unmarked();
      old_.take_keys();
    }
  }

  void run() {
    first_listed_at_ = old_.context_.clock.steady();
    resume();
    const std::vector<std::string> listed = new_names();
    if (damaged_ && !recopying_.taken_over()) {
      recopying_.finish();
      throw Failure(ErrorCode::bad_data,
                    "a part of the index is lost, so nothing was done; see the verb check, and --accept");
    }
    say_unfinished(true);
    list(listed);
    recopying_.settle();
    list(new_names());
    name_shards();
    std::vector<std::string> absent;
    move(std::exchange(names_, {}), &absent);
    // Whoever listed one of these before the mark was there has written it by now, or never will.
    move(absent, nullptr);
    for (int round = 0; !remove_index(); ++round) {
      if (round == most_rounds) throw Contention("other clients keep changing it; try again");
    }
    say_unfinished(false);
    std::vector<Request> removals;
    for (std::size_t server = 0; server < safe_.cluster.placement().pool().size(); ++server) {
      if (!from_several()) removals.push_back(Request::remove(begun_key(recopying_.mark().mover)).on(server));
      if (!to_several()) removals.push_back(Request::remove(stored_key(recopying_.mark().mover)).on(server));
    }
    if (!removals.empty()) static_cast<void>(safe_.cluster.execute(removals));
  }

 private:
  // An element on its way: staged, and named in the mark.
  struct Piece {
    std::string name;
    std::uint32_t number = 0;      // its version under the new keys; with one copy there is none
    std::uint32_t old_number = 0;  // the value's under the old keys, likewise
    std::string value = {};
    VersionedItem old = {};
    bool staged = false;
    bool stored = false;    // by a mover before this one, if it removed it
    bool in_doubt = false;  // perhaps removed from the old keys by a mover
    bool ready = false;     // certainly
    bool gone = false;      // a client removed it, or there is nothing more to do
  };

  bool to_several() const { return new_.copies_.size() > 1; }
  bool from_several() const { return old_.copies_.size() > 1; }

  // Those that the old index lists and that were not met before.
  std::vector<std::string> new_names() {
    std::vector<std::optional<ElementIndex::Look>> looks(old_.copies_.size());
    expect_all(old_.copies_.run([&](std::size_t copy) { looks[copy].emplace(old_.indexes_[copy]->look()); }));
    std::vector<std::string> found;
    for (std::size_t shard = 0; shard < index_shards; ++shard) {
      std::vector<std::vector<std::string>> lists(looks.size());
      expect_all(old_.copies_.run([&](std::size_t copy) { lists[copy] = looks[copy]->take(shard); }));
      recopying_.keep_alive();
      for (const auto& names : lists) {
        for (const std::string& name : names) {
          if (known_.insert(name).second) found.push_back(name);
        }
      }
      const auto any = [&](ElementIndex::Look::Shard state) {
        return std::any_of(looks.begin(), looks.end(),
                           [&](const auto& look) { return look->state(shard) == state; });
      };
      damaged_ = damaged_ || (any(ElementIndex::Look::Shard::lost) && !any(ElementIndex::Look::Shard::whole));
    }
    names_.insert(names_.end(), found.begin(), found.end());
    return found;
  }

  // Who reads the new index meanwhile waits. With it the new index exists, even if it has nothing to list.
  void say_unfinished(bool unfinished) {
    recopying_.keep_alive();
    expect_all(new_.copies_.run([&](std::size_t copy) { new_.indexes_[copy]->say_unfinished(unfinished); }));
  }

  void list(const std::vector<std::string>& names) {
    for (std::size_t from = 0; from < names.size(); from += names_at_once) {
      recopying_.keep_alive();
      std::vector<const std::string*> some;
      for (std::size_t i = from; i < std::min(names.size(), from + names_at_once); ++i)
        some.push_back(&names[i]);
      for (const auto& copies : new_.list(some)) expect_all(copies);
    }
    for (const auto& index : new_.indexes_) {
      const std::vector<Request> marks = index->take_marks();
      if (!marks.empty()) static_cast<void>(new_.context_.cluster.execute(marks));
    }
  }

  // Those that a mover before this one created, too: the manifest is what tells that the structure is there.
  void name_shards() {
    expect_all(new_.copies_.run([&](std::size_t copy) {
      if (!new_.indexes_[copy]->look().manifest_whole())
        throw Contention("the new index could not be completed; try again");
    }));
  }

  // What a mover before this one may have removed already.
  void resume() {
    std::vector<Piece> pieces = named_in_mark();
    if (pieces.empty()) return;
    std::vector<std::string> names;
    const std::string mover(split(recopying_.mark().moving, '\n').front());
    const auto began = from_several() ? std::set<std::size_t>() : servers_that_say(begun_key(mover));
    const auto stored = to_several() ? std::set<std::size_t>() : servers_that_say(stored_key(mover));
    for (Piece& piece : pieces) {
      piece.in_doubt = piece.staged && (piece.in_doubt || began.contains(server_of(old_, piece)));
      piece.stored = stored.contains(server_of(new_, piece));
      names.push_back(piece.name);
    }
    list(names);
    if (!from_several()) take_hold(pieces);
    settle(std::move(pieces), nullptr, true);
  }

  // With one copy: gives what is still there another cas unique, so that what the mover before removes late is not it.
  void take_hold(std::vector<Piece>& pieces) {
    std::vector<Request> gets;
    for (const Piece& piece : pieces) gets.push_back(Request::gets(old_.key_of(piece.name)));
    Cluster& cluster = old_.context_.cluster;
    const std::vector<Reply> found = cluster.execute(gets);
    std::vector<Request> batch;
    std::vector<Piece*> of;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (mcds::expect_read(cluster, found[i]).outcome != Outcome::hit) continue;
      batch.push_back(Request::compare_and_set(gets[i].key, found[i].value, Exptime::never(), found[i].cas));
      batch.back().flags = found[i].flags;
      of.push_back(&pieces[i]);
    }
    const std::vector<Reply> replies = cluster.execute(batch);
    for (std::size_t i = 0; i < replies.size(); ++i) {
      const Outcome outcome = expect(cluster, replies[i]).outcome;
      if (outcome == Outcome::stored || outcome == Outcome::exists) of[i]->in_doubt = false;
    }
  }

  // `<mover>`, a number that is another for each batch, then `<number> <old number> <in doubt> <name>` a line.
  std::vector<Piece> named_in_mark() {
    std::vector<Piece> pieces;
    auto lines = split(recopying_.mark().moving, '\n');
    std::vector<Request> gets;
    for (std::size_t i = 2; i < lines.size(); ++i) {
      const auto words = split(lines[i], ' ');
      if (words.size() < 4) continue;
      const std::size_t before = words[0].size() + words[1].size() + words[2].size() + 3;
      auto name = unquote_bytes(lines[i].substr(before));
      const auto number = parse_u64(words[0]);
      const auto old_number = parse_u64(words[1]);
      if (!name || !number || !old_number) continue;
      gets.push_back(Request::get(staging_key(lines[0], *name)));
      pieces.push_back({.name = std::move(*name),
                        .number = static_cast<std::uint32_t>(*number),
                        .old_number = static_cast<std::uint32_t>(*old_number),
                        .in_doubt = words[2] == "1"});
    }
    CopyReplies replies = execute_copies(safe_, gets);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      for (Reply& reply : replies[i]) {
        mcds::expect_read(safe_.cluster, reply);
        if (reply.outcome != Outcome::hit || pieces[i].staged) continue;
        pieces[i].value = std::move(reply.value);
        pieces[i].staged = true;
      }
    }
    return pieces;
  }

  // From one copy: an item that is stored on every server before anything is removed there, by the same connection. Where
  // there is none, nothing was, and what is missing was removed by clients.
  std::string begun_key(std::string_view mover) const { return recopying_.staging_key(mover); }
  // Into one copy: one that is stored after everything was. Where it is, what is missing was removed by clients.
  std::string stored_key(std::string_view mover) const { return recopying_.staging_key(mover) + "::"; }

  std::set<std::size_t> servers_that_say(const std::string& key) {
    std::set<std::size_t> found;
    const std::string batch = digest128(recopying_.mark().moving);
    std::vector<Request> gets;
    for (std::size_t server = 0; server < safe_.cluster.placement().pool().size(); ++server)
      gets.push_back(Request::get(key).on(server));
    for (const Reply& reply : safe_.cluster.execute(gets)) {
      if (mcds::expect_read(safe_.cluster, reply).outcome == Outcome::hit && reply.value == batch)
        found.insert(reply.server);
    }
    return found;
  }

  // One request for each server of these pieces.
  void say(const std::string& key, const std::set<std::size_t>& servers, std::vector<Request>& batch) const {
    const Exptime exptime = Exptime::after(staged_for, safe_.clock.wall());
    for (const std::size_t server : servers)
      batch.push_back(Request::set(key, digest128(recopying_.mark().moving), exptime).on(server));
  }

  std::size_t server_of(const Elements& elements, const Piece& piece) const {
    return safe_.cluster.placement().server_of(elements.key_of(piece.name));
  }

  std::string staging_key(std::string_view mover, std::string_view name) const {
    return element_key(recopying_.staging_key(mover), name);
  }

  // `absent`: those that were not there.
  void move(const std::vector<std::string>& names, std::vector<std::string>* absent) {
    std::vector<Piece> pieces;
    std::size_t bytes = 0;
    for (const std::string& name : names) {
      pieces.push_back({.name = name});
      bytes += name.size();
      if (pieces.size() < largest_ && bytes < name_bytes_at_once) continue;
      settle(std::exchange(pieces, {}), absent);
      bytes = 0;
    }
    if (!pieces.empty()) settle(std::move(pieces), absent);
  }

  // Until each is under the new keys, or nowhere. `together`: nothing may leave the mark before it is.
  void settle(std::vector<Piece> pieces, std::vector<std::string>* absent, bool together = false) {
    std::vector<std::string> later;
    for (int round = 0; !pieces.empty(); ++round) {
      if (round == most_rounds) throw Contention("other clients keep changing an element; try again");
      if (!read(pieces) && !together) {
        // Too much at once.
        largest_ = std::max<std::size_t>(1, pieces.size() / 2);
        for (Piece& piece : pieces) later.push_back(std::move(piece.name));
        break;
      }
      if (!together) postpone(pieces, later);
      if (absent != nullptr) {
        for (const Piece& piece : pieces) {
          if (piece.gone) absent->push_back(piece.name);
        }
      }
      std::erase_if(pieces, [](const Piece& piece) { return piece.gone; });
      if (pieces.empty()) break;
      stage(pieces);
      remove(pieces);
      publish(pieces);
      std::erase_if(pieces, [](const Piece& piece) { return piece.ready || piece.gone; });
    }
    if (!later.empty()) move(later, absent);
  }

  // Those that are too large to go with those before them.
  static void postpone(std::vector<Piece>& pieces, std::vector<std::string>& later) {
    std::size_t bytes = 0;
    std::size_t count = 0;
    while (count < pieces.size() && (count == 0 || bytes + pieces[count].value.size() <= value_bytes_at_once))
      bytes += pieces[count++].value.size();
    for (std::size_t i = count; i < pieces.size(); ++i) later.push_back(std::move(pieces[i].name));
    pieces.resize(count);
  }

  // False: too much was asked for at once.
  bool read(std::vector<Piece>& pieces) {
    std::vector<Request> batch;
    std::vector<std::string> keys;
    for (const Piece& piece : pieces) {
      batch.push_back(Request::gets(old_.key_of(piece.name)));
      keys.push_back(new_.key_of(piece.name));
    }
    const CopyReplies replies = execute_copies(old_.context_, batch);
    std::vector<VersionedItem> found(pieces.size());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      found[i] = old_.versions_.item_of(batch[i].key, replies[i]);
      const auto flood = [](const VersionedCopy& copy) { return copy.flood; };
      if (pieces.size() > 1 && std::any_of(found[i].copies.begin(), found[i].copies.end(), flood))
        return false;
    }
    std::vector<VersionedItem> targets = read_targets(keys);
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      Piece& piece = pieces[i];
      const auto before = std::exchange(piece.old, std::move(found[i]));
      expect_read(piece.old);
      expect_read(targets[i]);
      // What compares with another value is executed late in vain.
      if (!from_several() && !before.copies.empty() && piece.old.copies[0].found &&
          !(piece.old.copies[0].cas == before.copies[0].cas))
        piece.in_doubt = false;
      take(piece, targets[i]);
      bytes += piece.value.size();
    }
    remove_strays(pieces, targets);
    const std::size_t fitting = value_bytes_at_once / (bytes / pieces.size() + 1);
    largest_ = std::clamp<std::size_t>(fitting, 1, std::min(names_at_once, 4 * largest_));
    return true;
  }

  // What is under the new keys.
  std::vector<VersionedItem> read_targets(const std::vector<std::string>& keys) {
    if (to_several()) return new_.versions_.read(keys);
    std::vector<Request> batch;
    for (const std::string& key : keys) batch.push_back(Request::gets(key));
    const std::vector<Reply> replies = new_.context_.cluster.execute(batch);
    std::vector<VersionedItem> targets;
    for (std::size_t i = 0; i < keys.size(); ++i)
      targets.push_back(new_.versions_.item_of(keys[i], std::span(&replies[i], 1)));
    return targets;
  }

  void take(Piece& piece, const VersionedItem& target) {
    const VersionedCopy* newest = piece.old.newest();
    if (newest == nullptr) {
      // With several copies a removal leaves its word behind.
      piece.gone = !piece.staged || piece.stored || (!from_several() && !piece.in_doubt);
      return;
    }
    // Of several copies the one that is left may have missed what a mover removed from the others.
    const VersionedCopy staged{.found = true, .number = piece.old_number, .value = piece.value};
    const VersionedWrite left{
        .item = &piece.old, .number = newest->number, .removed = newest->removed, .value = newest->value};
    if (from_several() && piece.staged && !left.lacks(staged)) return;
    piece.gone = newest->removed;
    if (piece.gone) return;
    piece.value = newest->value;
    piece.old_number = newest->number;
    const auto next = to_several() ? target.next_number() : std::optional<std::uint32_t>(0);
    if (!next) throw no_version_left(target.key);
    piece.number = *next;
  }

  // What is under the new keys already, and not because a mover stored it there: it was executed late, or written by somebody
  // who stood still during an earlier change.
  void remove_strays(const std::vector<Piece>& pieces, std::vector<VersionedItem>& targets) {
    std::vector<VersionedItem*> strays;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const bool here = pieces[i].old.live();
      // Versions tell which is newer.
      const bool harmful = here ? !to_several() : pieces[i].gone;
      if (harmful && targets[i].live()) strays.push_back(&targets[i]);
    }
    if (strays.empty() || recopying_.taken_over()) return;
    recopying_.check();
    if (to_several()) {
      std::vector<VersionedWrite> writes;
      for (VersionedItem* stray : strays) {
        if (const auto number = stray->next_number())
          writes.push_back({.item = stray, .number = *number, .removed = true, .once = true});
      }
      return new_.versions_.write(writes);
    }
    std::vector<Request> batch;
    for (const VersionedItem* stray : strays)
      batch.push_back(Request::remove_if(stray->key, stray->copies.front().cas));
    for (const Reply& reply : new_.context_.cluster.execute(batch)) expect(new_.context_.cluster, reply);
  }

  void stage(std::vector<Piece>& pieces) {
    const std::string mover = recopying_.mark().mover;
    const Exptime exptime = Exptime::after(staged_for, safe_.clock.wall());
    std::string moving = mover + '\n' + std::to_string(++batches_);
    std::vector<Request> sets;
    for (Piece& piece : pieces) {
      append_all(moving, {"\n", std::to_string(piece.number), " ", std::to_string(piece.old_number),
                          piece.in_doubt ? " 1 " : " 0 ", quote_bytes(piece.name)});
      sets.push_back(Request::set(staging_key(mover, piece.name), piece.value, exptime));
      piece.staged = true;
    }
    const CopyReplies replies = execute_copies(safe_, sets);
    for (std::size_t i = 0; i < replies.size(); ++i) {
      for (const Reply& reply : replies[i]) expect(safe_.cluster, reply);
    }
    recopying_.write(std::move(moving));
  }

  // Each copy by compare-and-delete.
  void remove(std::vector<Piece>& pieces) {
    std::vector<Request> batch;
    std::vector<Piece*> of;
    if (!from_several()) say(begun_key(recopying_.mark().mover), servers_of(old_, pieces), batch);
    const std::size_t first = batch.size();
    for (Piece& piece : pieces) {
      piece.ready = true;
      for (const VersionedCopy& copy : piece.old.copies) {
        if (!copy.found) continue;
        if (copy.cas.value == 0)
          throw NotApplied(ErrorCode::refused, "the server does not support cas; start memcached without -C",
                           safe_.cluster.address_of(copy.server));
        batch.push_back(Request::remove_if(piece.old.key, copy.cas).on(copy.server));
        of.push_back(&piece);
      }
    }
    const std::vector<Reply> replies = safe_.cluster.execute(batch);
    bool by_another = false;
    for (std::size_t i = first; i < replies.size(); ++i) {
      Piece& piece = *of[i - first];
      switch (replies[i].outcome) {
        case Outcome::deleted:
          break;
        case Outcome::not_found:
          // By a client, or by another mover, who then has the mark.
          by_another = true;
          piece.gone = !from_several() && !piece.in_doubt;
          break;
        case Outcome::exists:
          piece.ready = piece.in_doubt = false;
          break;
        default:
          piece.ready = false;
          piece.in_doubt = true;
          if (!replies[i].unknown()) expect(safe_.cluster, replies[i]);
      }
    }
    std::vector<const Piece*> gone;
    for (Piece& piece : pieces) {
      piece.ready = piece.ready && !piece.gone;
      if (piece.gone) gone.push_back(&piece);
    }
    // From now on nobody thinks that a mover removed them.
    unstage(gone);
    if (by_another) recopying_.check();
  }

  std::set<std::size_t> servers_of(const Elements& elements, const std::vector<Piece>& pieces) const {
    std::set<std::size_t> servers;
    for (const Piece& piece : pieces) servers.insert(server_of(elements, piece));
    return servers;
  }

  void unstage(const std::vector<const Piece*>& pieces) {
    if (pieces.empty()) return;
    std::vector<Request> batch;
    for (const Piece* piece : pieces)
      batch.push_back(Request::remove(staging_key(recopying_.mark().mover, piece->name)));
    static_cast<void>(execute_copies(safe_, batch));
  }

  void publish(std::vector<Piece>& pieces) {
    std::vector<std::string> names;
    std::vector<const Piece*> ready;
    for (const Piece& piece : pieces) {
      if (!piece.ready) continue;
      ready.push_back(&piece);
      names.push_back(piece.name);
    }
    if (ready.empty()) return;
    // A compaction may have dropped names that were listed long before.
    if (new_.context_.clock.steady() - first_listed_at_ > ElementIndex::grace / 4) list(names);
    if (to_several())
      publish_copies(ready);
    else
      publish_only(ready, pieces);
    unstage(ready);
  }

  void publish_copies(const std::vector<const Piece*>& ready) {
    std::vector<std::string> keys;
    for (const Piece* piece : ready) keys.push_back(new_.key_of(piece->name));
    std::vector<VersionedItem> items = new_.versions_.read(keys);
    std::vector<VersionedWrite> writes;
    for (std::size_t i = 0; i < items.size(); ++i)
      writes.push_back({.item = &items[i], .number = ready[i]->number, .value = ready[i]->value});
    recopying_.keep_alive();
    new_.versions_.write(writes);
    for (const VersionedItem& item : items) expect_read(item);
  }

  void publish_only(const std::vector<const Piece*>& ready, const std::vector<Piece>& pieces) {
    std::vector<Request> batch;
    for (const Piece* piece : ready)
      batch.push_back(Request::add(new_.key_of(piece->name), piece->value, Exptime::never()));
    const auto removed_or_not = [](const Piece& piece) { return !piece.ready && piece.in_doubt; };
    if (std::none_of(pieces.begin(), pieces.end(), removed_or_not))
      say(stored_key(recopying_.mark().mover), servers_of(new_, pieces), batch);
    recopying_.keep_alive();
    const std::vector<Reply> replies = new_.context_.cluster.execute(batch);
    for (std::size_t i = 0; i < ready.size(); ++i) expect(new_.context_.cluster, replies[i]);
  }

  // Each part once all that it lists is known, the manifest last. True: there is none left.
  bool remove_index() {
    std::vector<std::vector<Request>> removals(old_.copies_.size());
    expect_all(old_.copies_.run([&](std::size_t copy) {
      std::vector<Request> gets;
      for (std::string& key : old_.indexes_[copy]->keys()) gets.push_back(Request::gets(std::move(key)));
      std::reverse(gets.begin(), gets.end());
      Cluster& cluster = old_.copies_.at(copy).cluster;
      const auto replies = cluster.execute(gets);
      for (std::size_t i = 0; i < gets.size(); ++i) {
        if (mcds::expect_read(cluster, replies[i]).outcome == Outcome::hit)
          removals[copy].push_back(Request::remove_if(gets[i].key, replies[i].cas));
      }
    }));
    const auto none = [](const auto& requests) { return requests.empty(); };
    if (std::all_of(removals.begin(), removals.end(), none)) return true;
    list(new_names());
    move(std::exchange(names_, {}), nullptr);
    expect_all(old_.copies_.run([&](std::size_t copy) {
      Context& context = old_.copies_.at(copy);
      for (const Request& request : removals[copy]) {
        const auto contents = Journal(context, request.key, old_.options_).read();
        const Reply reply = context.cluster.execute(request);
        if (reply.failed()) expect(context.cluster, reply);
        std::vector<Request> batch;
        for (const std::string& segment : contents.segments)
          batch.push_back(Request::remove(segment).lying_with(request.key));
        if (reply.outcome == Outcome::deleted && !batch.empty())
          static_cast<void>(context.cluster.execute(batch));
      }
    }));
    return false;
  }

  Recopying& recopying_;
  Elements old_, new_;
  Context safe_;
  std::unordered_set<std::string> known_;
  std::vector<std::string> names_;  // met since they were last taken
  SteadyTime first_listed_at_{};
  bool damaged_ = false;  // something of the old index is lost in every copy
  std::size_t largest_ = first_names;
  std::uint64_t batches_ = 0;
};

void Elements::complete_recopy(const Context& context, const std::string& structure, const std::string& name,
                               const Journal::Options& options, const Recopying::Seen& left) {
  Recopying recopying(context, structure, name);
  recopying.take_over(left);
  Recopier(recopying, structure, name, options).run();
  recopying.finish();
}

bool Elements::lists_nothing(const Kept::Place& place) const {
  Context context = context_;
  context.copies = place.copies;
  const auto listing = Elements(context, structure_, name_, options_).fetch([](Found&) {});
  return listing.complete() && listing.present == 0;
}

void Elements::change_from(const Kept::Place& place, const std::vector<Kept::Place>& places) {
  Recopying recopying(context_, structure_, name_);
  recopying.begin(place.copies, place.unmarked, context_.copies);
  // Others may have come to the end of a change since.
  if (kept_.places(true) != places) {
    recopying.finish();
    throw Contention("another client is changing the number of copies; try again");
  }
  Recopier(recopying, structure_, name_, options_).run();
  recopying.finish();
}

Elements::Recopied Elements::recopy() {
  std::vector<Kept::Place> places = kept_.places();
  // What is executed late may make an index that lists nothing.
  const auto leftover = [&](const Kept::Place& place) {
    return places.size() > 1 && !place.unmarked && place.copies != context_.copies && lists_nothing(place);
  };
  for (auto one = places.begin(); (one = std::find_if(one, places.end(), leftover)) != places.end();) {
    change_from(*one, places);
    places = kept_.places();
    one = places.begin();
  }
  std::vector<Kept::Place> full = places;
  std::erase_if(full, [&](const Kept::Place& place) {
    return full.size() > 1 && place.copies == context_.copies && lists_nothing(place);
  });
  const auto place = kept_.only(full);
  if (!place) return {};
  if (place->copies != context_.copies) change_from(*place, places);
  return {.found = true, .from = place->copies};
}

}  // namespace mcds
