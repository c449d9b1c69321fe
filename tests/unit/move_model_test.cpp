// A model of every item. Moves, repeated moves, prunes and removals run in any order and may be killed
// anywhere, while clients of both lists write and servers restart. No value that was the newest of its key
// may be lost.
#include <doctest/doctest.h>

#include <cstdlib>
#include <map>

#include "common/operations/removal.hpp"
#include "tests/support/move_world.hpp"

namespace mcds::move_model_test {

namespace {

using test::Killed;
using test::never_killed;

constexpr int keys_in_model = 6;

struct Model : test::MoveWorld {
  explicit Model(std::uint64_t seed) : chance(seed) {
    for (int i = 0; i < keys_in_model; ++i) keys.push_back(moving_key(i));
  }

  std::uint64_t below(std::uint64_t limit) { return chance.below(limit); }
  const std::string& any_key() { return keys[below(keys.size())]; }

  // Before a trip, a client may write or the run may end.
  struct Meddling final : Decorator {
    Meddling(Cluster& inner, Model& model) : Decorator(inner), model_(model) {}
    using Cluster::execute;
    std::vector<Reply> execute(std::span<const Request> batch) override {
      if (model_.below(6) == 0) model_.write();
      if (model_.trips_left-- == 0) throw Killed();
      model_.note(batch);
      std::vector<Reply> replies = inner().execute(batch);
      model_.judge(batch, replies);
      // The requests have arrived, and the run ends before the replies do.
      if (model_.trips_left-- == 0) throw Killed();
      return replies;
    }
    Model& model_;
  };

  void write() {
    const std::string& key = any_key();
    const std::string value = "v" + std::to_string(++written);
    const bool by_old_list = below(2) == 0;
    Cluster& cluster = by_old_list ? static_cast<Cluster&>(memory) : after;
    const auto exptime =
        below(3) == 0 ? Exptime::after(std::chrono::hours(1 + below(3)), clock.wall()) : Exptime::never();
    CHECK(cluster.execute(Request::set(key, value, exptime)).outcome == Outcome::stored);
    newest[key] = value;
  }

  // Clients of the old list extend the ttl of items that they use.
  void touch() {
    static_cast<void>(
        memory.execute(Request::touch(any_key(), Exptime::after(std::chrono::hours(9), clock.wall()))));
  }

  void restart() {
    clock.advance(std::chrono::seconds(30));
    const bool old_one = below(2) == 0;
    MemoryCluster& cluster = old_one ? memory : after;
    cluster.restart(below(cluster.size()));
    // A value that the restarted server lost is not a fault.
    for (const std::string& key : keys) {
      if (newest.contains(key) && !exists(key, newest[key])) newest.erase(key);
    }
  }

  bool exists(const std::string& key, const std::string& value) {
    const auto here = memory.server_for(key).peek(key), there = after.server_for(key).peek(key);
    return (here && here->value == value) || (there && there->value == value);
  }

  // Records what a removal read, and what it removed.
  void note(std::span<const Request> batch) {
    taken.clear();
    for (const Request& request : batch) {
      const auto item = memory.server_for(request.key).peek(request.key);
      if (request.op == Op::probe && item) probed[request.key] = item->value;
      taken.push_back(item ? item->value : "");
    }
  }
  void judge(std::span<const Request> batch, std::span<const Reply> replies) {
    for (std::size_t i = 0; removing && i < batch.size(); ++i) {
      if (replies[i].outcome != Outcome::deleted) continue;
      CHECK(taken[i] == probed[batch[i].key]);
      if (newest.contains(batch[i].key) && newest[batch[i].key] == taken[i]) newest.erase(batch[i].key);
    }
  }

  template <typename Act>
  void killed_somewhere(const Act& act) {
    trips_left = below(2) == 0 ? static_cast<int>(below(30)) : never_killed;
    Meddling from(memory, *this), to(after, *this);
    const Context old_context{from, clock, random, {}, 1};
    try {
      act(old_context, to);
    } catch (const Killed&) {
    }
    trips_left = never_killed;
  }

  void move(bool again) {
    if (again && !moved) return;
    killed_somewhere([&](const Context& from, Cluster& to) {
      Move move(from, to, {.journal = journal.path, .again = again});
      move.list([&](const TakeLiveKey& take) { return read(take); });
      move.copy({[](const KeptItem&) {}, [](std::uint64_t) {}});
      moved = true;  // from now on the journal has entries
    });
  }

  void prune() {
    const bool with_journal = moved && below(2) == 0, dry_run = below(5) == 0;
    killed_somewhere([&](const Context& from, Cluster& to) {
      OldPlaces places(from, to, {.journal = with_journal ? journal.path : "", .dry_run = dry_run});
      places.list([&](const Pool&, const TakeLiveKey& take) { return read(take); });
      places.remove(false, {[](const KeptItem&) {}, [](std::uint64_t) {}});
    });
  }

  void remove_selected() {
    removing = true;
    killed_somewhere([&](const Context& from, Cluster&) {
      RemovalOptions options;
      options.selection.prefix = keys[below(keys.size())].substr(0, 4 + below(2));
      SelectedRemoval removal(
          from, options,
          {[](const std::string&, std::size_t, const char*) {}, [](const std::string&, const Failure&) {}});
      read([&](const LiveKey& key) {
        removal.take(key);
        return true;
      });
      removal.finish();
    });
    removing = false;
    probed.clear();
  }

  void step() {
    switch (below(9)) {
      case 0:
      case 1: return move(false);
      case 2: return move(true);
      case 3:
      case 4: return prune();
      case 5: return below(3) == 0 ? restart() : touch();
      case 6: return below(4) == 0 ? remove_selected() : write();
      default: return write();
    }
  }

  SeededRandom chance;
  std::vector<std::string> keys;
  std::map<std::string, std::string> newest;
  std::map<std::string, std::string> probed;
  std::vector<std::string> taken;
  int trips_left = never_killed;
  std::uint64_t written = 0;
  bool moved = false, removing = false;
};

std::uint64_t sequences() {
  return std::getenv("MCDS_TEST_FULL") != nullptr ? 5000 : 300;
}

}  // namespace

TEST_CASE("model of items: no newest value goes, whatever is moved, pruned and killed") {
  std::uint64_t pruned = 0;
  for (std::uint64_t seed = 1; seed <= sequences(); ++seed) {
    CAPTURE(seed);
    Model model(seed);
    for (int i = 0; i < 4; ++i) model.write();
    for (int i = 0; i < 24; ++i) {
      CAPTURE(i);
      model.step();
      for (const auto& [key, value] : model.newest) {
        CAPTURE(key);
        REQUIRE(model.exists(key, value));
      }
    }
    for (const std::string& key : model.keys) pruned += model.memory.server_for(key).peek(key) ? 0 : 1;
  }
  // This proves that enough items were removed.
  CHECK(pruned > sequences());
}

}  // namespace mcds::move_model_test
