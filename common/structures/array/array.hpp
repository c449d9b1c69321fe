// Array is a list that many clients change at the same time; each change is atomic. Use it for lists of some
// thousand values, and a table or hash for more. Its contract is at the end of this file.
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
  // Throws InvalidInput if no key can contain `name`.
  Array(const Context& context, std::string_view name, const Journal::Options& options = Journal::Options());

  struct Changed {
    bool found = true;  // false: no such array exists, the step does not create one, and nothing was done
    bool created = false;
    ArrayEncoding encoding = ArrayEncoding::journal;
    std::size_t server = 0;
  };
  // Makes one atomic step. Elements are texts made by quote_bytes() or compact_json(). Without an encoding,
  // uses that of the array, or a journal if it is missing. A step that only removes does not create an array.
  Changed change(std::span<const std::string> add, std::span<const std::string> remove,
                 std::optional<ArrayEncoding> encoding = {});
  // Does the same in a journal and returns exactly what was deleted, each value as often as it existed. Every
  // deleted value is returned to at most one caller, because the lines of a journal have one order: the first
  // removal after the value deleted it, and a compaction that drops the value drops that line too. Throws
  // UnknownOutcome if the values are deleted but it is not known by which change.
  struct ChangeResult {
    Changed changed;
    std::vector<std::string> deleted = {};
  };
  ChangeResult change_and_report(std::span<const std::string> add, std::span<const std::string> remove);
  // Replaces all elements in one step. Without elements, an empty array remains.
  Changed replace(std::span<const std::string> elements, std::optional<ArrayEncoding> encoding = {});

  struct Contents {
    bool found = false;
    std::vector<std::string> elements;
    JournalLoss loss = {};
    ArrayEncoding encoding = ArrayEncoding::journal;
    std::size_t server = 0;

    bool complete() const { return !loss.any(); }
  };
  // Returns the elements. Without an encoding, reads the journal, or the JSON array if there is none.
  Contents fetch(std::optional<ArrayEncoding> encoding = {}) const;

  // Removes the array in either encoding. Returns false if there was none. Throws CorruptData for another
  // program's value, which stays, and UnknownOutcome if a part may remain; drop it again then.
  bool drop();

  // Returns the existing keys.
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
  // needless: there is a journal, and it is full. other: the array has the JSON encoding.
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

// Returns the elements that remain after the lines are applied in order.
std::vector<std::string> replay(std::span<const JournalLineView> lines);

// Returns the lines that compaction keeps: those whose elements remain, and the removals of the last 64
// changes that return what they deleted (their ids begin with 7e11) with the lines that they removed.
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
//   application's JSON array are kept. The encodings have different keys because a blind append would destroy
//   an application's JSON array. Names that could be a part of another array (…:json, …:s:<word>)
//   are refused.
// Invariants
//   fetch returns the result of some serial order of all acknowledged changes. A change is all or nothing,
//   and compaction drops none. A removal removes all equal elements added before it; in one change, removals
//   come before additions. The first change decides the encoding; a change with the other encoding is
//   refused. If two clients create an array at the same moment in different encodings, both exist, and the
//   journal is the array.
//   An array has one copy, whatever number of copies the context has.
// Round trips
//   journal  a change 1; 3 if it creates the array, because it first checks for the JSON encoding; more if
//            the item is full, see journal.hpp. A replacement of more than 256 KiB 2, plus 1 per half MiB.
//            fetch 1, with segments 2; a missing journal 2. drop 3, with segments 7. Returning what was
//            deleted 1 more, with segments 2. Compaction 4, with segments 10 and 1 per half MiB that remains.
//   json     a change 2 per attempt, 3 to create, 2 more unless the encoding is given; fetch 2, or 1 if the
//            encoding is given; a missing array 1 more. drop 3.
// When things fail
//   crash          A change is one append or one cas, so nothing is half done. If a client crashes before it
//                  has reported what it deleted, the values are deleted and no client reports them.
//   lost reply     A change of a journal is looked up by its id, a change of a JSON array by its value,
//                  otherwise its outcome is unknown. A drop also removes the ids: a change whose reply was
//                  lost before a drop may be made again after it. A drop ends with UnknownOutcome: run it
//                  again.
//   eviction, restart, flush   If the root is lost, the array is gone, and the next change says created. If a
//                              segment is lost, fetch says complete: false until a replacement supersedes the
//                              loss.
//   skew           No clock is used.
// Source
//   The article's "+1 +3 +4 -3 +5", with ids, checksums and a compaction that loses nothing.
