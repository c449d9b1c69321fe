// What a change of the pool or of the client moves: keys that the two place on different servers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/placement/placement.hpp"

namespace mcds {

struct Moved {
  std::uint64_t keys = 0;
  std::uint64_t bytes = 0;

  void add(std::uint64_t size) {
    ++keys;
    bytes += size;
  }
};

// Servers are the same if their addresses are: a key moves when its value would have to be written again,
// even if the new server goes by the old one's name.
class RingDiff {
 public:
  RingDiff(const Placement& before, const Placement& after);

  // A key and its size (0: unknown). `found`: the server (an index into the old pool) it was found on; where
  // that is not its place before the change, no client finds it there, and it is astray, neither kept nor
  // moved.
  void add(std::string_view key, std::uint64_t bytes, std::optional<std::size_t> found = std::nullopt);

  struct Pair {
    std::string from, to;
    Moved moved;
  };
  // Most keys first.
  std::vector<Pair> pairs() const;

  const Moved& all() const { return all_; }  // without those astray
  const Moved& moved() const { return moved_; }
  const Moved& astray() const { return astray_; }
  // Of all keys; 0 when there are none.
  double moved_share() const;
  // The smallest share that any placement could move to give every server what it should get by its weight,
  // from a pool where every server had that: the growth of the shares that grow.
  double ideal_share() const;

 private:
  // A key of several copies moves when one has to be written where none was.
  void add_copies(std::string_view key, std::uint64_t bytes, std::optional<std::size_t> found);

  const Placement& before_;
  const Placement& after_;
  std::vector<std::string> addresses_before_, addresses_after_;
  std::vector<std::vector<bool>> same_;  // [before][after]
  std::map<std::pair<std::size_t, std::size_t>, Moved> pairs_;
  Moved all_, moved_, astray_;
};

}  // namespace mcds
