// The verb recopy of tables and hashes, and its walk over the index.
//
// The new index says that it is unfinished, from before the first name is listed until the old one is gone: a
// fetch under the new number waits. So the index is there even if it has nothing to list, and an empty
// structure keeps its number.
#include <algorithm>
#include <functional>
#include <unordered_set>
#include <utility>

#include "common/base/errors.hpp"
#include "common/structures/elements/recopier.hpp"

namespace mcds {

Elements::Change::Change(Recopying& change, const std::string& structure, const std::string& name,
                         const Journal::Options& options)
    : recopying(change),
      from(change.old_context(), structure, name, options, change.mark().from.unmarked),
      to(change.new_context(), structure, name, options),
      safe(change.safe_context()),
      first_listed_at(safe.clock.steady()) {}

void Elements::Change::list(const std::vector<std::string>& names) {
  for (std::size_t first = 0; first < names.size(); first += names_at_once) {
    recopying.keep_alive();
    std::vector<const std::string*> some;
    for (std::size_t i = first; i < std::min(names.size(), first + names_at_once); ++i)
      some.push_back(&names[i]);
    for (const auto& copies : to.indexes_->list(some).failures) expect_all(copies);
  }
  for (std::size_t copy = 0; copy < to.copies_.size(); ++copy) {
    const std::vector<Request> marks = to.index(copy).take_marks();
    if (!marks.empty()) static_cast<void>(to.context_.cluster.execute(marks));
  }
}

// The walk over an index, and its end.
class Elements::Walk {
 public:
  // What each copy lists, shard by shard, given together. False: something is lost in every copy.
  static bool each_shard(const Elements& side, Recopying& recopying,
                         const std::function<void(const std::vector<std::string>& names)>& take) {
    auto looks = expect_all(side.copies_.each([&](std::size_t copy) { return side.index(copy).look(); }));
    ElementIndex::Look::reconcile(looks);
    bool whole = true;
    for (std::size_t shard = 0; shard < index_shards; ++shard) {
      const auto lists =
          expect_all(side.copies_.each([&](std::size_t copy) { return looks[copy].take(shard); }));
      recopying.keep_alive();
      for (const auto& names : lists) take(names);
      const auto any = [&](ElementIndex::Look::Shard state) {
        return std::ranges::any_of(looks, [&](const auto& look) { return look.state(shard) == state; });
      };
      whole = whole && (any(ElementIndex::Look::Shard::whole) || !any(ElementIndex::Look::Shard::lost));
    }
    return whole;
  }

  // An index as it is now, for each copy: its journals, the manifest last.
  struct Part {
    std::string key;
    CasUnique cas;
  };
  using Parts = std::vector<std::vector<Part>>;
  static Parts parts_of(const Elements& side) {
    Parts parts(side.copies_.size());
    expect_all(side.copies_.each([&](std::size_t copy) {
      std::vector<Request> gets;
      for (std::string& key : side.index(copy).keys()) gets.push_back(Request::gets(std::move(key)));
      std::ranges::reverse(gets);
      Cluster& cluster = side.copies_.at(copy).cluster;
      const auto replies = cluster.execute(gets);
      for (std::size_t i = 0; i < gets.size(); ++i) {
        if (expect_read(cluster, replies[i]).outcome == Outcome::hit)
          parts[copy].push_back({gets[i].key, replies[i].cas});
      }
    }));
    return parts;
  }

  static void remove_parts(const Elements& side, const Parts& parts) {
    expect_all(side.copies_.each([&](std::size_t copy) {
      for (const auto& [key, cas] : parts[copy]) {
        const Journal journal(side.copies_.at(copy), key, side.options_);
        static_cast<void>(journal.let_go({journal.read(), cas}));
      }
    }));
  }

  static bool is_empty(const Parts& parts) {
    return std::ranges::all_of(parts, [](const auto& of_copy) { return of_copy.empty(); });
  }
};

class Elements::Recopier : private Walk {
 public:
  Recopier(Recopying& recopying, const std::string& structure, const std::string& name,
           const Journal::Options& options)
      : change_(recopying, structure, name, options), batch_(change_) {}

