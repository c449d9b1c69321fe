// Where each key that a server lists has to go.
#pragma once

#include "common/cluster/keys/live.hpp"
#include "common/operations/spool.hpp"
#include "common/placement/placement.hpp"
#include "common/primitives/key_names.hpp"

namespace mcds::moving {

struct Fate {
  enum class What : std::uint8_t {
    stays,    // its server is the same one
    arrived,  // where the new client looks, and not the old one
    moves,
    astray,  // not where the old client looks: nobody finds it
    lock,    // never moved
  };
  What what = What::stays;
  Kind kind = Kind::plain;
  std::uint8_t pass = 0;  // parts in 0, what names them in 1, what names those in 2
  std::size_t to = 0;     // of the new pool
  std::uint8_t copy = 0;  // of those of this key that move
};

// Of a key of ours, by its name. `rest`: without its namespace.
Kind kind_of(const NameInNamespace& ours, std::string_view rest);

// Of what has to go from where it was listed.
Spooled record_of(const LiveKey& key, const Fate& fate);

// What a move's journal belongs to: another move must not take it for its own.
std::string identity_of(const Placement& from, const Placement& to, const std::string& key_prefix);

class Map {
 public:
  static constexpr std::uint8_t passes = 3;

  // `copies`: of what says no number of its own.
  Map(const Placement& from, const Placement& to, std::string key_prefix, std::size_t copies);

  // Of `key`, listed by `server` of the old pool.
  Fate of(std::string_view key, std::size_t server) const;
  // The key that says whether this one was copied: a segment's journal, of others the key itself.
  std::string vouching(std::string_view key) const { return keeping(key).placed_by; }
  // Whether the new client looks for `key` on this server of the new pool.
  bool is_new_place(std::string_view key, std::size_t server) const;
  // What the new pool's server knows it by.
  std::string wire_key(std::string_view key, std::size_t to) const;

 private:
  struct Keeping {
    std::string placed_by;
    std::size_t copies;
  };
  Keeping keeping(std::string_view key) const;
  Fate placed_fate(std::string_view placed_by, std::size_t copies, std::size_t server) const;
  static std::vector<std::size_t> owners(const Placement& placement, std::string_view key,
                                         std::size_t copies);

  const Placement& from_;
  const Placement& to_;
  std::string key_prefix_;
  std::size_t copies_;
  std::vector<std::vector<bool>> same_;  // [old][new]
};

// `<log>:<C>x<N>:dir:<i / 32>` of `<log>:<C>x<N>:<i>[.<k>]`, and the name of the part; empty: it is no part's
// key.
struct PartOfLog {
  std::string directory;
  std::string part;
};
PartOfLog part_of_log(std::string_view key);

}  // namespace mcds::moving
