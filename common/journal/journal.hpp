// Journal keeps a list of changes that any number of clients append to at the same time, without losing an
// acknowledged change. JournalReading is one reading of it. Arrays and indexes are journals. The contract is
// at the end of this file.
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
#include "common/primitives/cas_update.hpp"

namespace mcds {

// The maximum size of one atomic change as encoded, so that it always fits into a sealed root.
constexpr std::size_t max_change = 256 * 1024;

// A lower bound of what a journal has lost. It stays true until everything is removed later, or until the
// journal is rewritten from a complete copy.
struct JournalLoss {
  std::uint64_t segments = 0;  // named and missing
  std::uint64_t lines = 0;     // present but damaged, or another program's
  std::uint64_t unknown = 0;   // present and whole, in a form that this version does not know; not ended by a
                               // removal of everything, which may not concern them

  bool any() const { return segments != 0 || lines != 0 || unknown != 0; }
  bool operator==(const JournalLoss&) const = default;
};

struct JournalContents {
  bool found = false;
  std::string key;
  std::string incarnation;         // of the root, new for every creation
  std::vector<JournalLine> lines;  // in order, without repeated ids and padding
  JournalLoss loss;
  std::uint64_t bytes = 0;            // read
  std::vector<std::string> segments;  // their keys
  std::size_t server = 0;
  CasUnique cas = {};  // of the root, if it was read with RootRead::to_compare
};

// A client that finds the root full waits this long for the client that filled it on purpose or seals it.
constexpr BackOff journal_patience{std::chrono::milliseconds(4), std::chrono::milliseconds(50)};

// The maximum size of a journal that is read, in stored bytes.
constexpr std::size_t max_journal_size = std::size_t{128} << 20;
constexpr std::size_t segments_per_read = 64;

std::string segment_key(const std::string& root, const std::string& id);

struct JournalReading;

class Journal {
 public:
  struct Options {
    std::size_t segment_size = 512 * 1024;  // maximum size of the segments that compaction writes
    std::size_t max_padding = 512 * 1024;   // half an item; the first padding of fill()
    std::size_t max_change = mcds::max_change;
    std::size_t min_dead = 256;  // dead lines that make an index shard worth compacting
    // A journal that this creates or rewrites keeps reporting an earlier loss: its root lists a segment that
    // never exists, until it is rewritten from a complete copy.
    bool lossy = false;
    // The first lines of a journal that this creates.
    std::string birth = {};
    // Keys next to the journal are changed by cas, so no journal is created on a server without cas.
    bool compares = false;
    // The journal was just read and was missing, so an append creates it first.
    bool seems_missing = false;
  };
  Journal(const Context& context, std::string key) : Journal(context, std::move(key), Options()) {}
  Journal(const Context& context, std::string key, const Options& options)
      : context_(context), key_(std::move(key)), options_(options) {}
  // The context is referred to, not copied.
  Journal(const Context&&, std::string key) = delete;
  Journal(const Context&&, std::string key, const Options& options) = delete;

  struct Appended {
    bool created = false;     // there was no journal
    bool declined = false;    // `may_create` returned false; nothing was appended
    bool doubled = false;     // it was full, and its segments have doubled: compaction may pay
    std::string incarnation;  // when created
    std::size_t server = 0;
  };
  // Appends all lines at once, under the ids they carry. `may_create`, if given, is called once if the
  // journal is missing or full, and returns true if it is full; a missing journal is then not created, even
  // if it disappears later. Throws InvalidInput if the lines exceed one step, NotApplied, UnknownOutcome.
  Appended append(std::span<const JournalLine> lines, const std::function<bool()>& may_create = {});

  // Does the same for any number of lines, of which the first removes everything.
  Appended replace(std::span<const JournalLine> lines, const std::function<bool()>& may_create = {});

  // A change that is being appended.
  struct Attempt {
    std::string id;           // of its first line
    std::string incarnation;  // the journal's, if this change creates it; the same for every retry
    Request request;
  };
  // attempt_of() and settle() append to many journals at once: the caller sends the request of each attempt,
  // and settle() handles its reply and returns the result. `text` has the lines as stored, each with its own
  // id; `id` is that of the first.
  Attempt attempt_of(std::string text, std::string id) const;
  Appended settle(const Attempt& attempt, Reply reply);

  // Returns the journal's contents. Throws NotApplied, CorruptData.
  JournalContents read() const;
  // Does the same and returns the reading, which has the lines as views.
  JournalReading read_whole() const;

  // Replaces all lines by those that `rewrite` returns, unless it returns nullopt because that is not
  // worthwhile. `rewrite` may be called again after a conflicting write. Returns false, with nothing changed,
  // if there is no journal, if it has more than `max_segments` segments or lines in an unknown form, or if a
  // part is lost. With `despite_loss`, what remains of a loss counts as complete. Throws Contention.
  using Rewrite = std::function<std::optional<std::vector<JournalLine>>(const std::vector<JournalLine>&)>;
  bool compact(const Rewrite& rewrite, bool despite_loss = false,
               std::size_t max_segments = std::numeric_limits<std::size_t>::max());

