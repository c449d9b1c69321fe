// Listings: groups the keys that several servers list, by key. Beyond some megabytes they are kept in files,
// by ranges of hashes, of which one is in memory at a time: 10^8 keys need about 150 MB.
#pragma once

#include <unordered_map>

#include "common/cluster/keys/live.hpp"
#include "common/operations/spill_file.hpp"
#include "common/placement/guess.hpp"

namespace mcds {

// One key on one server.
struct Listing {
  std::uint64_t hash = 0;   // identifies the key
  std::uint64_t bytes = 0;  // of the item
  std::uint32_t server = 0;
  bool owner = false;  // the server is one where the key belongs
};

class Listings {
 public:
  // `max_bytes` is the limit in memory.
  explicit Listings(std::size_t max_bytes = std::size_t{12} << 20) : most_bytes_(max_bytes) {}

  // Receives the listings of one key, at most one per server, and its name if any was added with it.
  using Take = std::function<void(std::span<const Listing>, const std::string& name)>;

  // Throws Failure(cannot_write).
  void add(const Listing& listing, std::string_view name = {});
  // Calls `take` for each key, ordered by hash. It may be called again, but no listing can be added after it.
  // Rethrows exceptions of `take`; throws Failure(cannot_write, cannot_read).
  void for_each(const Take& take);

 private:
  struct Record {
    Listing listing;
    std::uint32_t name_at, name_size;
  };
  static constexpr std::size_t parts = 64;
  void spill();
  void group(const Take& take);

  std::size_t most_bytes_;
  std::vector<Record> records_;
  std::string names_;                     // of `records_`, concatenated
  std::vector<moving::SpillFile> files_;  // of `parts` ranges of hashes; empty: all is in memory
};

}  // namespace mcds

// PlacementSample: a sample of the keys that servers list, with the servers. objection_to() judges a profile
// by it. Left out are parts that are placed with other keys, locks, votes, and structures with several
// copies, because they are not only where a client would place a key of that name.

namespace mcds {

class PlacementSample {
 public:
  // Uses the first `of_each` keys of each server. A key that several servers list is one KeyLocation.
  PlacementSample(std::size_t servers, std::string key_prefix, std::size_t of_each)
      : counts_(servers), key_prefix_(std::move(key_prefix)), of_each_(of_each) {}

  void take(const LiveKey& key);
  const std::vector<KeyLocation>& keys() const { return keys_; }

 private:
  std::vector<std::size_t> counts_;
  std::string key_prefix_;
  std::size_t of_each_;
  std::vector<KeyLocation> keys_;
  std::unordered_map<std::string, std::size_t> known_;  // indexes into keys_
};

}  // namespace mcds
