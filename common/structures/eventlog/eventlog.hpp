// Event log: a ring of chunks of C seconds that expire by themselves; every event is kept for N chunks. For
// what happened lately: alerts, jobs, reports. Its contract stands at the end of this file.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "common/base/errors.hpp"
#include "common/primitives/key_names.hpp"
#include "common/primitives/several/kept.hpp"
#include "common/structures/eventlog/event.hpp"

namespace mcds {

struct CursorState;  // cursor.hpp

// Puts events. Throws InvalidInput for an unusable name. Without a shape: as the log was last written; the
// usual shape if nothing of it is there.
class LogWriter {
 public:
  LogWriter(Context context, std::string_view name, std::optional<RingShape> shape);
  ~LogWriter();

  // One event, now or at `at`; throws InvalidInput for times outside [now - N C, now + C].
  struct Put {
    EventId id;
    std::size_t server;
    std::vector<CopyOutcome> copies;
  };
  Put put(std::string_view data, EventData kind, std::optional<WallTime> at = std::nullopt);

  // Many events: lines are collected until stage() says that they must be flushed first (nullopt). A flush
  // that throws has dropped its lines: none is known to be stored.
  std::optional<EventId> stage(std::string_view data, EventData kind,
                               std::optional<WallTime> at = std::nullopt);
  std::size_t staged() const;
  struct Flushed {
    std::size_t server = 0;  // it went to
    std::vector<CopyOutcome> copies;
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
  std::vector<RingShape> shapes;  // in use, the newest last; with several copies, of any of them
  bool declined = false;          // see LogRange::only_if_sole
  // Servers that could not be asked; only reads that tolerate this have any.
  std::vector<Failure> unreachable;

