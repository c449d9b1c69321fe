// What tables and hashes are made of: one key per element is the truth, and the index only tells where to
// look. Its contract stands at the end of this file.
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
  // `structure` is `table` or `hash`. Throws InvalidInput for a name no key can hold, or too few servers for
  // the copies.
  Elements(const Context& context, std::string_view structure, std::string_view name,
           const Journal::Options& options = Journal::Options());
  Elements(const Elements&) = delete;
  Elements& operator=(const Elements&) = delete;

  // In the order of the batch. `ttl`: they expire then; without it they do not, whatever was said before.
  // Lists those that exist too, if a part of the index is lost and the first batch has several elements.
  // Throws InvalidInput for a ttl of several copies, or of 0.
  std::vector<ElementResult> set(std::span<const Element> elements, std::optional<Duration> ttl = {});
  // The same in two steps: while the elements of one batch are on their way, and the names of the next, that
  // behind it can be begun. What is returned waits for the answers; it is called once, in the order of the
  // batches, and the elements outlive it. Dropped uncalled, a batch may be applied.
  using Answers = std::function<std::vector<ElementResult>()>;
  Answers begin_set(std::span<const Element> elements, std::optional<Duration> ttl = {});
  std::vector<ElementResult> get(std::span<const std::string> names) const;
  std::vector<ElementResult> remove(std::span<const std::string> names);
  // get, without a look for another number of copies if something is missing.
  std::vector<ElementResult> get_here(std::span<const std::string> names) const;
  // What the index lists, of this number of copies; some of it may be there no more. Throws if it cannot be
  // read.
  std::set<std::string> listed() const;

  struct Found {
    std::string name;
    std::string value;
    std::size_t server = 0;
    std::size_t shard = 0;  // how far fetch is: of index_shards
    bool ends = false;      // it expires
  };
  struct Listing {
    std::vector<std::string> lost;  // keys of the index of which something is lost
    std::size_t lines = 0;          // of the index, of all copies
    std::size_t names = 0;          // different ones
    std::size_t shards = 0;         // that exist, of all copies
    std::size_t present = 0;
    std::optional<std::size_t> healed = {};  // of several: elements that a copy had lost and got again
    bool copies_whole = true;                // every copy answered, and has by now what any of them has
    struct Divergent {
      std::string name;
      std::vector<std::string> values;  // each copy's
    };
    std::vector<Divergent>
        divergent;  // the first of those whose copies hold values that no version decides between
    std::vector<Failure> unreachable = {};  // of a partial fetch: servers that did not answer, each once
    std::size_t unknown = 0;                // … listed elements that are on them
    std::size_t unread_shards = 0;          // … and parts of the index
    // Listed and not there: removed, expired or evicted.
    std::size_t missing() const { return names - present - unknown; }
    bool complete() const { return lost.empty() && unreachable.empty(); }
  };
  // Every present element, in no order; one shard's names and two windows' values are in memory: while one
  // window is visited the next is in flight. The first has up to 1024 elements, whatever their size; the
  // others are as large as the sizes of the last one make 2 MiB. Throws NotApplied, CorruptData.
  // `partial`: omits and reports what servers that do not answer hold, instead of throwing.
  using Visit = std::function<void(Found& element)>;
  Listing fetch(const Visit& visit, bool partial = false) const;

  // Compacts the index of every copy, but the shards of which more than half is needed: best effort.
  void compact() const { compact(every_shard(), no_bound, {}); }
  // Compacts the shards of what this client has removed, if that is much; to be called when it is done.
  void compact_removed();
  // See ElementIndex.
  void accept();

  // Removes what the index lists, and the index. What others set after drop has read it stays, and keeps its
  // part of the index. False: there was nothing. Throws CorruptData for another program's value, NotApplied,
  // UnknownOutcome: it can be repeated, by anyone.
  bool drop();

  std::vector<std::string> index_keys() const;
  std::string key_of(std::string_view name) const { return element_key(base_, name); }

 private:
  class Fetching;
  class Setting;
  class Dropping;
  bool take_back(std::span<const Element> elements) const;
  // Throws if it is kept in another number of copies; looks once a second. Call it before something is
  // reported missing, or created.
  void expect_here() const { guard_.check(); }
  std::vector<std::string> keys_of(std::span<const std::string> names) const;
  ElementIndex& index(std::size_t copy) const;
  std::vector<bool> present(std::span<const std::string> names) const;
  bool are_alike(std::span<const std::string> names) const;
  static constexpr std::size_t no_bound = std::numeric_limits<std::size_t>::max();
  static std::vector<std::size_t> every_shard();
  void compact(std::span<const std::size_t> shards, std::size_t most_segments,
               std::span<const std::uint64_t> removed) const;
  // What one round of removals did, and those that another client changed first.
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
  bool were_new_ = false;             // all of the last batch: the next one's are taken for new
  std::optional<bool> relists_ = {};  // a part of the index is lost; unknown before the first set
  std::vector<std::weak_ptr<Setting>> on_their_way_;  // in order
  std::vector<std::uint64_t> removed_;                // digests of names, for compact_removed()
};

}  // namespace mcds

