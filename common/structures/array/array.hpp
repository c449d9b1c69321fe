// A list that many clients change at the same time; each change is atomic. For lists of some thousand
// values; a table or hash is for more. Its contract stands at the end of this file.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/primitives/journal/journal.hpp"
#include "common/primitives/key_names.hpp"
#include "common/primitives/several/kept.hpp"
#include "common/primitives/several/replicas.hpp"

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
    std::vector<CopyOutcome> copies = {};
  };
  // One atomic step. Elements are texts made by quote_bytes() or compact_json(). Without an encoding:
  // the one the array has, else the journal. A step that only removes does not create an array. The lock is
  // for JSON only.
  Changed change(std::span<const std::string> add, std::span<const std::string> remove,
                 std::optional<ArrayEncoding> encoding = {}, bool lock = false);
  // As change, in a journal of one copy, and then tells what exactly was deleted: each value as often as it
  // was there. Every value that is deleted is told to one caller at most, because the lines of one journal
  // have one order: the first removal behind it is the one that deleted it, and a compaction that drops the
  // value drops that line, too.
  // Throws UnknownOutcome if it can not be told any more: it is done, and whoever did it is not known.
  struct Told {
    Changed changed;
    std::vector<std::string> deleted = {};
  };
  Told change_and_tell(std::span<const std::string> add, std::span<const std::string> remove);
  // Replaces everything that was there before, in the same step.
  Changed replace(std::span<const std::string> elements, std::optional<ArrayEncoding> encoding = {},
                  bool lock = false);
  // An empty array remains.
  Changed clear(std::optional<ArrayEncoding> encoding = {}, bool lock = false) {
    return apply({.add = {}, .remove = {}, .replaces = true, .creates = false}, encoding, lock);
  }

  struct Contents {
    bool found = false;
    std::vector<std::string> elements;
    JournalLoss loss = {};  // of the copy that has lost least
    std::size_t lines = 0;  // of the journal
    ArrayEncoding encoding = ArrayEncoding::journal;
    std::size_t server = 0;

    bool complete() const { return !loss.any(); }
  };
  // Without an encoding: the journal, else the JSON array.
  Contents fetch(std::optional<ArrayEncoding> encoding = {}) const;

  struct Compacted {
    std::size_t lines_before = 0;
    std::size_t lines = 0;
    // A copy that does not answer could restore what is dropped without it, so nothing was dropped.
    std::optional<Failure> away = {};
  };
  // Drops removed values, of several copies those of which every copy has all changes; nullopt: there is no
  // journal, or a part of it is lost. Throws Contention.
  std::optional<Compacted> compact();

  // See Kept.
  using Recopied = Kept::Recopied;
  Recopied recopy();

  // Ends it, in either encoding: the servers keep nothing of it; as recopy, to no copies. False: there was
  // none.
  bool drop();

  // The existing keys, of the first copy that answers.
  std::vector<PlacedKey> keys() const;

 private:
  struct Step {
    std::span<const std::string> add, remove;
    bool replaces = false;
    bool creates = true;
  };
  std::vector<std::string> deleted_by(const std::string& operation,
                                      std::span<const std::string> remove) const;
  Changed apply(const Step& step, std::optional<ArrayEncoding> encoding, bool lock);
  Changed append(const Step& step, std::optional<ArrayEncoding> encoding, const std::string& operation);
  // needless: there is a journal, and it is full. other: it has the JSON encoding.
  enum class Creation { needless, wanted, unwanted, other };
  Creation creation(const Context& context, const Step& step, std::optional<ArrayEncoding> encoding) const;
  struct Writing;
  Result<Journal::Appended> append_to(const Writing& writing, std::size_t copy, bool lossy,
                                      const std::function<bool()>& may_create) const;
  Changed append_again(const Writing& writing, std::optional<ArrayEncoding> encoding,
                       const std::string& operation);
  void settle(Writing& writing) const;
  bool is_elsewhere(const Writing& writing);
  [[noreturn]] static void raise_perhaps(const Writing& writing, const Failure& failure);
  bool thaw() const;
  Changed written(const Writing& writing) const;
  bool take_back(const Writing& writing) const;
  Contents fetch_here(std::optional<ArrayEncoding> encoding) const;
  Contents fetch_journals() const;
  JournalContents read_first() const;
  struct Union;
  Union read_copies() const;
  Union ask_for_decision(const Union& seen) const;
  Union heal() const;
  void complete_copy(const Union& all, std::size_t copy, bool& outbid) const;
  std::vector<std::optional<Failure>> make_equal() const;
  std::optional<Compacted> compact_here();
  std::optional<Compacted> compact_copies();
  Changed update_json(const Step& step, bool lock);
  Changed cas_json(const Step& step);
  void expect_no_journal() const;
  // Of several copies none is JSON. A client that used fewer may have left such an array: it is looked for,
  // so that it is not taken for nothing, and its server need not answer.
  bool has_one_copy() const { return is_only(copies_.size()); }
  bool is_json(const Reply& reply, bool asked) const;

  static void move(Recopying& change, const std::string& name, const Journal::Options& options);

  Journal journal() const { return {context_, kept_.key(), options_}; }
  Journal journal(std::size_t copy, bool lossy = false) const {
    Journal::Options options = options_;
    options.lossy = lossy;
    return {copies_.at(copy), kept_.key(), options};
  }

  Context context_;
  std::string name_;
  Replicas copies_;
  mutable Kept kept_;     // looks for other copies if nothing was found
  std::string json_key_;  // has one copy
  Journal::Options options_;
};

