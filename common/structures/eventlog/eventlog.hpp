// Event log: a ring of chunks of C seconds that expire by themselves; every event is kept for N chunks. For
// what happened lately: alerts, jobs, reports. Its contract stands at the end of this file.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "common/base/errors.hpp"
#include "common/primitives/key_names.hpp"
#include "common/structures/eventlog/event.hpp"

namespace mcds {

struct CursorState;  // cursor.hpp

// Puts events. Throws InvalidInput for an unusable name. Without a shape: as the log was last written; the
// usual shape if nothing of it is there.
class LogWriter {
 public:
  LogWriter(const Context& context, std::string_view name, const std::optional<RingShape>& shape);
  ~LogWriter();

  // One event, now or at `at`; throws InvalidInput for times outside [now - N C, now + C]. `id`: of that
  // time, made by new_id(); put twice it is one event.
  struct Put {
    EventId id;
    std::size_t server;
  };
  Put put(std::string_view data, EventData kind, std::optional<WallTime> at = std::nullopt,
          const std::optional<EventId>& id = std::nullopt);
  // Returns an id of now.
  EventId new_id();

  // Many events: lines are collected until stage() says that they must be flushed first (nullopt). A flush
  // that throws has dropped its lines: none is known to be stored.
  std::optional<EventId> stage(std::string_view data, EventData kind,
                               std::optional<WallTime> at = std::nullopt,
                               const std::optional<EventId>& as = std::nullopt);
  std::size_t staged() const;
  struct Flushed {
    std::size_t server = 0;  // it went to
    std::size_t events = 0;  // stored: all, or as many as came before `failure`
    std::optional<EventId> last = {};
    std::optional<Failure> failure = {};
  };
  Flushed flush();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

struct LogGap {
  enum class Reason { expired, evicted } reason;
  WallTime from;
  WallTime to;  // exclusive
};

// Receives what a read finds, in the order of time.
class LogSink {
 public:
  virtual ~LogSink() = default;
  // False: end the read.
  virtual bool event(const EventLine& event) = 0;
  virtual void gap(const LogGap& gap) = 0;
  // Bytes in the log that are not of this format; they are skipped.
  virtual void damaged(const CorruptData& damage) = 0;
};

struct LogRange {
  std::optional<WallTime> first{};  // inclusive
  std::optional<WallTime> last{};   // inclusive, to the millisecond
  std::optional<EventId> after{};   // only ids greater than this
  std::optional<std::uint64_t> limit{};
  bool only_if_sole = false;  // nothing is delivered where other shapes are in use
};

// What a read found.
struct LogSummary {
  std::uint64_t events = 0;
  std::uint64_t chunks = 0;  // that hold something
  std::uint64_t parts = 0;
  std::uint64_t bytes = 0;
  bool directory = false;         // one was there
  std::vector<RingShape> shapes;  // in use, the newest last
  bool declined = false;          // see LogRange::only_if_sole
  // Servers that could not be asked; only reads that tolerate this have any.
  std::vector<Failure> unreachable;

  bool found_nothing() const { return parts == 0 && !directory; }
};

// Reads the ring of one shape. Throws InvalidInput for an unusable name.
class LogReader {
 public:
  LogReader(const Context& context, std::string_view name, const RingShape& shape);
  ~LogReader();

  // How long after a part was listed its absence counts as a loss.
  static constexpr std::chrono::seconds grace{5};

  // The events of the range, sorted by id, each once, complete for every put acknowledged before; and the
  // gaps.
  LogSummary fetch(const LogRange& range, LogSink& sink);
  // What this cursor has not delivered yet, each event once; moves `state`. With `limit`, at most that many
  // events; with `tolerant` servers that do not answer are left for the next time.
  LogSummary deliver(CursorState& state, LogSink& sink, std::optional<std::uint64_t> limit = std::nullopt,
                     bool tolerant = false);
  // The same for a reader that polls: reads the newest chunks, and of the older ones, in turn, as many as
  // make about a megabyte.
  LogSummary poll(CursorState& state, LogSink& sink);

