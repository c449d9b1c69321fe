// What one reader of a log has consumed, and the file that stores it. Its contract stands at the end of this
// file.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/descriptors.hpp"
#include "common/structures/eventlog/event.hpp"

namespace mcds {

class LogKeys;  // format.hpp

struct CursorState {
  struct Consumed {
    std::string incarnation;
    std::size_t bytes = 0;
    std::optional<EventId> last;
    bool operator==(const Consumed&) const = default;
  };

  std::string ring;              // empty: a cursor that has read nothing yet
  std::optional<WallTime> seen;  // nothing that was there then is undelivered
  std::map<PartName, Consumed> parts;
  std::set<std::pair<PartName, std::string>> lost;
  // Of each chunk: a copy that gets one of them later has it behind what was consumed there.
  std::map<std::int64_t, std::set<EventId>> early;
  // 2: written by a reader of several copies, whose parts say of which they are.
  int version = 1;

  bool operator==(const CursorState&) const = default;
  std::string text() const;
  // Throws Failure(bad_data), naming `file`.
  static CursorState parse(std::string_view text, std::string_view file);
  // Versions before 0.2 hid the copy in the number, if there were several: copy i's parts began at 1000 i.
  void tell_copies_apart(const LogKeys& keys);
  // For a log whose number of copies was changed: the ring `before` is a former one now, and `now` the one in
  // use.
  void change_rings(std::int64_t before, std::int64_t now);
  // Forgets chunks before `chunk`.
  void forget_before(std::int64_t chunk);
};

// The file, locked (flock) as long as this object lives, so that overlapping readers do not deliver twice.
// The lock moves with the file: save() locks the new file before it takes the old one's place.
class CursorFile {
 public:
  // Creates the file if it is missing. Throws Failure: try_again (another run holds it), cannot_read,
  // cannot_write.
  explicit CursorFile(const std::string& path);

  CursorState load() const;
  // After a crash it is the old or the new one, whole, with its mode (common/base/new_file.hpp).
  void save(const CursorState& state);
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  Descriptor descriptor_;
};

}  // namespace mcds

// Text of the file, lines ended by a line feed, the checksum being of all that stands before its line:
//   mcds-eventlog-cursor 1                          2 for a log of several copies
//   log eventlog:deploys:60x60                      the ring, namespace included
//   seen 1795234133945000                           microseconds: everything there was then has been
//                                                   consumed
//   part 29920568 5f3a9c0d1e2b4a67 1834 01a1fc4a-…  name, incarnation, bytes consumed, last id in them
//                                                   (`-`: none)
//   part 29920568.2/1 0b7c…                         part 2 of the log's second copy. Before 0.2 it was
//                                                   29920568.1002:
//                                                   for several copies that is what such a number means
//   part 29920568/200 0b7c…                         the first copy of the ring that the log had when it was
//                                                   kept in 2 copies, the second is 201: see PartName::ring
//   lost 29920568.1 0f1e2d3c4b5a6978                an incarnation whose loss has been reported
//   early 29920568 01a1fc4a-…                       an event that was delivered before every copy had it,
//                                                   until all have
//   end *5d41402a
// An empty file is a new cursor. Anything else that differs is not one of ours (Failure, bad_data).
