// A list of changes that any number of clients append to at the same time, and that never loses an
// acknowledged one. Arrays and indexes are made of it. Its contract stands at the end of this file.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/errors.hpp"
#include "common/journal/lines.hpp"
#include "common/primitives/context.hpp"

namespace mcds {

// One atomic change is at most this long as encoded, so that it always fits a sealed root.
constexpr std::size_t largest_change = 256 * 1024;

// What is known to be gone of a journal, at least. Nothing but a removal of everything that comes later, or a
// rewriting from what is whole, makes it untrue.
struct JournalLoss {
  std::uint64_t segments = 0;  // named and missing
  std::uint64_t lines = 0;     // there, but not as they were written: damaged, or another program's

  bool any() const { return segments != 0 || lines != 0; }
  bool operator==(const JournalLoss&) const = default;
};

struct JournalContents {
  bool found = false;
  std::string key;
  std::string incarnation;         // of the root: another for every creation
  std::vector<JournalLine> lines;  // in order, repeated ids and padding left out
  JournalLoss loss;
  std::uint64_t bytes = 0;            // read
  std::vector<std::string> segments;  // their keys
  std::size_t server = 0;
  CasUnique cas = {};  // of the root, if it was read to be compared
};

class Journal {
 public:
  struct Options {
    std::size_t segment_size = 512 * 1024;     // of the segments compaction writes
    std::size_t largest_padding = 512 * 1024;  // half an item: what compaction begins to fill the root with
    std::size_t largest_change = mcds::largest_change;
    std::size_t least_dead = 256;  // what is worth compacting one shard of an index for
    // What this creates or rewrites has lost something that came before, and keeps reporting it: its root
    // lists a segment that never exists, until it is rewritten from a complete copy.
    bool lossy = false;
    // Precedes everything else in a journal that this creates.
    std::string birth = {};
    // What stands beside it is compared before it is changed: no journal is begun on a server without cas.
    bool compares = false;
  };
  Journal(const Context& context, std::string key) : Journal(context, std::move(key), Options()) {}
  Journal(const Context& context, std::string key, const Options& options)
      : context_(context), key_(std::move(key)), options_(options) {}

  struct Appended {
    bool created = false;     // there was no journal
    bool declined = false;    // `may_create` said no: nothing was appended
    bool doubled = false;     // it was full, and has so many segments by now that compacting it may pay
    bool repeated = false;    // what got no reply before may yet be executed
    std::string incarnation;  // when created
    std::size_t server = 0;
  };
  // All lines at once, under the ids they carry. `may_create`, if given, is asked once when the journal is
  // missing or full, and says whether it is full; a missing one is not created then, also if it goes missing
  // later. Throws InvalidInput when the lines are too many for one step, NotApplied, UnknownOutcome.
  Appended append(std::span<const JournalLine> lines, const std::function<bool()>& may_create = {});

  // As append, for lines of which the first removes everything: they may be any number.
  Appended replace(std::span<const JournalLine> lines, const std::function<bool()>& may_create = {});

  // A change that is being appended.
  struct Attempt {
    std::string id;           // of its first line
    std::string incarnation;  // the journal's, if this change creates it; the same in every attempt
    Request request;
  };
  // As append, for many journals at once: the caller sends the requests of the attempts, each to its own
  // journal, and settle() says how it went. `text`: the lines as they are stored, under ids of their own, of
  // which `id` is the first.
  Attempt attempt_of(std::string text, std::string id) const;
  Appended settle(const Attempt& attempt, Reply reply);

  // Throws NotApplied, CorruptData.
  JournalContents read() const;

  // Replaces all lines by what `rewrite` makes of them (which may be called again if another client
  // interfered), unless that is nullopt: it is not worth while.
  // Returns false, with nothing changed, if there is no journal, or one of more than `most_segments`, or a
  // part of it is lost; with `despite_loss` what is left counts as all of it. Throws Contention.
  using Rewrite = std::function<std::optional<std::vector<JournalLine>>(const std::vector<JournalLine>&)>;
  bool compact(const Rewrite& rewrite, bool despite_loss = false,
               std::size_t most_segments = std::numeric_limits<std::size_t>::max());

  // For who seals or compacts: false if another client does so just now.
  bool claim() const;
  void give_up_claim() const;

  const std::string& key() const { return key_; }

 private:
  Attempt attempt_of(std::span<const JournalLine> lines) const;
  Appended settle(const Attempt& attempt, Reply reply, int& lookups);
  std::optional<Appended> look_up(const Attempt& attempt) const;
  Appended replace_by(const std::vector<SegmentName>& added, const std::function<bool()>& may_create);
  enum class Full { gone, sealed, doubled, of_nothing };
  Full seal_full() const;
  bool seal(const Reply& root) const;
  void fill() const;
  bool swap(const JournalRoot& old, const std::vector<JournalLine>& lines, std::optional<Reply> reply) const;
  std::vector<SegmentName> write_segments(std::span<const JournalLine> lines) const;
  void remove_segments(std::span<const SegmentName> segments) const;