  const RingShape& shape() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// Ends the log: removes what is there of it. False: there was nothing. Throws CorruptData if a key of it
// holds another program's value, which stays, when all others are removed; NotApplied or UnknownOutcome if a
// server does not answer, and Contention: run it again. `usual`: the shape in which it is looked for without
// a conf key.
bool drop_log(const Context& context, std::string_view name, const RingShape& usual = {});

// Returns the keys a put now would use, and those of the readable window that can exist.
std::vector<PlacedKey> keys_of_log(const Context& context, std::string_view name);

}  // namespace mcds

// Key layout
//   eventlog:<name>:<C>x<N>:<i>[.<k>]    chunk i = floor(t / C), part k (none: 0): a header line, then one
//                                        line per event; all parts are on the server of part 0
//   eventlog:<name>:<C>x<N>:dir:<g>      directory of chunks 32 g … 32 g + 31: the parts created, by
//                                        incarnation
//   eventlog:<name>:conf                 the C and N in use, the newest last: see
//                                        common/primitives/in_use.hpp
//   Example: name `deploys`, C = 60, N = 60. An event at 1795234133.945 is in
//   eventlog:deploys:60x60:29920568,
//     E1 29920568 5f3a9c0d1e2b4a67 *c05e65d1
//     01a1fc4a-f7b9-7c3e-b1f0-2a9d5e7c4b18 "v1.4.2 ok" *caf894b4
//   and eventlog:deploys:60x60:dir:935017 has the line
//     N 29920568 5f3a9c0d1e2b4a67 1795234133 *a1283e22
//   format.hpp describes the lines. C and N are part of the key, so writers that disagree do not meet.
//   Exptime of a part: the end of chunk i + N, plus 2 s, plus half a chunk; of a directory: that of its last
//   chunk. A log has one copy.
//
// Invariants
//   A chunk's key contains i, not i mod N: no event can get into the key of the next lap and expire with it.
//   Every acknowledged event is in exactly one chunk, that of its time, until at least N * C after its time.
//     The lines of one append are stored together or not at all. Two lines with the same id are one event.
//   Parts are created in order: part k + 1 only by a writer that part k has refused (full, or no memory).
//     Readers ask for parts until one is missing.
//   A part is listed in its directory before it is created, and withdrawn by a writer that came second. A
//     listed part that is not withdrawn, is older than the grace and does not match what is stored was
//     therefore evicted: a gap, not a quiet period. (If it were listed after its creation, the death of a
//     writer in between would hide the loss.)
//   A cursor counts bytes per part and incarnation, never times: everything beyond them is undelivered.
//   A shape is in the conf key before its first part is created, unless the conf key's server does not
//   answer. It is noted again where it is lost while a part is created.
//
// Round trips (steady / worst)
//   put 1 / 4 for the first event of a chunk or part (append refused; look; list it; create); 3 more per lost
//     reply, at most three times, 3 more if a rival writes the conf key in which this shape is not yet, and 2
//     more if a drop removes that key or the chunk's parts meanwhile.
//   put with a guessed shape where the log is written with another: 2 more, for as long as nothing of the
//     guess is there. A fetch whose guess is wrong, or not the only shape: one more for each shape.
//   fetch, tail, a cursor's read 1; one more while parts continue beyond the second, and one more if a part
//     is missing before another or is in no directory. Chunks are read 64 at a time; fewer, and some parts
//     after the others, where they are more than is held at a time.
//   drop: 3 for 32 parts that can exist, 3 for each directory, and 3 for the conf key.
//
// Dropping
//   What is there when drop looks at it is removed, each item by compare-and-delete: first the parts that
//   writers append to, of all shapes, then the other parts and, for each 32 chunks, what the directory says
//   of them, last the conf key, which names the shapes. So each step can be the last: what is put afterwards
//   is found, and a second drop finds what is left. A part is withdrawn in the directory before it is
//   removed, so that nobody misses it.
//   A writer whose part is gone begins the chunk again: part 0 under another incarnation, its line in the
//   directory, its shape in the conf key. drop removes neither, as it did not see them: a directory loses
//   only lines that were there before, and the conf key goes only if nobody has written it since drop began.
//   Therefore a client that creates a part appends zero bytes to the conf key at the same time: this changes
//   its cas unique, and tells whether it is still there. If it is gone, it is written again.
//   What is appended between the look at a part and its removal stays: a line that means nothing takes the
//   place of the events before it, so that cursors find their places. If it is a further part, the chunk is
//   told to have a gap, where the parts before it were.
//   A part that is listed, missing, and not listed long ago may be created at any moment: its line and the
//   conf key stay, until they expire or the next drop.
//   An event that is put before drop looks at its chunk may go with that. Late events are put into chunks
//   that are looked at last. A cursor reports what it has not delivered as a gap.
//   Another program's value under a key of the log stays. Servers without cas remove what was appended since
//   the look, too.
//
// When things fail
//   Crash of a writer: its event is stored or not. A part that was listed but not created is reported as a
//     gap after the grace, although nothing acknowledged was in it; so is an attempt to create one that never
//     arrived.
//   Lost reply: the part is read and the id looked for; if it is absent, the same lines are appended again.
//     If that stays unknown too: UnknownOutcome.
//   Eviction, flush_all, restart: the events are gone, reported as a gap where a directory or a cursor knows
//     of them. If all keys of a log are lost at once, only a cursor knows. A lost directory is detected by a
//     part that it should list; missing chunks of its range are then reported too.
//   Full item, or a server without memory: the next part; if that is refused too, NotApplied. A directory has
//     room for some 20 000 names; without room, NotApplied.
//   Skew: below half a chunk nothing is lost or reported; a chunk's expiry is counted from its boundary.
//
// Source
//   The ring of keys with expiry in "Event log" of the memcached articles, with the lap in the key.
