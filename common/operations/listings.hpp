// What servers list of their keys, brought together by key, however many there are: some megabytes of it are
// in memory, the rest in sorted runs on disk.
#pragma once

#include <unordered_map>

#include "common/cluster/keys/live.hpp"
#include "common/operations/spool.hpp"
#include "common/placement/guess.hpp"

namespace mcds {

// One key on one server.
struct Listing {
  std::uint64_t hash = 0;   // what says which key it is
  std::uint64_t bytes = 0;  // of the item
  std::uint32_t server = 0;
  bool owner = false;  // the server is one where it belongs
};

class Listings {
 public:
  // `most_bytes`: in memory.
  explicit Listings(std::size_t most_bytes = std::size_t{12} << 20) : most_bytes_(most_bytes) {}

  // The listings of one key, one of each server, and its name, if one of them was added with it.
  using Take = std::function<void(std::span<const Listing>, const std::string& name)>;

  // Throws Failure(cannot_write).
  void add(const Listing& listing, std::string_view name = {});
  // In the order of the hashes. May be called again; nothing may be added any more. Throws what `take` throws
  // and Failure(cannot_write, cannot_read).
  void for_each(const Take& take);

 private:
  struct Record {
    Listing listing;
    std::uint32_t name_at, name_size;
  };
  void sort();
  void spill();
  template <typename Sink>
  void merge(const Sink& sink);

  std::size_t most_bytes_;
  std::vector<Record> records_;
  std::string names_;  // of `records_`, one behind the other
  std::vector<moving::Spool> runs_;
};

}  // namespace mcds

// A sample of the keys that servers list, with where they are: what objection_to() judges a profile by.

namespace mcds {

class PlacementSample {
 public:
  // Takes the first `of_each` keys of each server. A key that several list is one, on all of them.
  PlacementSample(std::size_t servers, std::string key_prefix, std::size_t of_each)
      : counts_(servers), key_prefix_(std::move(key_prefix)), of_each_(of_each) {}

  void take(const LiveKey& key);
  const std::vector<Sighting>& keys() const { return keys_; }

 private:
  std::vector<std::size_t> counts_;
  std::string key_prefix_;
  std::size_t of_each_;
  std::vector<Sighting> keys_;
  std::unordered_map<std::string, std::size_t> known_;  // indexes
};

}  // namespace mcds

// Parts that lie beside other keys, locks, votes and what is kept in several copies are left out: they are
// not only where a client puts a key of such a name.
