// What servers list of their keys, brought together by key, however many there are: some megabytes of it are
// in memory, the rest in sorted runs on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/operations/move/spool.hpp"

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
