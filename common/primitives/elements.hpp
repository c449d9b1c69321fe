// What tables and hashes are made of: one key per element is the truth, the index only says where to look.
//
// Key layout (base: `<namespace>table:<name>` or `<namespace>hash:<name>`)
//   <base>:v:<element>           the value; the element encoded, or digested when long (key_names.hpp)
//   <base>:i, <base>:i:<shard>   the index: element_index.hpp
//   E.g. table:blocked:v:10.1.2.3 = 1
// Invariants: why the index may be wrong and nothing else ever is
//   An element is present exactly when its key is: has, get and fetch all ask the key, so they cannot disagree.
//   The one promise of the index is: every acknowledged element is listed. Step by step, setting an element that
//   is missing:
//     1 `replace` says missing        dead here: nothing happened
//     2 append the name to its shard  dead here: a listed name without a key, which fetch finds absent
//     3 new shard: name it            dead here: the same; fetch says complete: false until somebody accepts it
//     4 `add` the key                 stored: acknowledged, and listed since 2
//                                     exists: a rival was first; back to 1
//     5 if 4 was acknowledged more than half the grace after 2, list the name again before that is told
//   Removing deletes the key: one step, the linearization point. The line stays until compaction.
//   Compaction drops a line whose element it finds absent *after* it has read the shard, and only one older than
//   the grace of 60 s. Whoever is between 2 and 4 has a younger line, or lists it again in 5; what is
//   appended while compaction runs makes its cas fail, or comes behind what it compacted. What remains: an add
//   whose reply was lost and that the server executes later than the grace. It was never acknowledged; has finds
//   it, fetch does not, until it is removed and set, or set with `relist`.
// Round trips, whatever the number of elements
//   get, remove 1; set of existing ones 1, else 3 (4 when a shard is new). fetch 2, one more per window of
//   elements and per shard that has outgrown one item.
// When things fail
//   crash          see the steps; remove is one step.
//   lost reply     set: UnknownOutcome when it may have been set; remove: likewise. Repeating either is harmless.
//   eviction, restart, flush   of an element: it is gone as if removed, and nobody can tell; of a part of the
//                  index: fetch says complete: false. has and get stay right. Setting the elements again with
//                  `relist`, then accept(), makes it whole.
//   skew           below half the grace: none.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/errors.hpp"
#include "common/primitives/copies.hpp"
#include "common/primitives/element_index.hpp"

namespace mcds {

constexpr std::size_t max_element_size = 10 * 1024;

struct Element {
  std::string name;  // any bytes, at most max_element_size
  std::string value;
};

// What became of one element of a batch.
struct ElementResult {
  bool yes = false;   // set: it was missing; get: it is present; remove: it was present
  std::string value;  // get
  std::size_t server = 0;
  std::optional<Failure> failure;  // then `yes` says nothing
  bool listed = false;  // set: its name is known to be in the index
  std::vector<CopyOutcome> copies = {};
};

class Elements {
 public:
  // `structure` is `table` or `hash`. Throws InvalidInput for a name no key can hold.
  // `alone`: there is no other copy. With others, each does what it can: an element is set although its index cannot be
  // reached, and listed although its key's server cannot; copied_elements.hpp puts the two together.
  Elements(const Context& context, std::string_view structure, std::string_view name, bool alone = true);
  Elements(const Elements&) = delete;
  Elements& operator=(const Elements&) = delete;

  // In the order of the batch. `relist`: lists those that exist too.
  std::vector<ElementResult> set(std::span<const Element> elements, bool relist = false);
  std::vector<ElementResult> get(std::span<const std::string> names) const;
  std::vector<ElementResult> remove(std::span<const std::string> names) const;

  // For copied_elements.hpp: lists and adds what is missing; what exists stays as it is. The names that were added.
  std::vector<std::string> restore(std::span<const Element> elements);
  // Lists them, whether they exist or not. Throws NotApplied.
  void list(std::span<const Element> elements);
  ElementIndex::Reading read_index(const ElementIndex::Visit& visit) const { return index_.read(visit); }

  struct Found {
    std::string name;
    std::string value;
    std::size_t server = 0;
    std::size_t shard = 0;  // how far fetch is: of index_shards
  };
  struct Listing {
    ElementIndex::Reading index;
    std::size_t present = 0;
    bool complete() const { return index.complete(); }
  };
  // Every present element, in no order; one shard's names and one window's values are in memory. Throws
  // NotApplied, CorruptData.
  using Visit = std::function<void(Found& element)>;
  Listing fetch(const Visit& visit) const;

  // Removes every listed element, and starts the index anew where a part of it was lost. No single step: what
  // others set meanwhile may stay. Returns the number removed.
  std::size_t clear();
  // See ElementIndex.
  bool compact() { return index_.compact(); }
  void accept() { index_.accept(); }

  std::vector<std::string> index_keys() const { return index_.keys(); }
  std::string key_of(std::string_view name) const;
  // Throws Failure(bad_data) for a name or value that is too long: to be called for all that is passed in.
  static void check(const Element& element);

 private:
  struct Setting;
  class Fetching;
  std::vector<Setting*> replace_existing(std::vector<Setting>& all) const;
  void list_missing(std::vector<Setting*>& missing);
  void list_failed(std::vector<Setting>& all);
  void add_missing(std::vector<Setting*>& missing);
  void list_again(std::span<Setting* const> late);

  Context context_;
  std::string base_;
  std::string values_base_;
  bool alone_;
  ElementIndex index_;
};

}  // namespace mcds
