// The environment of a structure in tests without servers.
#pragma once

#include "common/base/random.hpp"
#include "common/primitives/context.hpp"
#include "tests/support/cluster_doubles.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/memory_cluster.hpp"

namespace mcds::test {

// In-memory servers, a clock that advances only on request, and repeatable random numbers. Requests through
// `context` are counted first; then the concurrent writer may act; then faults may hit them.
struct World {
  explicit World(std::size_t servers = 3, std::size_t copies = 1, MemoryServerOptions options = {})
      : memory(clock.time(), servers, options),
        context(with(copies)),
        others(memory, clock, random, {}, copies) {}

  Context with(std::size_t copies) { return {trips, clock, random, {}, copies}; }
  // Returns the value stored on a server, by default on the one where the key is placed.
  std::string stored(const std::string& key) { return value_on(memory.server_for(key), key); }
  std::string stored_on(std::size_t server, const std::string& key) {
    return value_on(memory.server(server), key);
  }

  FakeClock clock;
  SeededRandom random{7};
  MemoryCluster memory;
  ScriptedFaults faults{memory};
  Rival rival{faults};
  TripCounter trips{rival};
  Context context;
  Context others;  // another client's, without faults

 private:
  static std::string value_on(MemoryServer& server, const std::string& key) {
    const auto item = server.peek(key);
    return item ? item->value : "<miss>";
  }
};

// Returns the keys of all unexpired items, on all servers.
inline std::vector<std::string> left_in(MemoryCluster& memory) {
  std::vector<std::string> keys;
  for (std::size_t server = 0; server < memory.size(); ++server) {
    std::vector<std::string> all;
    for (const auto& [key, item] : memory.server(server).items()) all.push_back(key);
    for (const std::string& key : all) {
      if (memory.server(server).peek(key)) keys.push_back(key);
    }
  }
  return keys;
}

}  // namespace mcds::test
