// A list that many clients change at once, each change whole or not at all.
//
// Key layout
//   array:<name>              the journal (default encoding): see common/primitives/journal/journal.hpp; kept in N
//                             copies, N at least 2, array<N>:<name>: see common/primitives/kept.hpp
//   array:<name>:s:<id>       its segments, once it has outgrown one item; each on the server of its journal
//   array:<name>:json         the JSON encoding: the whole value is one JSON array, for other languages
//   array:<name>:json:lock    the lock of --lock, see lock.hpp
//   E.g. array:jobs = J1 9f0c6a5be1d27348 *4a1c09f2
//                     + b7c1e0f2a94d4f6e.0 "backup" *0b2f1c9e
//                     - 51ab22c0de7f1a90.0 "backup" *77d0a3c1
//   An element is a JSON text; bytes that are not UTF-8 are b"<base64>". An application's flags and time to
//   live of a JSON array are kept. The encodings have keys of their own because an append is blind: to a JSON
//   array that an application keeps under the same key it would be the end.
//   Names that could be another array's part (…:json, …:s:<16 hex digits>, …:lock) are refused.
// Invariants
//   fetch equals some serial order of all acknowledged changes; a change is all or nothing; compaction drops
//   none. A removal removes all equal elements added before it; in one change removals come before additions.
//   An array has one encoding, that of its first change: who asks for the other is refused. (Two clients that
//   create it at the same moment in different encodings make two; the journal is then the array.)
// Round trips
//   journal  changes 1; 5 creating, because the JSON encoding and other numbers of copies are looked for first; more when
//            the item is full, see journal.hpp; a replacement of more than 256 KiB 2, and 1 for each half MiB; fetch 1,
//            with segments 2; a missing journal 3.
//   json     changes 2 per attempt, 3 creating, 2 more unless the encoding is given, 4 more with a lock;
//            fetch 2, 1 when asked for by encoding; a missing array 1 more.
// With several copies
//   journal  Each copy is a journal of its own; a change is appended to all of them under one id. The array is the union
//            of their lines by id: in the first copy's order, what only another has behind the lines it follows there. A
//            fetch rewrites a copy that lacks lines (after a second look: they may be on their way). Where no copy is known to
//            be whole all get what any has, and their roots go on naming a segment that is lost: no healing erases the
//            evidence. A copy that is created after others is born lossy (journal.hpp), so that it cannot vouch for what came
//            before it.
//            compact drops nothing while a copy does not answer. While clients race, copies may order their changes differently; what counts is the
//            first copy's order, and when that is lost the next one's. A change that only some copies got is ordered for
//            certain against later ones only when a fetch has given it to the others. Whoever finds some copies without a
//            journal creates it there, 2 trips more: else a fetch under way could make them whole without a removal.
//   json     has one copy: refused. Its key is looked for before a journal is created; a server of it that does not answer
//            keeps no journal from being created.
// When things fail
//   crash          a change is one append or one cas: nothing half done.
//   lost reply     journal: found out by the operation's id; json: by the value, else unknown.
//   eviction, restart, flush   of the root: the array is gone, the next change says created; of a segment:
//                  fetch says complete: false, until a replace or clear makes what is lost void.
//   skew           no clock is used.
// Source
//   The article's "+1 +3 +4 -3 +5", with ids, checksums and a compaction that loses nothing.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/primitives/copies.hpp"
#include "common/primitives/journal/journal.hpp"
#include "common/primitives/kept.hpp"
#include "common/primitives/key_names.hpp"

namespace mcds {

enum class ArrayEncoding { journal, json };

class Array {
 public:
  // Throws InvalidInput for a name no key can hold.
  Array(const Context& context, std::string_view name, const Journal::Options& options = Journal::Options());

  struct Changed {
    bool found = true;  // false: there is no such array, and the step does not create one; nothing was done
    bool created = false;
    ArrayEncoding encoding = ArrayEncoding::journal;
    std::size_t server = 0;
    std::vector<CopyOutcome> copies = {};
  };
  // All of it at once. Elements are texts as quote_bytes() or compact_json() make them. Without an encoding:
  // the one the array has, else the journal. A step that only removes does not create an array. The lock is
  // for JSON only.
  Changed change(std::span<const std::string> add, std::span<const std::string> remove,
                 std::optional<ArrayEncoding> encoding = {}, bool lock = false);
  // Whatever was there before is gone, in the same step.
  Changed replace(std::span<const std::string> elements, std::optional<ArrayEncoding> encoding = {},
                  bool lock = false);
  // An empty array remains.
  Changed clear(std::optional<ArrayEncoding> encoding = {}, bool lock = false);

  struct Contents {
    bool found = false;
    std::vector<std::string> elements;
    bool complete = true;   // false: a part of it was lost
    std::size_t lines = 0;  // of the journal
    ArrayEncoding encoding = ArrayEncoding::journal;
    std::size_t server = 0;
  };
  // Without an encoding: the journal, else the JSON array.
  Contents fetch(std::optional<ArrayEncoding> encoding = {}) const;

  struct Compacted {
    std::size_t lines_before = 0;
    std::size_t lines = 0;
    // A copy that does not answer may bring back what is dropped without it: nothing was.
    std::optional<Failure> away = {};
  };
  // Drops what removals made void; nullopt: there is no journal, or a part of it is lost. Throws Contention.
  std::optional<Compacted> compact();

  // The physical keys there are, of the first copy that answers.
  std::vector<PlacedKey> keys() const;

 private:
  struct Step {
    std::span<const std::string> add, remove;
    bool replaces = false;
    bool creates = true;
  };
  Changed apply(const Step& step, std::optional<ArrayEncoding> encoding, bool lock);
  Changed append(const Step& step, std::optional<ArrayEncoding> encoding);
  // needless: there is a journal, and it is full. other: it has the JSON encoding.
  enum class Creation { needless, wanted, unwanted, other };
  Creation creation(const Context& context, const Step& step, std::optional<ArrayEncoding> encoding) const;
  struct Writing;
  void append_to(Writing& writing, std::size_t copy, bool late) const;
  Changed written(const Writing& writing) const;
  Contents fetch_here(std::optional<ArrayEncoding> encoding) const;
  Contents fetch_copies() const;
  JournalContents read_first() const;
  struct Union;
  Union read_copies() const;
  Union heal() const;
  std::optional<Compacted> compact_copies();
  Changed update_json(const Step& step, bool lock);
  Changed cas_json(const Step& step);
  void expect_no_journal() const;
  std::string json_key() const { return json_key_; }

  Journal journal() const { return {context_, kept_.key(), options_}; }
  Journal journal(std::size_t copy, bool lossy = false) const {
    Journal::Options options = options_;
    options.lossy = lossy;
    return {copies_.at(copy), kept_.key(), options};
  }

  Context context_;
  Copies copies_;
  mutable Kept kept_;     // looks where nothing was found
  std::string json_key_;  // has one copy
  Journal::Options options_;
};

// The elements that are left when the lines are gone through in order.
std::vector<std::string> replay(std::span<const JournalLine> lines);

// Those whose elements are left.
std::vector<JournalLine> without_removed(std::span<const JournalLine> lines);

// All lines of `first`, in their order. Those that only `second` has come behind what they follow there; at the end if
// `second` was read later. Lines about the same element keep their order as long as the two do not contradict each other.
enum class Newer { neither, second };
std::vector<JournalLine> unite(const std::vector<JournalLine>& first, const std::vector<JournalLine>& second,
                               Newer newer = Newer::neither);

}  // namespace mcds
