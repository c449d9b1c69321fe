// An event log is a ring of chunks of C seconds that expire; every event is kept for N chunks. Use it for
// recent events: alerts, jobs, reports. Its contract is at the end of this file.
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

// Puts events. Without a shape, uses that in which the log was last written, or the usual one if it is
// missing. Throws InvalidInput for an unusable name.
class LogWriter {
 public:
  LogWriter(const Context& context, std::string_view name, const std::optional<RingShape>& shape);
  ~LogWriter();

  // Puts one event, now or at `at`. Throws InvalidInput for times outside [now - N C, now + C]. `id` must be
  // of that time, made by new_id(); an event that is put twice with one id is one event.
  struct Put {
    EventId id;
    std::size_t server;
  };
  Put put(std::string_view data, EventData kind, std::optional<WallTime> at = std::nullopt,
          const std::optional<EventId>& id = std::nullopt);
  // Returns an id for the current time.
  EventId new_id();

  // Puts many events: stage() collects lines and returns nullopt if they must be flushed first. If flush()
  // throws, its lines are dropped, and none is known to be stored.
  std::optional<EventId> stage(std::string_view data, EventData kind,
                               std::optional<WallTime> at = std::nullopt,
                               const std::optional<EventId>& as = std::nullopt);
  std::size_t staged() const;
  struct Flushed {
    std::size_t server = 0;  // of the chunk
    std::size_t events = 0;  // number stored: all, or those before `failure`
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

// Receives the events and gaps that a read finds, in the order of time.
class LogSink {
 public:
  virtual ~LogSink() = default;
  // Returns false to end the read.
  virtual bool event(const EventLine& event) = 0;
  virtual void gap(const LogGap& gap) = 0;
  // Reports bytes in the log that are not of this format; they are skipped.
  virtual void damaged(const CorruptData& damage) = 0;
};

struct LogRange {
  std::optional<WallTime> first{};  // inclusive
  std::optional<WallTime> last{};   // inclusive, to the millisecond
  std::optional<EventId> after{};   // only ids greater than this
  std::optional<std::uint64_t> limit{};
  bool only_if_sole = false;  // deliver nothing if other shapes are in use
};

// The result of a read.
struct LogSummary {
  std::uint64_t events = 0;
  std::uint64_t chunks = 0;  // that are not empty
  std::uint64_t parts = 0;
  std::uint64_t bytes = 0;
  bool directory = false;         // a directory exists
  std::vector<RingShape> shapes;  // in use, the newest last
  bool declined = false;          // because of LogRange::only_if_sole
  // Servers that did not answer; only reads that tolerate this have any.
  std::vector<Failure> unreachable;

  bool found_nothing() const { return parts == 0 && !directory; }
};

// Reads the ring of one shape. Throws InvalidInput for an unusable name.
class LogReader {
 public:
  LogReader(const Context& context, std::string_view name, const RingShape& shape);
  ~LogReader();

  // The time after which the absence of a listed part counts as a loss.
  static constexpr std::chrono::seconds grace{5};

  // Delivers the range's events, sorted by id, each once, and the gaps. Includes every put acknowledged
  // before.
  LogSummary fetch(const LogRange& range, LogSink& sink);
  // Delivers what this cursor has not delivered yet, each event once, and moves `state`. With `limit`,
  // delivers at most that many events. With `tolerant`, leaves servers that do not answer for the next time.
  LogSummary deliver(CursorState& state, LogSink& sink, std::optional<std::uint64_t> limit = std::nullopt,
                     bool tolerant = false);
  // Does the same for a reader that polls: reads the newest chunks, and in turn about 1 MiB of older ones.
  LogSummary poll(CursorState& state, LogSink& sink);