  // Claims the journal for sealing or compaction. Returns false if another client has claimed it.
  bool claim() const;
  void give_up_claim() const;

 private:
  Attempt attempt_of(std::span<const JournalLine> lines) const;
  Appended settle(const Attempt& attempt, Reply reply, int& lookups);
  std::optional<Appended> look_up(const Attempt& attempt) const;
  std::string remembered(JournalReading reading, std::size_t most) const;
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

// The reading of one journal: its root, then its segments.
struct JournalReading {
  JournalReading() = default;
  // Takes the root from the reply to a get or gets. Throws CorruptData.
  JournalReading(std::string of, const Context& context, Reply reply) : key(std::move(of)) {
    take_root(context, std::move(reply));
  }

  std::string key;
  JournalContents contents;
  std::string root_value;
  JournalRoot root;
  std::vector<std::optional<std::string>> segments;  // nullopt: missing
  bool complete = false;
  std::optional<Failure> failure = {};

  void take_root(const Context& context, Reply reply);
  void read_segments(const Context& context);
  // Reads the root again after a segment was missing: if it was compacted away, the root names others now.
  void reread_root(const Context& context);
  // Passes each line, repeated ids included, to `report`, as a view that is valid as long as this reading.
  // Completes `contents`. Call it once, as the two below, which use it.
  void report_lines(const ReportLine& report);
  // Returns the size of the root and of the segments that were read.
  std::size_t bytes() const;
  // Returns the first line of each id as a view.
  std::vector<JournalLineView> views();
  // Returns the contents with copies of these lines.
  JournalContents finish();
};

// Reads many journals: all roots in one round trip, then the segments of a journal when it is taken, so that
// only one journal is in memory at a time. A root that could not be read is reported when it is taken. Copies
// the context, because a structure may recreate its parts under other keys during a fetch.
class JournalReader {
 public:
  // Reads the roots; to_compare reads them with their cas tokens.
  enum class RootRead { to_read, to_compare };
  JournalReader(const Context& context, std::span<const std::string> keys,
                RootRead roots = RootRead::to_read);
  const std::optional<Failure>& failure(std::size_t index) const { return readings_.at(index).failure; }
  bool failed(std::size_t index) const { return failure(index).has_value(); }
  bool found(std::size_t index) const { return readings_.at(index).contents.found; }
  // Returns the root's incarnation, or an empty string if there is no root.
  const std::string& incarnation(std::size_t index) const { return readings_.at(index).contents.incarnation; }
  // Returns the journal of keys[index]. Call it once.
  JournalContents take(std::size_t index) { return read_whole(index).finish(); }
  // Returns the reading of keys[index], which has its lines as views. Call it once.
  JournalReading read_whole(std::size_t index);

 private:
  Context context_;
  std::vector<JournalReading> readings_;
};

// Removes each root by the cas token with which it was read, and then its segments. Returns false for each
// journal that has changed since and therefore stays. Throws NotApplied, UnknownOutcome.
std::vector<bool> remove_journals(const Context& context, std::span<const JournalContents> seen);

// Returns the id of line `n` of an operation: `<operation>.<n>`.
std::string journal_line_id(const std::string& operation, std::size_t n);

}  // namespace mcds

// Key layout
//   <key>            the root: header, names of segments, then the tail of lines appended since (lines.hpp)
//   <key>:s:<id>     a segment: lines that were once a tail; never changed after it is listed; on the server
//                    of <key>
//   <key>:s:0000000000000000   the claim of the client that seals or compacts
// Invariants
//   The journal is the lines of the segments in order, then those of the tail. A change is one append to the
//   root: the server applies it completely or not at all, and orders it with all others. Only a cas of the
//   root moves lines, and it compares with the root whose lines it moves. An append in between makes it fail,
//   so no acknowledged line is lost. A reader sees one root and segments that do not change, which is a
//   snapshot.
//   Lines before a removal of everything have no effect, so a segment lost among them is no loss.
//   compaction.cpp explains sealing and compaction at each step.
// Round trips
//   append 1; 2 if it creates the root, 4 if it asks before. read 1, 2 with segments. The client that finds
//   the root full, claims and seals it needs 5. A replacement by segments of segments needs one trip more,
//   and another for each further 64 segments.
// When things fail
//   lost reply   The journal is searched for the id of an append; if it is absent, the change is appended
//                again under the same id. Of several lines with one id only the first counts, so a request
//                that is executed late has no effect. For that, compaction and replacement keep the last 256
//                dropped ids.
//   eviction     If the root is lost, the journal starts again, and the next append says created. read
//                reports a lost segment.
//   foreign data Another program's value under the key is CorruptData. Foreign lines among ours are skipped
//                and counted (JournalLoss); such a journal is not compacted, so that the loss stays reported.
//   no memory    A server without memory refuses appends as a full item does; after `max_appends` attempts
//                that is reported. A change for which there is no room next to the names of the segments is
//                reported at once: items may be small (seal.hpp). Segments are divided as often as necessary,
//                and one replacement then remembers fewer ids.
// Source
//   Own. The in-place variants were measured: cas against concurrent appenders succeeds one time in ten, and
//   delete and add loses everything on a crash.
