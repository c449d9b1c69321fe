// Putting a table or hash into another number of copies: the steps of common/primitives/recopying.hpp for elements.
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
    if (from_several()) return;
    std::vector<Request> removals;
    for (std::size_t server = 0; server < safe_.cluster.placement().pool().size(); ++server)
      removals.push_back(Request::remove(beginning_key(recopying_.mark().mover)).on(server));
    static_cast<void>(safe_.cluster.execute(removals));
  }

 private:
  // An element on its way: staged, and named in the mark.
  struct Piece {
    std::string name;
    std::uint32_t number = 0;  // under the new keys; with one copy there is none
    std::string value = {};
    VersionedItem old = {};
    bool staged = false;
    bool in_doubt = false;  // perhaps removed from the old keys by a mover
    bool ready = false;     // certainly
    bool gone = false;      // a client removed it
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

  void list(const std::vector<std::string>& names) {
    for (std::size_t from = 0; from < names.size(); from += names_at_once) {
      std::vector<const std::string*> some;
      for (std::size_t i = from; i < std::min(names.size(), from + names_at_once); ++i)
        some.push_back(&names[i]);
      for (const auto& copies : new_.list(some)) expect_all(copies);
      recopying_.keep_alive();
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
    const std::set<std::size_t> began = servers_begun(mover);
    for (Piece& piece : pieces) {
      piece.in_doubt = piece.staged && began.contains(server_of(piece));
      names.push_back(piece.name);
    }
    list(names);
    settle(std::move(pieces), nullptr);
  }

  // `<mover>`, then `<number> <name>` a line.
  std::vector<Piece> named_in_mark() {
    std::vector<Piece> pieces;
    auto lines = split(recopying_.mark().moving, '\n');
    std::vector<Request> gets;
    for (std::size_t i = 1; i < lines.size(); ++i) {
      const std::size_t space = lines[i].find(' ');
      if (space == std::string_view::npos) continue;
      auto name = unquote_bytes(lines[i].substr(space + 1));
      const auto number = parse_u64(lines[i].substr(0, space));
      if (!name || !number) continue;
      gets.push_back(Request::get(staging_key(lines[0], *name)));
      pieces.push_back({.name = std::move(*name), .number = static_cast<std::uint32_t>(*number)});
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

  // With one copy: an item that is stored on every server before anything is removed there, by the same connection. Where
  // there is none, nothing was, and what is missing was removed by clients.
  std::string beginning_key(std::string_view mover) const { return recopying_.staging_key(mover); }

  std::set<std::size_t> servers_begun(std::string_view mover) {
    std::set<std::size_t> begun;
    const std::string batch = digest128(recopying_.mark().moving);
    std::vector<Request> gets;
    for (std::size_t server = 0; server < safe_.cluster.placement().pool().size(); ++server)
      gets.push_back(Request::get(beginning_key(mover)).on(server));
    for (const Reply& reply : safe_.cluster.execute(gets)) {
      if (mcds::expect_read(safe_.cluster, reply).outcome == Outcome::hit && reply.value == batch)
        begun.insert(reply.server);
    }
    return begun;
  }

  std::size_t server_of(const Piece& piece) const {
    return safe_.cluster.placement().server_of(old_.key_of(piece.name));
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

  // Until each is under the new keys, or nowhere.
  void settle(std::vector<Piece> pieces, std::vector<std::string>* absent) {
    for (int round = 0; !pieces.empty(); ++round) {
      if (round == most_rounds) throw Contention("other clients keep changing an element; try again");
      read(pieces);
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
  }

  void read(std::vector<Piece>& pieces) {
    std::vector<Request> batch;
    std::vector<std::string> keys;
    for (const Piece& piece : pieces) {
      batch.push_back(Request::gets(old_.key_of(piece.name)));
      keys.push_back(new_.key_of(piece.name));
    }
    const CopyReplies replies = execute_copies(old_.context_, batch);
    std::vector<VersionedItem> targets;
    if (to_several()) targets = new_.versions_.read(keys);
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      Piece& piece = pieces[i];
      const auto before = std::exchange(piece.old, old_.versions_.item_of(batch[i].key, replies[i]));
      expect_read(piece.old);
      // What compares with another value is executed late in vain.
      if (!from_several() && !before.copies.empty() && piece.old.copies[0].found &&
          !(piece.old.copies[0].cas == before.copies[0].cas))
        piece.in_doubt = false;
      if (to_several()) expect_read(targets[i]);
      const VersionedCopy* newest = piece.old.newest();
      // With several copies a removal leaves its word behind.
      const bool removed = newest != nullptr ? newest->removed : !from_several() && !piece.in_doubt;
      piece.gone = removed || (newest == nullptr && !piece.staged);
      if (newest == nullptr || piece.gone) continue;
      piece.value = newest->value;
      bytes += piece.value.size();
      const auto next = to_several() ? targets[i].next_number() : std::optional<std::uint32_t>(0);
      if (!next) throw no_version_left(keys[i]);
      piece.number = *next;
    }
    largest_ = std::clamp<std::size_t>(value_bytes_at_once / (bytes / pieces.size() + 1), 1, names_at_once);
  }

  void stage(std::vector<Piece>& pieces) {
    const std::string mover = recopying_.mark().mover;
    const Exptime exptime = Exptime::after(staged_for, safe_.clock.wall());
    std::string moving = mover;
    std::vector<Request> sets;
    for (Piece& piece : pieces) {
      append_all(moving, {"\n", std::to_string(piece.number), " ", quote_bytes(piece.name)});
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
    if (!from_several()) begin_removing(pieces, batch);
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
          // By another mover, or by a client.
          by_another = true;
          piece.gone = !from_several() && !recopying_.taken_over() && !piece.in_doubt;
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
    if (by_another) recopying_.check();
    for (Piece& piece : pieces) piece.ready = piece.ready && !piece.gone;
  }

  void begin_removing(const std::vector<Piece>& pieces, std::vector<Request>& batch) const {
    std::set<std::size_t> servers;
    for (const Piece& piece : pieces) servers.insert(server_of(piece));
    const Exptime exptime = Exptime::after(staged_for, safe_.clock.wall());
    const RecopyMark& mark = recopying_.mark();
    for (const std::size_t server : servers) {
      batch.push_back(Request::set(beginning_key(mark.mover), digest128(mark.moving), exptime).on(server));
    }
  }

  void publish(std::vector<Piece>& pieces) {
    std::vector<std::string> names;
    std::vector<std::string> keys;
    std::vector<const Piece*> ready;
    for (const Piece& piece : pieces) {
      if (!piece.ready) continue;
      ready.push_back(&piece);
      names.push_back(piece.name);
      keys.push_back(new_.key_of(piece.name));
    }
    if (ready.empty()) return;
    // A compaction may have dropped names that were listed long before.
    if (new_.context_.clock.steady() - first_listed_at_ > ElementIndex::grace / 4) list(names);
    if (to_several()) {
      std::vector<VersionedItem> items = new_.versions_.read(keys);
      std::vector<VersionedWrite> writes;
      for (std::size_t i = 0; i < items.size(); ++i)
        writes.push_back({.item = &items[i], .number = ready[i]->number, .value = ready[i]->value});
      new_.versions_.write(writes);
      for (const VersionedItem& item : items) expect_read(item);
    } else {
      std::vector<Request> batch;
      for (std::size_t i = 0; i < ready.size(); ++i)
        batch.push_back(Request::add(keys[i], ready[i]->value, Exptime::never()));
      for (const Reply& reply : new_.context_.cluster.execute(batch)) expect(new_.context_.cluster, reply);
    }
    std::vector<Request> staged;
    for (const Piece* piece : ready)
      staged.push_back(Request::remove(staging_key(recopying_.mark().mover, piece->name)));
    static_cast<void>(execute_copies(safe_, staged));
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
  std::size_t largest_ = names_at_once;
};

void Elements::complete_recopy(const Context& context, const std::string& structure, const std::string& name,
                               const Journal::Options& options, const Recopying::Seen& left) {
  Recopying recopying(context, structure, name);
  recopying.take_over(left);
  Recopier(recopying, structure, name, options).run();
  recopying.finish();
}

Elements::Recopied Elements::recopy() {
  const auto place = kept_.only_place();
  if (!place) return {};
  if (place->copies == context_.copies) return {.found = true, .from = place->copies};
  Recopying recopying(context_, structure_, name_);
  recopying.begin(place->copies, place->unmarked, context_.copies);
  Recopier(recopying, structure_, name_, options_).run();
  recopying.finish();
  return {.found = true, .from = place->copies};
}

}  // namespace mcds
