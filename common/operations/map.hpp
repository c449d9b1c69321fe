// Map: decides where each key that a server lists must go.
#pragma once

#include "common/cluster/keys/live.hpp"
#include "common/operations/spill_file.hpp"
#include "common/placement/placement.hpp"
#include "common/primitives/key_names.hpp"

namespace mcds::moving {

struct MoveDecision {
  enum class What : std::uint8_t {
    stays,    // its server is in both pools and owns it in both
    arrived,  // only the new client reads this server
    moves,
    misplaced,  // not where the old client reads: unreachable
    lock,       // never moved
  };
  What what = What::stays;
  Kind kind = Kind::plain;
  std::uint8_t pass = 0;  // parts in 0, the keys that name them in 1, the keys that name those in 2
  std::size_t to = 0;     // server of the new pool
  std::uint8_t copy = 0;  // index among the copies of this key that move
};

// Returns the kind of one of our keys by its name; `rest` is the key without its namespace.
Kind kind_of(const NameInNamespace& ours, std::string_view rest);

// Returns the record of a key that must move from the server that listed it.
SpilledRecord record_of(const LiveKey& key, const MoveDecision& decision);

// Returns the identity of a move, which its journal records so that another move does not use it.
std::string identity_of(const Placement& from, const Placement& to, const std::string& key_prefix);

class Map {
 public:
  static constexpr std::uint8_t passes = 3;

  // `copies` applies to structures whose keys state no copy count.
  Map(const Placement& from, const Placement& to, std::string key_prefix, std::size_t copies);

  // Decides about `key` as listed by `server` of the old pool.
  MoveDecision of(std::string_view key, std::size_t server) const;
  // Returns the key that shows whether this one was copied: a segment's journal, otherwise the key itself.
  std::string vouching(std::string_view key) const { return placing_of(key).placed_by; }
  // Returns true if the new client reads `key` from this server of the new pool.
  bool is_new_place(std::string_view key, std::size_t server) const;
  // Returns the key's name on this server of the new pool.
  std::string wire_key(std::string_view key, std::size_t to) const;

 private:
  struct KeyPlacing {
    std::string placed_by;
    std::size_t copies;
  };
  KeyPlacing placing_of(std::string_view key) const;
  // Completes a decision about a key that may move.
  MoveDecision placed_decision(const KeyPlacing& key, std::size_t server, MoveDecision decision) const;
  static std::vector<std::size_t> owners(const Placement& placement, const KeyPlacing& key);

  const Placement& from_;
  const Placement& to_;
  std::string key_prefix_;
  std::size_t copies_;
  std::vector<std::vector<bool>> same_;  // [old][new]
};

}  // namespace mcds::moving