  bool found_nothing() const { return parts == 0 && !directory; }
};

// Reads the ring of one shape. Throws InvalidInput for an unusable name.
class LogReader {
 public:
  LogReader(Context context, std::string_view name, const RingShape& shape);
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

// From now on the log is kept in the context's number of copies. Throws as Kept::recopy().
Kept::Recopied recopy_log(const Context& context, std::string_view name);

// Ends the log in every number of copies: nothing of it is left. False: there was none.
bool drop_log(const Context& context, std::string_view name);

// The keys a put now would use, and those of the readable window that can exist; then those of the former
// rings that are read, as far as the conf key tells. Without a shape as for LogWriter.
struct KeysOfRing {
  std::size_t copies = 1;
  std::vector<PlacedKey> keys = {};
};
std::vector<KeysOfRing> keys_of_log(const Context& context, std::string_view name,
                                    std::optional<RingShape> shape);

}  // namespace mcds

// Key layout
//   eventlog:<name>:<C>x<N>:<i>[.<k>]    chunk i = floor(t / C), part k (none: 0): a header line, then one
//                                        line per event; all parts are on the server of part 0 (before
//                                        version 0.2 each was placed by its own bytes; a listed part that is
//                                        missing is looked for there)
//   eventlog:<name>:<C>x<N>:dir:<g>      directory of chunks 32 g … 32 g + 31: the parts created, by
//                                        incarnation
//   eventlog:<name>:conf                 the C and N in use, the newest last, and the numbers of copies that
//                                        the log had: see common/primitives/in_use.hpp and conf.hpp
//   With M copies, M at least 2, all keys begin with eventlog<M>:<name>; see
//   common/primitives/several/kept.hpp Example: name `deploys`, C = 60, N = 60. An event at 1795234133.945 is
//   in eventlog:deploys:60x60:29920568,
//     E1 29920568 5f3a9c0d1e2b4a67 *c05e65d1
//     01a1fc4a-f7b9-7c3e-b1f0-2a9d5e7c4b18 "v1.4.2 ok" *caf894b4
//   and eventlog:deploys:60x60:dir:935017 has the line
//     N 29920568 5f3a9c0d1e2b4a67 1795234133 *a1283e22
//   format.hpp describes the lines. C and N are part of the key, so writers that disagree do not meet.
//   Exptime of a part: the end of chunk i + N, plus 2 s, plus half a chunk; of a directory: that of its last
//   chunk.
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
//   answer.
//
// Round trips (steady / worst)
//   put 1 / 4 for the first event of a chunk or part (append refused; look; list it; create), 5 if there is
//     no directory yet or no conf key, because other numbers of copies are looked for; 3 more per lost reply,
//     at most three times, and 3 more if a rival writes the conf key in which this shape is not yet.
//   put with a guessed shape where the log is written with another: 2 more, for as long as nothing of the
//     guess is there. A fetch whose guess is wrong, or not the only shape: one more for each shape.
//   fetch, tail, a cursor's read 1; one more while parts continue beyond the second, and one more if a part
//     is missing before another or is in no directory. Chunks are read 64 at a time; fewer,
//     and of the only copy some parts after the others, where they are more than is held at a time. One more
//     for each number of copies that the log had before, until the events of that time have expired.
//
// With several copies
//   Each copy is a log of its own, with its own parts and directory. Events are appended to all copies under
//   one id, and readers merge them by id. A gap is reported only where no copy is complete. A read appends to
//   a copy what another has and it lacks (it lost a chunk, or missed a write); a reader that polls, what it
//   has lacked for a moment. So does a put that starts a chunk in one copy and continues it in another, 2
//   trips more.
//   When a put is done, and what a fetch may answer: several/quorum.hpp. A put reads nothing first, for that
//   would be another trip: with 3 copies and more, and too few of their servers, it ends with 80 where one
//   copy got it, not with 69. A reader that leaves silent servers for the next time (tail -f) delivers what
//   any copy has.
//   A cursor counts in each copy. If one copy is lost, it continues exactly, provided it had read there what
//   it read elsewhere. An event that a copy received after the cursor read it in another is delivered again
//   only if that other copy is lost, or does not answer, at the next read. The same holds for events that
//   were restored meanwhile.
//
// Changing the number of copies, from F to T (recopy)
//   No event is moved. The log goes on under its new keys, and readers unite the rings that it had, chunk by
//   chunk and by id, until all of their chunks have expired. Under the mark of several/recopying.hpp:
//     1 The conf key under F says that the log is kept in T now. Each change has a number, one higher than
//     those before, so that 1 → 2 → 3 → 1 within the time of one ring is as good as any.
//     2 The conf key under T names the rings that the log had under F and before. It has the same shapes.
//     3 All parts of the chunks that can be written now are filled under F, up to 4 MiB each. So the next put
//       with F is refused by them, looks at the conf key as it does for any full part, and is refused: "is
//       kept in T copies".
//   Each step can be repeated: who finds the conf key under T missing waits for the mark, or completes what a
//   mover that died has left. Clients with F read the conf key with every read, and a put reads it with every
//   look. Nobody waits but for these steps, because what a writer with F that looked before step 1 puts after
//   it is in a ring that readers with T read. It may go on so for as long as its part has room, at most until
//   the chunk after the next begins.
//   A cursor goes on: what it counted under F is counted as that of a former ring.
//   Former rings are read, not restored: with F copies, what one copy loses stays in the others alone.
//   If the conf key under T is evicted, or was never written by who did step 1 (before 0.3 nobody left a
//   mark), readers and writers restore it from the one under F, with the next read or chunk; a copy of it
//   from another copy, with the next fetch. If that under F is evicted, writers with F find at the next chunk
//   that there is none, look, and are refused. If both are evicted before the log is used again, nobody knows
//   that they belong together: each goes on under its own number, and a reader with T does not find what F
//   has.
//   A server that has a copy of either conf key and does not answer stops recopy before the first step, and
//   nothing is changed; later, clients that miss something are told to try again until it answers. A client
//   that cannot reach the conf key of F which others can reach does not notice the change, and puts under F,
//   where readers find it as long as anything of the time before the change, or of another such client, is
//   there. With several copies, who reads while a server with a copy of a conf key is silent may miss what
//   only that copy says: the change, or, if clients restored the key without that server, the former rings. A
//   cursor delivers these events later.
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
