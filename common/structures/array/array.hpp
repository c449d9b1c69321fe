// A list that many clients change at the same time; each change is atomic. For lists of some thousand
// values; a table or hash is for more. Its contract stands at the end of this file.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/errors.hpp"
#include "common/journal/journal.hpp"
#include "common/primitives/key_names.hpp"

namespace mcds {

enum class ArrayEncoding { journal, json };

class Array {
 public:
  // Throws InvalidInput for a name that no key can contain.
  Array(const Context& context, std::string_view name, const Journal::Options& options = Journal::Options());

  struct Changed {
    bool found = true;  // false: there is no such array and the step does not create one; nothing was done
    bool created = false;
    ArrayEncoding encoding = ArrayEncoding::journal;
    std::size_t server = 0;
  };
  // One atomic step. Elements are texts made by quote_bytes() or compact_json(). Without an encoding:
  // the one the array has, else the journal. A step that only removes does not create an array.
  Changed change(std::span<const std::string> add, std::span<const std::string> remove,
                 std::optional<ArrayEncoding> encoding = {});
  // As change, in a journal, and then tells what exactly was deleted: each value as often as it was there.
  // Every value that is deleted is told to one caller at most, because the lines of one journal have one
  // order: the first removal behind it is the one that deleted it, and a compaction that drops the value
  // drops that line, too.
  // Throws UnknownOutcome if it can not be told any more: it is done, and whoever did it is not known.
  struct Told {
    Changed changed;
    std::vector<std::string> deleted = {};
  };
  Told change_and_tell(std::span<const std::string> add, std::span<const std::string> remove);
  // Replaces everything that was there before, in the same step. With no elements an empty array remains.
  Changed replace(std::span<const std::string> elements, std::optional<ArrayEncoding> encoding = {});

  struct Contents {
    bool found = false;
    std::vector<std::string> elements;
    JournalLoss loss = {};
    ArrayEncoding encoding = ArrayEncoding::journal;
    std::size_t server = 0;

    bool complete() const { return !loss.any(); }
  };
  // Without an encoding: the journal, else the JSON array.
  Contents fetch(std::optional<ArrayEncoding> encoding = {}) const;

  // Removes it from the servers, in either encoding; false: there was none. Throws CorruptData where another
  // program's value is, which stays; UnknownOutcome if a part is removed, and perhaps not all: what it has
  // not finished, for whatever reason, another run finishes.
  bool drop();

  // The existing keys.
  std::vector<PlacedKey> keys() const;

 private:
  struct Step {
    std::span<const std::string> add, remove;
    bool replaces = false;
    bool creates = true;
  };
  std::vector<std::string> deleted_by(const std::string& operation,
                                      std::span<const std::string> remove) const;
  Changed apply(const Step& step, std::optional<ArrayEncoding> encoding);
  Changed append(const Step& step, std::optional<ArrayEncoding> encoding, const std::string& operation) const;
  // needless: there is a journal, and it is full. other: it has the JSON encoding.
  enum class Creation { needless, wanted, unwanted, other };
  Creation creation(const Step& step, std::optional<ArrayEncoding> encoding) const;
  void compact() const;
  Changed cas_json(const Step& step) const;
  void expect_no_journal() const;
  static UnknownOutcome half_dropped(const Failure& failure);
  bool drop_json() const;
  bool drop_journal() const;
  bool drop_journal(std::optional<std::string>& left) const;
  std::vector<Request> removals_of(const JournalRoot& root, std::vector<std::string>& ids) const;

  Journal journal() const { return {context_, key_, options_}; }

  Context context_;
  std::string key_;
  std::string json_key_;
  Journal::Options options_;
};

// The elements that are left when the lines are replayed in order.
std::vector<std::string> replay(std::span<const JournalLine> lines);

// What compaction keeps: those whose elements are left, and the removals of the last 64 changes that are to
// be told what they deleted (their ids begin with 7e11), with what they removed.
std::vector<JournalLine> compacted(std::span<const JournalLine> lines);

}  // namespace mcds

// Key layout
//   array:<name>              the journal (default encoding): see common/journal/journal.hpp
//   array:<name>:s:<id>       its segments, once it has outgrown one item; each on the server of its journal
//   array:<name>:json         the JSON encoding: the whole value is one JSON array, for other languages
//   E.g. array:jobs = J1 9f0c6a5be1d27348 *4a1c09f2
//                     + b7c1e0f2a94d4f6e.0 "backup" *0b2f1c9e
//                     - 51ab22c0de7f1a90.0 "backup" *77d0a3c1
//   An element is a JSON text; bytes that are not UTF-8 are b"<base64>". The flags and ttl of an
//   application's JSON array are kept. The two encodings have different keys because an append is blind: it
//   would destroy an application's JSON array under the same key. Names that could be a part of another array
//   (…:json, …:s:<16 hex digits>) are refused.
// Invariants
//   fetch returns the result of some serial order of all acknowledged changes. A change is all or nothing,
//   and compaction drops none. A removal removes all equal elements added before it; in one change, removals
//   come before additions. The first change decides the encoding; a change with the other encoding is
//   refused. (If two clients create an array at the same moment in different encodings, both exist, and the
//   journal is the array.)
//   An array has one copy, whatever number of copies the context has.
// Round trips
//   journal  a change 1; 3 if it creates the array, because the JSON encoding is looked for first; more if
//            the item is full, see journal.hpp. A replacement of more than 256 KiB 2, plus 1 per half MiB.
//            fetch 1, with segments 2; a missing journal 2. drop 3, with segments 7.
//            To be told what was deleted 1 more, with segments 2.
//   json     a change 2 per attempt, 3 to create, 2 more unless the encoding is given; fetch 2, or 1 if the
//            encoding is given; a missing array 1 more. drop 3.
// Compaction
//   Whoever reads the journal, to fetch or to tell, and finds more than half of its lines dead, compacts it,
//   if it has segments, or 1024 lines and more. Who meets a full item looks for dead lines whenever the
//   segments have doubled, 1 trip more to see that. 4 trips, with segments 10 and 1 per half MiB that stays,
//   once per command: a claim lets one client at a time do it, and what a rival or a failure prevents is left
//   to the next. It changes neither what is there nor the answer. The last 64 changes that are to be told
//   keep what they removed.
// Removal, step by step
//   The JSON array goes first, for it would become the array if the journal went before it. The root of a
//   journal without segments is removed as it was read, by compare-and-delete. One with segments is first
//   replaced, by cas, with an empty one that goes on naming them; then the segments are removed; then this
//   root, as long as nothing was added. What another client adds meanwhile stays: it goes on with the empty
//   array, as if it had created it. Who dies in between leaves an empty array, which the next change or drop
//   uses as any other, and which names what is left to remove.
// When things fail
//   crash          a change is one append or one cas: nothing is half done. Who dies before it was told what
//                  it deleted has deleted it all the same, and nobody else is told.
//   lost reply     journal: looked up by the operation's id; json: by the value, otherwise unknown. A drop
//                  takes the ids with it: a change whose reply was lost before a drop may be made again after
//                  it. A drop itself ends with UnknownOutcome: run it again.
//   eviction, restart, flush   of the root: the array is gone, and the next change says created. Of a
//                  segment: fetch says complete: false until a replacement supersedes what is lost.
//   skew           no clock is used.
// Source
//   The article's "+1 +3 +4 -3 +5", with ids, checksums and a compaction that loses nothing.