  void run() {
    auto pieces = batch_.unfinished();
    // Who wrote the mark died before it saw that another change had come to its end since it looked.
    if (change_.recopying.taken_over() && pieces.empty() && !has_index(change_.from) &&
        !has_index(change_.to))
      return;
    batch_.settle(std::move(pieces), nullptr, true);
    const std::vector<std::string> listed = new_names();
    if (damaged_ && !change_.recopying.taken_over()) {
      change_.recopying.finish();
      throw Failure(ErrorCode::bad_data,
                    "a part of the index is lost, so nothing was done; see the verb check, and --accept");
    }
    const auto indexed = attempt([&] {
      say_unfinished(true);
      change_.list(listed);
      change_.recopying.settle();
      change_.list(new_names());
      complete_index();
    });
    if (indexed.failure()) {
      // There is no room for it, and nothing has gone over.
      if (indexed.failure()->code() == ErrorCode::refused && !change_.recopying.taken_over())
        static_cast<void>(attempt([&] { withdraw(); }));
      raise(*indexed.failure());
    }
    std::vector<std::string> absent;
    batch_.move(std::exchange(names_, {}), &absent);
    // Whoever listed one of these before the mark was there has written it by now, or never will.
    batch_.move(absent, nullptr);
    in_rounds("it", [&] { return remove_index(); });
    say_unfinished(false);
    std::vector<Request> removals;
    for (std::size_t server = 0; server < change_.safe.cluster.placement().pool().size(); ++server) {
      if (!change_.from_versions())
        removals.push_back(Request::remove(change_.begun_key(change_.mover())).on(server));
      if (!change_.to_versions())
        removals.push_back(Request::remove(change_.stored_key(change_.mover())).on(server));
    }
    if (!removals.empty()) static_cast<void>(change_.safe.cluster.execute(removals));
  }

 private:
  // The structure stays as it was.
  void withdraw() {
    remove_parts(change_.to, parts_of(change_.to));
    change_.recopying.finish();
  }

  bool has_index(Elements& side) const {
    std::vector<Request> gets;
    for (std::string& key : side.index(0).keys()) gets.push_back(Request::get(std::move(key)));
    bool found = false;
    for (const Reply& reply : execute_copies(side.context_, gets).take_all())
      found = expect_read(side.context_.cluster, reply).outcome == Outcome::hit || found;
    return found;
  }

  // Those that the old index lists and that were not met before.
  std::vector<std::string> new_names() {
    std::vector<std::string> found;
    const bool whole =
        each_shard(change_.from, change_.recopying, [&](const std::vector<std::string>& names) {
          for (const std::string& name : names) {
            if (known_.insert(name).second) found.push_back(name);
          }
        });
    damaged_ = damaged_ || !whole;
    names_.insert(names_.end(), found.begin(), found.end());
    return found;
  }

  // Who reads the new index meanwhile waits. With it the new index exists, even if it has nothing to list.
  void say_unfinished(bool unfinished) {
    change_.recopying.keep_alive();
    expect_all(change_.to.copies_.each(
        [&](std::size_t copy) { change_.to.index(copy).say_unfinished(unfinished); }));
  }

  // Every copy of the new index lists all names, before the old one may go: what servers lost of it since,
  // they get again. What nobody knows any more, because the old index has lost a part, stays reported as
  // lost.
  void complete_index() {
    in_rounds("the new index", [&] {
      const auto lists =
          expect_all(change_.to.copies_.each([&](std::size_t copy) { return lists_all(copy); }));
      if (std::ranges::all_of(lists, std::identity())) return true;
      say_unfinished(true);
      change_.list({known_.begin(), known_.end()});
      if (damaged_) return false;
      expect_all(change_.to.copies_.each(
          [&](std::size_t copy) { static_cast<void>(change_.to.index(copy).accept()); }));
      return false;
    });
  }

  bool lists_all(std::size_t copy) {
    if (known_.empty()) return true;
    ElementIndex::Look look = change_.to.index(copy).look();
    bool whole = look.manifest_whole();
    std::size_t listed = 0;
    for (std::size_t shard = 0; shard < index_shards; ++shard) {
      for (const std::string& name : look.take(shard)) listed += known_.count(name);
      whole = whole && look.state(shard) != ElementIndex::Look::Shard::lost;
    }
    return listed == known_.size() && (whole || damaged_);
  }

