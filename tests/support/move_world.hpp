// Moves items from three in-memory servers to four, by runs that may be killed.
#pragma once

#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "common/operations/move/move.hpp"
#include "tests/support/world.hpp"

namespace mcds::test {

// A file name in a folder of its own, which is removed with it.
struct TemporaryFile {
  TemporaryFile() {
    std::string folder = "/tmp/mcds-move-test-XXXXXX";
    REQUIRE(mkdtemp(folder.data()) != nullptr);
    path = folder + "/journal";
    this->folder = folder;
  }
  ~TemporaryFile() {
    unlink(path.c_str());
    rmdir(folder.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  std::string folder, path;
};

// Thrown at the trip at which the run is killed.
struct Killed {};

class Killing final : public Decorator {
 public:
  Killing(Cluster& inner, int& trips_left) : Decorator(inner), trips_left_(trips_left) {}
  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override {
    if (trips_left_-- == 0) throw Killed();
    return inner().execute(batch);
  }

 private:
  int& trips_left_;
};

constexpr int never_killed = 1 << 30;

struct MoveWorld : World {
  MoveWorld() : World(3) {}

  std::vector<KeptItem> left;
  MemoryCluster after{clock.time(), 4};
  TemporaryFile journal;

  std::vector<LiveKeysOfServer> read(const TakeLiveKey& take) {
    std::vector<LiveKeysOfServer> results;
    for (std::size_t server = 0; server < memory.size(); ++server) {
      std::vector<std::string> keys;
      for (const auto& [key, item] : memory.server(server).items()) keys.push_back(key);
      for (const std::string& key : keys) {
        const auto item = memory.server(server).peek(key);
        if (!item) continue;
        LiveKey live{.key = key, .server = server, .size_bytes = item->value.size(), .cas = item->cas};
        take(live);
      }
      results.push_back({{.keys = keys.size(), .complete = true, .by_table = true}, nullptr});
    }
    return results;
  }

  // Runs the move. Returns false if it was killed at trip number `trips`.
  bool run(bool again, int trips = never_killed) {
    left.clear();
    int trips_left = trips;
    Killing from(memory, trips_left), to(after, trips_left);
    const Context old_context{from, clock, random, {}, 1};
    try {
      Move move(old_context, to, {.journal = journal.path, .again = again});
      trips_left = trips;
      move.list([&](const TakeLiveKey& take) { return read(take); });
      move.copy({[&](const KeptItem& item) { left.push_back(item); }, [](std::uint64_t) {}});
    } catch (const Killed&) {
      return false;
    }
    return true;
  }

  void set(const std::string& key, const std::string& value, std::uint32_t flags = 0,
           Exptime exptime = Exptime::never()) {
    Request request = Request::set(key, value, exptime);
    request.flags = flags;
    CHECK(memory.execute(request).outcome == Outcome::stored);
  }

  // Returns a key whose server changes.
  std::string moving_key(int number) const {
    for (;; number += 1000) {
      const std::string key = "key" + std::to_string(number);
      if (memory.placement().server_of(key) != after.placement().server_of(key)) return key;
    }
  }
  std::optional<MemoryItem> there(const std::string& key) { return after.server_for(key).peek(key); }
};

}  // namespace mcds::test
