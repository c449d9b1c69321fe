// What is to be moved, on disk: a server that lists its keys must not be kept waiting by a slow move, and
// there may be more of them than memory holds.
#pragma once

#include "common/base/process.hpp"
#include "common/cluster/keys/live.hpp"

namespace mcds::moving {

// What decides how two values under one key become one.
enum class Kind : std::uint8_t {
  plain,      // the new one stays
  locklike,   // copied unless its value is a lock's
  journal,    // a root, whose segments go before it
  log_part,   // events, line by line
  directory,  // of an event log: lines
};

struct Spooled {
  std::uint16_t from = 0, to = 0;
  Kind kind = Kind::plain;
  std::uint32_t size_bytes = 0;  // of the item in the server's memory; 0: it does not say (before 1.5)
  std::uint32_t expires_s = 0;   // UNIX seconds by its server's clock; 0: never
  std::uint64_t cas = 0;         // as it was listed
  std::string key = {};
  std::uint8_t copy = 0;  // of those of this key that move
};

// As it was listed. `to`: where it is to go.
Spooled spooled(const LiveKey& key, std::size_t to = 0);

// What a batch reckons with: of an item whose size is not known, so many that all of them may be as large as
// can be.
constexpr std::size_t reckoned_size(std::uint64_t size_bytes) {
  return size_bytes == 0 ? std::size_t{16} * 1024 : size_bytes;
}

// A file that nobody else sees and that is gone with the process.
class Spool {
 public:
  Spool();

  // Throw Failure(cannot_write, cannot_read).
  void add(const Spooled& record);
  // Both together are one record.
  void add_bytes(std::string_view bytes, std::string_view more = {});
  std::uint64_t count() const { return count_; }
  // From the first again; nothing may be added any more.
  void rewind();
  std::optional<Spooled> next();
  // Exactly so many bytes; empty: there are no more.
  std::string_view next_bytes(std::size_t size);

 private:
  void flush();
  bool fill(std::size_t size);

  Descriptor descriptor_;
  std::uint64_t count_ = 0;
  std::string buffer_;
  std::size_t position_ = 0;
};

}  // namespace mcds::moving