  const RingShape& shape() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// Removes the log. Returns false if there was nothing. Throws CorruptData if a key holds another program's
// value, which stays, after all others are removed; NotApplied or UnknownOutcome if a server does not answer,
// and Contention: run it again. `usual` is the shape that is searched without a conf key.
bool drop_log(const Context& context, std::string_view name, const RingShape& usual = {});

// Returns the keys that a put now would use, and those of the readable window that can exist.
std::vector<PlacedKey> keys_of_log(const Context& context, std::string_view name);

}  // namespace mcds

// Key layout
//   eventlog:<name>:<C>x<N>:<i>[.<k>]    chunk i = floor(t / C), part k (none: 0): a header line, then one
//                                        line per event; all parts are on the server of part 0
//   eventlog:<name>:<C>x<N>:dir:<g>      directory of chunks 32 g … 32 g + 31: the parts created, by
//                                        incarnation
//   eventlog:<name>:conf                 the C and N in use, the newest last: active_variants.hpp
//   Example: name `deploys`, C = 60, N = 60. An event at 1795234133.945 is in
//   eventlog:deploys:60x60:29920568,
//     E1 29920568 5f3a9c0d1e2b4a67 *c05e65d1
//     01a1fc4a-f7b9-7c3e-b1f0-2a9d5e7c4b18 "v1.4.2 ok" *caf894b4
//   and eventlog:deploys:60x60:dir:935017 has the line
//     N 29920568 5f3a9c0d1e2b4a67 1795234133 *a1283e22
//   format.hpp describes the lines. C and N are part of the key, so writers with other values use other keys.
//   A part expires at the end of chunk i + N, plus 2 s, plus half a chunk; a directory with its last chunk. A
//   log has one copy.
//
// Invariants
//   A chunk's key contains i, not i mod N: no event can get into the key of the next lap and expire with it.
//   Every acknowledged event is in exactly one chunk, that of its time, until at least N * C after its time.
//   The lines of one append are stored together or not at all. Two lines with the same id are one event.
//   Parts are created in order: part k + 1 only by a writer that part k has refused (full, or no memory).
//   Readers ask for parts until one is missing.
//   A part is listed in its directory before it is created, and withdrawn by a writer that came second. So a
//   listed part that is not withdrawn, is older than the grace and does not match what is stored was evicted:
//   that is a gap. (With the reverse order, a crash in between would hide the loss.)
//   A cursor counts bytes per part and incarnation, never times: everything beyond them is undelivered.
//   A shape is in the conf key before its first part is created; if it is lost while a part is created, it is
//   written again. While the conf key's server does not answer, only a log that has a directory is continued.
//
// Round trips (steady / worst)
//   put 1 / 4 for the first event of a chunk or part (append refused; read; list it; create); 3 more per lost
//   reply, at most three times, 3 more if another client writes the conf key before this shape is in it, 2
//   more if a drop removes that key or the chunk's parts meanwhile, and 1 more for the first event of a
//   directory while the conf key's server does not answer.
//   put with a wrong guess of the shape: 2 more, until the log is found with that shape. A fetch whose guess
//   is wrong, or not the only shape: one more for each shape.
//   fetch, tail, a cursor's read 1; one more while parts continue beyond the second, and one more if a part
//   is missing before another or is in no directory. Chunks are read 64 at a time; fewer, and some parts
//   after the others, if they exceed the memory limit.
//   drop: 3 for 32 parts that can exist, 3 for each directory, and 3 for the conf key. drop_log.cpp explains
//   what concurrent clients see of it.
//
// When things fail
//   Crash of a writer: its event is stored or not. A part that was listed but not created is reported as a
//   gap after the grace, although nothing acknowledged was in it; so is a creation that never arrived.
//   Lost reply: the part is read and searched for the id; if it is absent, the same lines are appended again.
//   If that stays unknown too: UnknownOutcome.
//   Eviction, flush_all, restart: the events are gone, reported as a gap if a directory or a cursor knows of
//   them. If all keys of a log are lost at once, only a cursor knows. A lost directory is detected by a part
//   that it should list; missing chunks of its range are then reported too.
//   Full item, or a server without memory: the next part; if that is refused too, NotApplied. A directory has
//   room for some 20 000 names; without room, NotApplied.
//   A conf key whose server does not answer: NotApplied for a put that begins a log, because no fetch would
//   find it.
//   Skew: below half a chunk nothing is lost or reported; a chunk's expiry is counted from its boundary.
//
// Source
//   The ring of keys with expiry in "Event log" of the memcached articles, with the lap in the key.
