// SpillFile: a temporary file of records, for a list of keys that is faster than a move and larger than
// memory.
#pragma once

#include "common/base/process.hpp"
#include "common/cluster/keys/live.hpp"

namespace mcds::moving {

// How two values of one key are merged.
enum class Kind : std::uint8_t {
  plain,      // the new value stays
  locklike,   // copied unless the value is a lock's
  journal,    // a root, copied after its segments
  log_part,   // events, merged line by line
  directory,  // of an event log: lines
};

// The numbers of a record, which precede its key in the file.
struct SpilledNumbers {
  std::uint64_t cas = 0;         // when it was listed
  std::uint32_t size_bytes = 0;  // of the item in the server's memory; 0: not reported (before 1.5)
  std::uint32_t expires_s = 0;   // UNIX seconds by its server's clock; 0: never
  std::uint16_t from = 0, to = 0;
  Kind kind = Kind::plain;
  std::uint8_t copy = 0;      // index among the copies of this key that move
  std::uint8_t key_size = 0;  // only in the file
};
struct SpilledRecord : SpilledNumbers {
  std::string key = {};
};

// Returns the record of a listed key; `to` is its destination.
SpilledRecord spilled(const LiveKey& key, std::size_t to = 0);

// Returns the size that a batch counts for an item. An unknown size counts as an amount that keeps a batch
// small enough even if all its items are of maximum size.
constexpr std::size_t reckoned_size(std::uint64_t size_bytes) {
  return size_bytes == 0 ? std::size_t{16} * 1024 : size_bytes;
}

// An unnamed file that vanishes with the process.
class SpillFile {
 public:
  SpillFile();

  // Throws Failure(cannot_write).
  void add(const SpilledRecord& record);
  // Adds both strings as one record.
  void add_bytes(std::string_view bytes, std::string_view more = {});
  std::uint64_t count() const { return count_; }
  // Starts reading from the first record; nothing can be added after it.
  void rewind();
  std::optional<SpilledRecord> next();
  // Reads all records from the first on.
  template <typename Take>
  void for_each(const Take& take) {
    rewind();
    while (auto record = next()) take(std::move(*record));
  }
  // Returns exactly `size` bytes, or an empty view at the end.
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
