// Which server a key lives on, as one client library decides it: pure functions of the pool and the key's bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/placement/pool.hpp"

namespace mcds {

class Placement {
 public:
  virtual ~Placement() = default;
  virtual const Pool& pool() const = 0;
  // The profile's name: `ketama`, `gomemcache`.
  virtual std::string_view profile() const = 0;
  // The client's integer for a key, before it is mapped to a server.
  virtual std::uint64_t hash_of(std::string_view key) const = 0;
  // An index into pool().
  virtual std::size_t server_of(std::string_view key) const = 0;
  // The `count` distinct servers that hold the key's copies, the owner first: those that follow in continuum
  // order, or the next indexes. Fewer than `count` when the pool is smaller.
  virtual std::vector<std::size_t> servers_of(std::string_view key, std::size_t count) const = 0;
};

// Throws Failure(usage) with a `did you mean` for an unknown profile.
std::shared_ptr<const Placement> make_placement(std::string_view profile, Pool pool);

}  // namespace mcds
