// Elements is the common part of tables and hashes. One key per element is authoritative; the index only
// lists the names to read. Its contract is at the end of this file.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/errors.hpp"
#include "common/journal/journal.hpp"
#include "common/primitives/key_names.hpp"
#include "common/replication/copy_count_guard.hpp"
#include "common/replication/replicas.hpp"
#include "common/replication/versions.hpp"
#include "common/structures/elements/element.hpp"

namespace mcds {

class ElementIndex;
class ElementIndexes;

class Elements {
 public:
  // `structure` is `table` or `hash`. Throws InvalidInput for a name that no key can contain, or if there are
  // too few servers for the copies.
  Elements(const Context& context, std::string_view structure, std::string_view name,
           const Journal::Options& options = Journal::Options());
  Elements(const Elements&) = delete;
  Elements& operator=(const Elements&) = delete;

  // Sets the elements and returns the results in their order. They expire after `ttl`; without it they do
  // not, whatever an earlier set chose. If the client's first batch has several elements and a part of the
  // index is lost, lists existing elements again too. Throws InvalidInput for a ttl with several copies, or
  // of 0.
  std::vector<ElementResult> set(std::span<const Element> elements, std::optional<Duration> ttl = {});
  // Starts a batch and returns a function that waits for its results, to be called once, in the order of the
  // batches. While the elements of one batch and the names of the next are in flight, another can be started.
  // The elements must outlive the function. If it is dropped uncalled, the batch may still be applied.
  using Answers = std::function<std::vector<ElementResult>()>;
  Answers begin_set(std::span<const Element> elements, std::optional<Duration> ttl = {});
  std::vector<ElementResult> get(std::span<const std::string> names) const;
  std::vector<ElementResult> remove(std::span<const std::string> names);
  // Does the same as get(), without checking other copy counts if something is missing.
  std::vector<ElementResult> get_here(std::span<const std::string> names) const;
  // Returns the names that the index lists for this number of copies, some of which may no longer be
  // elements. Throws if the index cannot be read.
  std::set<std::string> listed() const;

  struct Found {
    std::string name;
    std::string value;
    std::size_t server = 0;
    std::size_t shard = 0;  // progress of fetch, out of index_shards
    bool ends = false;      // it has an expiry
  };
  struct Listing {
    std::vector<std::string> lost;  // keys of damaged parts of the index
    std::size_t lines = 0;          // of the index, of all copies
    std::size_t names = 0;          // distinct ones
    std::size_t shards = 0;         // existing ones, in all copies
    std::size_t present = 0;
    std::optional<std::size_t> repaired = {};  // several copies: elements restored where a copy had lost them
    bool copies_whole = true;                  // every copy answered, and now has what any of them has
    struct Divergent {
      std::string name;
      std::vector<std::string> values;  // one per copy
    };
    std::vector<Divergent> divergent;       // names whose copies hold different values without versions
    std::vector<Failure> unreachable = {};  // with `partial`: servers that did not answer, each once
    std::size_t unknown = 0;                // with `partial`: listed elements on those servers
    std::size_t unread_shards = 0;          // with `partial`: parts of the index that could not be read
    // Returns the number of names that are listed but removed, expired or evicted.
    std::size_t missing() const { return names - present - unknown; }
    bool complete() const { return lost.empty() && unreachable.empty(); }
  };
  // Visits every present element, in no order. One shard's names and two windows' values are in memory: while
  // one window is visited, the next is in flight. The first window has up to 1024 elements of any size; the
  // later ones are sized for 2 MiB by the last one's values. Throws NotApplied, CorruptData. With `partial`,
  // omits and reports the elements of servers that do not answer, instead of throwing.
  using Visit = std::function<void(Found& element)>;
  Listing fetch(const Visit& visit, bool partial = false) const;

  // Compacts the shards of every copy's index of which at most half is needed. Best effort.
  void compact() const { compact(every_shard(), no_bound); }
  // Compacts the shards of elements that this client has removed, if they are many; waits for two seconds if
  // they were listed lately. Call it after the removals.
  void compact_removed();
  // Declares the index complete as it is (ElementIndex::accept).
  void accept();

  // Removes the elements that the index lists, and the index. Elements that other clients set after drop has
  // read it stay, with their part of the index. Returns false if there was nothing. Throws CorruptData for
  // another program's value, NotApplied, UnknownOutcome; any client may repeat the drop.
  bool drop();

  std::vector<std::string> index_keys() const;
  std::string key_of(std::string_view name) const { return element_key(base_, name); }