  const Context& context_;
  std::string key_;
  Options options_;
};

struct JournalReading;

// Many journals: a single trip for all roots, then the segments of whichever is taken, so that only one is in
// memory at a time. A root that could not be read is reported when it is taken. It keeps the context: a
// structure that is found to be under other keys makes its parts anew, and a fetch may go on meanwhile.
class JournalReader {
 public:
  // Reads the roots; to be compared with what is there later, they are asked for with their cas uniques.
  enum class Roots { to_read, to_compare };
  static JournalReader read(const Context& context, std::span<const std::string> keys,
                            Roots roots = Roots::to_read);
  ~JournalReader();
  JournalReader(JournalReader&&) noexcept;
  JournalReader& operator=(JournalReader&&) = delete;
  const std::optional<Failure>& failure(std::size_t index) const;
  bool failed(std::size_t index) const { return failure(index).has_value(); }
  bool found(std::size_t index) const;
  // Of the root; empty when there is none.
  const std::string& incarnation(std::size_t index) const;
  // The journal of keys[index]; once.
  JournalContents take(std::size_t index);
  // The same, but passes on the lines, repeated ids too, instead of keeping them.
  JournalContents take(std::size_t index, const TellLine& tell);

 private:
  explicit JournalReader(Context context);
  JournalReading& read_whole(std::size_t index);
  Context context_;
  std::vector<JournalReading> readings_;
};

// Removes each as it was read to be compared, and then its segments; those that have changed since stay:
// false. Throws NotApplied, UnknownOutcome.
std::vector<bool> remove_journals(const Context& context, std::span<const JournalContents> seen);

// A fresh operation id: 16 hex digits.
std::string journal_line_id(const std::string& operation, std::size_t n);

}  // namespace mcds

// Key layout
//   <key>            the root: header, names of segments, then the tail of lines appended since; bytes:
//                    lines.hpp
//   <key>:s:<id>     a segment: lines that were once a tail; never changed after it is listed; on the server
//                    of <key>
//   <key>:s:0000000000000000   the claim of the client that seals or compacts
// Invariants
//   The journal is the lines of the segments in order, then those of the tail. A change is one append to the
//   root: the server applies it completely or not at all, and orders it with all others. Only a cas of the
//   root moves lines, and it compares with the root whose lines it moves: an append between reading and
//   writing makes it fail, so no acknowledged line is left behind. A reader sees one root and segments that
//   do not change: a snapshot.
//   Lines before a removal of everything have no effect: a segment lost among them is no loss.
// Round trips
//   append 1 / 2 if it creates the root, 4 if it asks before. read 1, 2 with segments. Full root: the client
//   that finds it full claims and seals it: 5.
// Sealing and compaction, step by step
//   A full root accepts no appends (NOT_STORED), so only another sealer can make a sealer's cas fail. Of the
//   clients that find it full, one claims the sealing (add of a key that expires; without the claim they
//   would all do the same work, no worse), and the others wait a few milliseconds.
//   seal: read the root; add a segment with its tail under a fresh name; cas the root to the names and an
//   empty tail. A crash after the add leaves a segment that no root lists, to be evicted. Two sealers: one
//   cas fails, and its segment is removed unless the cas got no reply, because then the root may list it.
//   replace, more than one change can hold: write the lines as segments, cas the root to them. A crash before
//   the cas leaves unlisted segments.
//   compact: read the root, and the segments, which do not change whatever is appended (the tail is sealed
//   before); cas the root to the lines that are left, if they are many as new segments under fresh names, in
//   place of what was read, keeping the segments and the tail that came since; remove the old segments. If a
//   rival append makes the cas fail, the root is filled with padding lines first until nothing fits; this
//   keeps 64 appenders from starving it. Who seals cannot know whether it pays; it is told to try when the
//   number of segments has doubled, so a journal that only grows is read twice in all, not for each segment.
//   If what was read is not in front any more, because another sealed or compacted it, it starts again. A
//   crash before the cas leaves the old journal, padded; after it, old segments that no root lists. A reader
//   on its way to removed segments finds the root changed and starts again; the same root with a segment
//   missing is a loss, and is reported.
// When things fail
//   lost reply   append: the journal is searched for the operation's id; if absent, the change is appended
//                again under the same id. Of several lines with one id only the first counts, so a request
//                that is executed late has no effect; compaction keeps the last 256 dropped ids for that.
//   eviction, restart, flush   of the root: the journal starts again, and the next append says created. Of a
//                segment: read reports it.
//   another program's data under the key: CorruptData; foreign lines among ours are skipped and
//                counted (JournalLoss), and what counts some is not compacted, so that the loss goes on being
//                told.
//   A server without memory refuses appends as full items do; after `most_appends` attempts that is reported.
//   So is, at once, a change for which there is no room beside the names of the segments: items may be small
//   (seal.hpp). Segments are divided as often as it takes, and one removal of everything remembers fewer
//   ids.
// Source
//   Own. The in-place variants that it replaces were measured: cas under appenders succeeds one time in ten,
//   and delete and add loses everything on a crash.
