// CursorState is what one reader of a log has consumed, and CursorFile stores it. The format is below.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/process.hpp"
#include "common/structures/eventlog/event.hpp"

namespace mcds {

struct CursorState {
  struct Consumed {
    std::string incarnation;
    std::size_t bytes = 0;
    std::optional<EventId> last;
    bool operator==(const Consumed&) const = default;
  };

  // An event whose delivery failed, with its id in the log of failed events once it is put there.
  struct Failing {
    EventId event;
    std::uint64_t failures = 0;
    std::optional<EventId> moved_to = {};
    bool operator==(const Failing&) const = default;
  };

  std::string ring = {};              // empty: a cursor that has read nothing yet
  std::optional<WallTime> seen = {};  // everything that existed then is delivered
  std::map<PartName, Consumed> parts = {};
  std::set<std::pair<PartName, std::string>> lost = {};
  std::optional<EventId> until = {};  // events up to this one are delivered one by one
  std::optional<Failing> failing = {};
  bool operator==(const CursorState&) const = default;
  std::string text() const;
  // Throws Failure(bad_data) with the name `file`.
  static CursorState parse(std::string_view text, std::string_view file);
  // Drops the chunks before `chunk`.
  void forget_before(std::int64_t chunk);
};

// The file, locked (flock) as long as this object lives, so that overlapping readers do not deliver twice.
// The lock moves with the file: save() locks the new file before it replaces the old one.
class CursorFile {
 public:
  // Creates a missing file. Throws Failure: try_again (another run holds it), cannot_read, cannot_write.
  explicit CursorFile(const std::string& path);

  CursorState load() const;
  // Replaces the file. After a crash it is the old or the new one, complete, with its mode
  // (common/base/new_file.hpp).
  void save(const CursorState& state);

 private:
  std::string path_;
  Descriptor descriptor_;
};

}  // namespace mcds

// The lines of the file end in a line feed; the checksum covers everything before its line:
//   mcds-eventlog-cursor 1
//   log eventlog:deploys:60x60                      the ring, namespace included
//   seen 1795234133945000                           microseconds: everything that existed then is consumed
//   part 29920568 5f3a9c0d1e2b4a67 1834 01a1fc4a-…  name, incarnation, bytes consumed, last id in them
//                                                   (`-`: none)
//   lost 29920568.1 0f1e2d3c4b5a6978                an incarnation whose loss has been reported
//   until 01a1fc4a-…                                the last event of a batch whose delivery failed
//   failing 01a1fc4a-… 2 -                          an event, how often its delivery failed, and its id in
//                                                   the log of failed events, if it is being put there
//   end *5d41402a
// An empty file is a new cursor. Any other difference is an error (Failure, bad_data). The message
// distinguishes cursors of logs that mcds 0.x kept in several copies, which began with mcds-eventlog-cursor
// 2.