 private:
  class Fetching;
  class Setting;
  class Dropping;
  bool take_back(std::span<const Element> elements) const;
  // Throws if the structure exists with another number of copies; checks once a second. Call it before
  // something is reported missing or created.
  bool expect_here() const { return guard_.check(); }
  std::vector<std::string> keys_of(std::span<const std::string> names) const;
  ElementIndex& index(std::size_t copy) const;
  std::vector<bool> present(std::span<const std::string> names) const;
  bool are_alike(std::span<const std::string> names) const;
  static constexpr std::size_t no_bound = std::numeric_limits<std::size_t>::max();
  static std::vector<std::size_t> every_shard();
  void compact(std::span<const std::size_t> shards, std::size_t max_segments,
               RemovedNames* removed = nullptr) const;
  // The results of one round of removals, and the indices of elements that another client changed first.
  struct Removals {
    std::vector<ElementResult> results;
    std::vector<std::size_t> changed = {};
  };
  Removals remove_copies(std::span<const std::string> names) const;
  std::vector<ElementResult> remove_here(std::span<const std::string> names) const;
  std::vector<ElementResult> remove_only(std::span<const std::string> names) const;

  Context context_;
  Journal::Options options_;  // of the index's journals
  Replicas copies_;
  Versions versions_;
  mutable CopyCountGuard guard_;
  std::string base_;  // of the elements' keys
  std::shared_ptr<ElementIndexes> indexes_;
  bool were_new_ = false;             // all of the last batch; the next batch is then expected to be new
  std::optional<bool> relists_ = {};  // a part of the index is lost; nullopt before the first set
  std::vector<std::weak_ptr<Setting>> in_flight_;  // batches, in order
  std::vector<std::uint64_t> removed_;             // digests of names, for compact_removed()
};

}  // namespace mcds

// Key layout (base: `<namespace>table:<name>` or `<namespace>hash:<name>`; in N copies, N at least 2,
// `table<N>:<name>` or `hash<N>:<name>`: see common/replication/copy_count_guard.hpp)
//   <base>:v:<element>           the value; the element is encoded, or digested if it is long
//                                (key_names.hpp). Flags: 0x01000000 if it expires (one copy only); with
//                                several copies a version (versions.hpp)
//   <base>:i, <base>:i:<shard>   the index: index.hpp
//   E.g. table:blocked:v:10.1.2.3 = 1
// Invariants
//   An element is present exactly when its key is: has, get and fetch all read the key, so they cannot
//   disagree. Only the index can be wrong, and it promises one thing: every acknowledged element is listed.
//   set.cpp shows this for each crash point, index.cpp for compaction, drop_elements.cpp for drop.
//   Removing deletes the key in one step, the linearization point. The line stays until compaction.
//   One case remains: an add that is executed after the grace of 60 s, or after a drop, and whose client has
//   no reply or can no longer list the element. It was never acknowledged; has finds the element and fetch
//   does not, also after further sets, until it is removed and set again.
//   An element with a ttl expires with its key, by its server's clock, which acts as a removal. Every set
//   decides the expiry again. With several copies, repair could not distinguish an expiry from a loss.
// Round trips, for any number of elements
//   get, remove 1; set of existing ones 1, else 3 (5 if a shard is new or the first, because its line must be
//   stored before the manifest names it, and that before the element is written). If all elements of the
//   batch that ended last were new, set takes 2 (3 if one exists), of which the second overlaps the first of
//   the next batch. A client's first batch of several elements checks the index in its first trip.
//   fetch 2, one more per window of elements and per shard that has outgrown one item; drop 6, 2 more per
//   window and 1 per such shard. Compaction of a shard takes up to 5, 1 more per 4096 names. The first
//   missing element in a second costs one more for the copy-count guard; with several copies, so does the
//   first removal.
//   With several copies, set of existing ones takes 2, remove 3, the others the same.
// When things fail
//   crash          see set.cpp; remove is one step.
//   lost reply     set, remove and drop throw UnknownOutcome if the request may have been applied. Repeating
//                  each is harmless.
//   eviction, restart, flush   of an element: it counts as missing, as if removed. Of a part of the index:
//                              fetch says complete: false, while has and get stay right. Setting the elements
//                              again, several at once, then accept(), repairs it.
//   skew           harmless below half the grace.
// With several copies
//   Elements are values with versions (replication/versions.hpp), and the answer names the copies that lag.
//   Every copy has its own index, on other servers, written in parallel. A name is listed if any copy's index
//   lists it, and compaction drops only names that are absent in every copy, because one server that is down
//   may hide the index in one copy and the element in another. A new name is listed in as many copies as a
//   change needs before its element is written, and fetch requires as many copies of the index.
//   If two clients create the same element, the one that writes the first copy while it is empty was first,
//   whichever value counts. A client whose write loses there to a reader's repair gets the answer that the
//   element existed. If one of two clients does not reach that copy, both may get the answer that they
//   created it. At most one remover gets the answer that it removed the element.
