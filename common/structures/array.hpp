// A list that many clients change at once, each change whole or not at all.
//
// Key layout
//   array:<name>              the journal (default encoding): see common/primitives/journal.hpp
//   array:<name>:s:<id>       its segments, once it has outgrown one item
//   array:<name>:json         the JSON encoding: the whole value is one JSON array, for applications in other languages
//   array:<name>:json:lock    the lock of --lock, see lock.hpp
//   E.g. array:jobs = J1 9f0c6a5be1d27348 *4a1c09f2
//                     + b7c1e0f2a94d4f6e.0 "backup" *0b2f1c9e
//                     - 51ab22c0de7f1a90.0 "backup" *77d0a3c1
//   An element is a JSON text; bytes that are not UTF-8 are b"<base64>". The encodings have keys of their own because an
//   append is blind: to a JSON array that an application keeps under the same key it would be the end.
//   Names that could be another array's part (…:json, …:s:<16 hex digits>, …:lock) are refused.
// Invariants
//   fetch equals some serial order of all acknowledged changes; a change is all or nothing; compaction drops none.
//   A removal removes all equal elements added before it. In one change removals come before additions.
// Round trips
//   journal  add, change, replace, clear 1 (2 creating; more when the item is full, see journal.hpp); fetch, count 1,
//            with segments 2; a missing journal 2, because the JSON encoding is looked for too.
//   json     changes 2 per attempt, with a lock 4 more; fetch 2, 1 when asked for by encoding.
// When things fail
//   crash          a change is one append or one cas: nothing half done.
//   lost reply     journal: found out by the operation's id; json: by the value, else unknown.
//   eviction, restart, flush   of the root: the array is gone, the next change says created; of a segment: fetch says
//                  complete: false.
//   skew           no clock is used.
// Source
//   The article's "+1 +3 +4 -3 +5", with ids, checksums and a compaction that loses nothing.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/primitives/context.hpp"
#include "common/primitives/journal.hpp"

namespace mcds {

enum class ArrayEncoding { journal, json };

class Array {
 public:
  // Throws InvalidInput for a name no key can hold.
  Array(const Context& context, std::string_view name);

  struct Changed {
    bool created = false;
    std::size_t server = 0;
  };
  // Elements are texts as quote_bytes() or compact_json() make them.
  Changed change(std::span<const std::string> add, std::span<const std::string> remove, ArrayEncoding encoding, bool lock = false);
  // Whatever was there before is gone, in the same step.
  Changed replace(std::span<const std::string> elements, ArrayEncoding encoding, bool lock = false);

  struct Contents {
    bool found = false;
    std::vector<std::string> elements;
    bool complete = true;  // false: a part of it was lost
    std::size_t lines = 0;  // of the journal
    ArrayEncoding encoding = ArrayEncoding::journal;
    std::size_t server = 0;
  };
  // Without an encoding: the journal, else the JSON array.
  Contents fetch(std::optional<ArrayEncoding> encoding = {}) const;

  // Drops what removals made void; false: there is no journal, or a part of it is lost. Throws Contention.
  bool compact();

  // The physical keys there are.
  std::vector<std::string> keys() const;

 private:
  Changed append(std::vector<JournalLine> lines);
  Changed update_json(std::span<const std::string> add, std::span<const std::string> remove, bool replaces, bool lock);
  Changed cas_json(std::span<const std::string> add, std::span<const std::string> remove, bool replaces);
  std::string json_key() const { return key_ + ":json"; }

  Context context_;
  std::string key_;
};

// The elements that are left when the lines are gone through in order.
std::vector<std::string> replay(std::span<const JournalLine> lines);

}  // namespace mcds