// Key layout (base: `<namespace>table:<name>` or `<namespace>hash:<name>`; in N copies, N at least 2,
// `table<N>:<name>` or `hash<N>:<name>`: see common/replication/copy_count_guard.hpp)
//   <base>:v:<element>           the value; the element is encoded, or digested if it is long (key_names.hpp)
//                                flags: 0x01000000 if it expires (one copy only; what they are in several:
//                                Copies)
//   <base>:i, <base>:i:<shard>   the index: index.hpp
//   E.g. table:blocked:v:10.1.2.3 = 1
// Invariants: why nothing but the index can be wrong
//   An element is present exactly when its key is: has, get and fetch all ask the key, so they cannot
//   disagree. The index promises one thing: every acknowledged element is listed. Setting a missing element,
//   step by step:
//     1 `replace` says missing        a crash here: nothing happened
//     2 append the name to its shard  a crash here: a listed name without a key, which fetch finds absent
//     3 new shard: list it            a crash here: the same; the next fetch lists it
//     4 `add` the key                 stored: acknowledged, and listed since 2
//                                     exists: a rival was first; back to 1
//     5 if 4 was acknowledged more than 2 s after 2, list the name again before answering
//   Of batches of one client the next is at 2 while this one is at 4, and before the next goes on, that
//   behind it is at 2 as well: a crash leaves names listed without keys, of at most three batches. Batches
//   with a name in common, and those that do not begin at 2, wait. Of several copies they are read meanwhile,
//   too, and written only when that is known (Copies).
//   Removing deletes the key: one step, the linearization point. The line stays until compaction.
//   Compaction drops a line only if it finds the element absent *after* it has read the shard, and only if
//   the line is older than the grace of 60 s. A client between 2 and 4 has a younger line, or lists the name
//   again in 5; what is appended during compaction makes its cas fail, or follows what it compacted. One case
//   remains: an add whose reply was lost and that the server executes after the grace, or after a drop. It
//   was never acknowledged; has finds it and fetch does not, until it is removed and set. Who has removed
//   many elements drops the younger lines of these, too: it found each present, so the client that listed it
//   was done, and no second line shows that another is between 2 and 4. What is compacted: a shard of which
//   half or more is dead (index.hpp), as a fetch, who removed many, or who seals it finds it. One command
//   compacts each shard at most once, but those it seals; it asks for each name of these at most once more.
//   Drop removes the elements that the index lists by comparing, then each shard as it was read, the manifest
//   last. What is set after it was read stays, with its shard; who would have to be waited for to know is a
//   client between 2 and 4: its name is listed by a young line, and is absent or has a second line. Then drop
//   waits until 2 s after it read the index; by then the element is there, and stays, or its client is at 5
//   and lists it anew. Before a shard goes the manifest says so: interrupted anywhere, a drop leaves nothing
//   that looks lost, and the next one finds what is left. Left behind may be: segments of a shard, if it dies
//   right after the root; in several copies records of removals, for an hour; an empty shard that a fetch
//   made again in the midst of it; the manifest's entry of a shard whose creator stood still for more than 2
//   s, which is told as a loss, until the next drop or accept(). An element with a ttl ends with its key, by
//   its server's clock. To everybody else that is a removal: what step 1 finds missing is listed before it is
//   added, and compaction drops the line of what it finds absent. Every set decides the end anew: without a
//   ttl there is none. One copy only, because healing cannot tell an end from a loss.
// Round trips, for any number of elements
//   get, remove 1; set, with a ttl or without, of existing ones 1 (of a client's first batch of several it
//   asks in this trip for the index, too, and lists all again if a part of it is lost), else 3 (4 if a shard
//   is new, 5 if it is the first); 2 if all of the batch that ended last were new (then 3 if one of these
//   exists), of which the second overlaps the first of the next batch. fetch 2, one more per window of
//   elements and per shard that has outgrown one item; drop 6, 2 more per window and 1 per such shard. To
//   compact a shard takes up to 5, 1 more per 4096 names. The first missing element in a second costs one
//   more, because the structure may be kept in another number of copies; with several copies, so does the
//   first removal.
// When things fail
//   crash          see the steps; remove is one step.
//   lost reply     set, remove and drop: UnknownOutcome if it may have been applied. Repeating each is
//                  harmless.
//   eviction, restart, flush   of an element: it counts as missing, as if removed. Of a part of the index:
//                  fetch says complete: false, while has and get stay right. Setting the elements again,
//                  several at once, then accept(), repairs it.
//   skew           harmless below half the grace.
// Copies
//   Elements are kept as in common/replication/versions.hpp: their flags are versions, set and remove
//   raise the highest version, and a reader of copies that differ writes the newest back. So set of existing
//   ones takes 2 trips instead of 1, and remove 3; the others take the same. A new element, or one that
//   replaces a removal, is listed before it is written: behind new ones in the trip in which it is read (but
//   in the first copy: Versions, new), and so even if it turns out to be there. In no copy is it read where
//   this client has created its part of every copy of the index less than 10 s ago: what is there would be
//   listed behind that. Then who writes the first copy created it, whatever the others turn out to hold; one
//   that another client created in these 10 s, and that the first copy lost, may be told as new again, and
//   has the later value. While that batch's writes are
//   on their way, a reader finds them in some copies and heals the others, a rival finds a version and raises
//   it, and a crash leaves elements of which a copy lacks some and names without elements, as it does between
//   any two copies' writes; only that they are those of one batch, and the names also those of the next two.
//   Their number of copies is looked for before a name is listed. What was overtaken is settled when the
//   batch is finished; what such a begun write could not even be sent is not tried again, and its copy is
//   named as lagging. Every copy has an index of its own, on other servers, written in parallel. A name is
//   listed if any copy's index lists it, and compaction drops only names that are absent in every copy: the
//   copies of an index and of an element are on different servers, so one server that is down may hide the
//   index in one copy and the element in another. A change is done, and an answer given, as
//   replication/quorum.hpp says; the answer names the copies that lag. A new name is listed in as many copies
//   before its element is written, and a fetch relies on as many copies of the index. If two clients create
//   the same element, the one that writes the first copy while it holds nothing was first, whichever value
//   counts; a client that is overtaken there by a healing reader is told that the element existed, and two of
//   which one does not reach that copy may both be told that they created it. At most one remover is told
//   that it removed it. fetch merges the copies' indexes and heals: it restores elements and names that a
//   copy lost, and if all succeeded, that copy's index counts as complete. complete: false only if a shard is
//   lost in every copy that had it. A shard that is created in a copy while another copy has it was lost
//   there, or is being created by another client. It gets what the other has; where that is too much for one
//   change, it is marked so that it does not vouch for what it lacks, until a fetch has restored that.