// The elements that are left when the lines are replayed in order.
std::vector<std::string> replay(std::span<const JournalLine> lines);

// Those whose elements are left.
std::vector<JournalLine> without_removed(std::span<const JournalLine> lines);

// All lines of `first`, in their order. A line that only `second` has follows the line it follows there; at
// the end if `second` was read later. Lines about the same element keep their order as long as the two do not
// contradict each other. The first lines of `first`, so many as are decided, have nothing between them.
enum class Newer { neither, second };
std::vector<JournalLine> unite(const std::vector<JournalLine>& first, const std::vector<JournalLine>& second,
                               Newer newer = Newer::neither, std::size_t decided = 0);

// All lines of the copies of one array, without word of decisions (see below).
std::vector<JournalLine> unite_all(std::vector<std::vector<JournalLine>> copies);

}  // namespace mcds

// Key layout
//   array:<name>              the journal (default encoding): see common/primitives/journal/journal.hpp; in N
//                             copies, N at least 2, array<N>:<name>: see common/primitives/several/kept.hpp
//   array:<name>:s:<id>       its segments, once it has outgrown one item; each on the server of its journal
//   array:<name>:json         the JSON encoding: the whole value is one JSON array, for other languages
//   array:<name>:json:lock    the lock of --lock, see lock.hpp
//   E.g. array:jobs = J1 9f0c6a5be1d27348 *4a1c09f2
//                     + b7c1e0f2a94d4f6e.0 "backup" *0b2f1c9e
//                     - 51ab22c0de7f1a90.0 "backup" *77d0a3c1
//   An element is a JSON text; bytes that are not UTF-8 are b"<base64>". The flags and ttl of an
//   application's JSON array are kept. The two encodings have different keys because an append is blind: it
//   would destroy an application's JSON array under the same key. Names that could be a part of another array
//   (…:json, …:s:<16 hex digits>, …:lock) are refused.
// Invariants
//   fetch returns the result of some serial order of all acknowledged changes. A change is all or nothing,
//   and compaction drops none. A removal removes all equal elements added before it; in one change, removals
//   come before additions. The first change decides the encoding; a change with the other encoding is
//   refused. (If two clients create an array at the same moment in different encodings, both exist, and the
//   journal is the array.)
// Round trips
//   journal  a change 1; 6 if it creates the array, because the JSON encoding and other numbers of copies are
//            looked for first, and the latter again before it answers; more if the item is full, see
//            journal.hpp. A replacement of more than 256 KiB 2, plus 1 per half MiB. fetch 1, with segments
//            2; a missing journal 3.
//            To be told what was deleted 1 more, with segments 2.
//   json     a change 2 per attempt, 5 to create, 2 more unless the encoding is given, 4 more with a lock;
//            fetch 2, or 1 if the encoding is given; a missing array 1 more.
// With several copies
//   journal  When a change is done, and what a fetch may answer: several/quorum.hpp. A copy whose root says
//            that something is lost does not count as answering. With 3 copies and more what undoes (delete,
//            clear, replace) first reads them, gives each the lines it lacks, and is appended to those that
//            have all: no copy has a removal without the additions before it. A line that few copies have is
//            given to most before a fetch answers it. Each copy is a journal of its own, and a change is
//            appended to all of them under one id. The array is the union of their lines by id, in the order
//            on which most copies agree; a line that only another copy has follows the lines it follows
//            there, and an addition that not all have also the removals that not all have, because who
//            removes gives each copy what it saw. What only adds reads nothing first, for that would be
//            another trip: where too few servers answer, it ends with 80 if one copy got it, not with 69. If
//            it did not reach every copy, those that answer are made equal before it is acknowledged, 1 trip
//            more and what they lack. A fetch rewrites a copy that lacks lines, or in whose order something
//            else is left, after a second look, because they may be in transit. If no copy is known to be
//            complete, all get what any has, and their roots keep listing the lost segment: healing never
//            erases the evidence. A copy that is created after others is born lossy (journal.hpp), so it does
//            not vouch for what came before it. compact drops nothing while a copy does not answer. A
//            change that finds some copies without a journal creates it there, 2 trips more; otherwise a
//            concurrent fetch could complete them without a removal.
//   order    Changes at the same moment may reach the copies in different orders, which leave different
//            elements. Who sees that, to read or to undo, decides for all (2 trips more) as one does by
//            ballots: it gives most copies word of a number above all that it sees, reads them again, takes
//            the order of the copy that was written under the highest number, and writes it to all that
//            answer, under its own, but to none that has word of a higher one. Of two who decide, one meets
//            the other's word in a copy that both need, before or after it was written: so once most copies
//            have an order under a number, all that is written under higher ones has it, too, and what they
//            had not comes behind it. Without a number the order of most copies that answer counts, of a tie
//            the one that leaves most: who undoes has seen what was acknowledged before, so an addition that
//            it did not see may be later. The numbers are lines of forgotten ids, of which each copy has its
//            own: `= <number, 16 hex digits>.<16 of who decides>`, and with an "a" behind it once the copy
//            was written under it.
//            What is not solved: who meets only two of three, which agree, leaves no word of it, for that
//            would cost every such fetch a trip. If a replacement, clear or deletion is late at these two and
//            was before an addition at the third, who then meets the third and one of them may decide for
//            the third's order; it answers with the addition what the former answered without.
//   recopy   The old roots are held (journal.hpp); all lines are written as segments of the new journals,
//            which the mark names; then the old roots are let go, and the new ones added. An array that has
//            lost something goes on saying so. A client that finds a root held waits until the mark is gone;
//            if there is no mark, it thaws the root.
//   json     has one copy; several are refused. Its key is looked for before a journal is created, and a
//            server of that key that does not answer does not prevent the creation.
// When things fail
//   crash          a change is one append or one cas: nothing is half done. Who dies before it was told what
//                  it deleted has deleted it all the same, and nobody else is told.
//   lost reply     journal: looked up by the operation's id; json: by the value, otherwise unknown.
//   eviction, restart, flush   of the root: the array is gone, and the next change says created. Of a
//                  segment: fetch says complete: false until a replace or clear supersedes what is lost.
//   skew           no clock is used.
// Source
//   The article's "+1 +3 +4 -3 +5", with ids, checksums and a compaction that loses nothing.