  // Each part once all that it lists is known. True: there is none left.
  bool remove_index() {
    const Parts parts = parts_of(change_.from);
    if (is_empty(parts)) return true;
    change_.list(new_names());
    batch_.move(std::exchange(names_, {}), nullptr);
    complete_index();
    remove_parts(change_.from, parts);
    return false;
  }

  Change change_;
  RecopyBatch batch_;
  std::unordered_set<std::string> known_;
  std::vector<std::string> names_;  // met since they were last taken
  bool damaged_ = false;            // something of the old index is lost in every copy
};

// Every element that the index lists, then the index, as long as it is what was read. Clients that find one
// of them missing wait, so what is not there stays so.
class Elements::Dropper : private Walk {
 public:
  Dropper(Recopying& recopying, const std::string& structure, const std::string& name,
          const Journal::Options& options)
      : recopying_(recopying),
        side_(recopying.old_context(), structure, name, options, recopying.mark().from.unmarked) {}

  void run() {
    recopying_.settle();
    in_rounds("it", [&] {
      const Parts parts = parts_of(side_);
      if (is_empty(parts)) return true;
      each_shard(side_, recopying_, [this](const std::vector<std::string>& names) { remove(names); });
      // Not by one who has taken over, and was overtaken.
      recopying_.check();
      remove_parts(side_, parts);
      return false;
    });
  }

 private:
  void remove(const std::vector<std::string>& names) {
    for (std::size_t first = 0; first < names.size(); first += Change::names_at_once) {
      recopying_.keep_alive();
      std::vector<Request> removals;
      for (std::size_t i = first; i < std::min(names.size(), first + Change::names_at_once); ++i)
        removals.push_back(Request::remove(side_.key_of(names[i])));
      for (const Reply& reply : execute_copies(side_.context_, removals).take_all())
        static_cast<void>(expect(side_.context_.cluster, reply));
    }
  }

  Recopying& recopying_;
  Elements side_;
};

void Elements::move(Recopying& change, const std::string& structure, const std::string& name,
                    const Journal::Options& options) {
  if (change.mark().to == 0)
    Dropper(change, structure, name, options).run();
  else
    Recopier(change, structure, name, options).run();
  change.finish();
}

Elements::Recopied Elements::recopy() {
  const auto at = [this](const Kept::Place& place) {
    return Elements(context_.in_copies(place.copies), structure_, name_, options_);
  };
  const auto lists_nothing = [&](const Kept::Place& place) {
    const Listing listing = at(place).fetch([](Found&) {});
    return listing.complete() && listing.present == 0;
  };
  std::vector<Kept::Place> places = kept_.places();
  // What is executed late may make an index that lists nothing.
  const auto leftover = [&](const Kept::Place& place) {
    return places.size() > 1 && !place.unmarked && place.copies != context_.copies && lists_nothing(place);
  };
  for (auto one = places.begin(); (one = std::find_if(one, places.end(), leftover)) != places.end();) {
    kept_.change(*one, context_.copies, places);
    places = kept_.places();
    one = places.begin();
  }
  std::vector<Kept::Place> full = places;
  std::erase_if(full, [&](const Kept::Place& place) {
    return full.size() > 1 && place.copies == context_.copies && lists_nothing(place);
  });
  const auto place = kept_.only(full);
  if (!place) return {};
  if (place->copies != context_.copies) {
    // Several copies would restore what has ended, from the copy that ends last: none of it is in several.
    std::size_t ending = 0;
    const Elements there = at(*place);
    if (!there.versions_.in_use()) there.fetch([&](const Found& found) { ending += found.ends ? 1 : 0; });
    if (ending != 0) {
      throw Failure(ErrorCode::bad_data,
                    std::to_string(ending) + (ending == 1 ? " element expires" : " elements expire") +
                        ", which one copy alone can keep; set them again without a ttl, or remove them");
    }
    kept_.change(*place, context_.copies, places);
  }
  return {.found = true, .from = place->copies};
}

}  // namespace mcds
