// Counts of the most used keys.
#include <doctest/doctest.h>

#include <array>

#include "tools/commands/item/hot.hpp"

using namespace mcds;

namespace {

void add(HotKeys& keys, const std::string& name, KeyEvent::What what, int times = 1, std::size_t server = 0) {
  for (int i = 0; i < times; ++i) keys.add({name, server, what, 3}, name);
}

std::string names(const std::vector<HotKey>& keys) {
  std::string all;
  for (const HotKey& key : keys) all += key.key + ' ';
  return all;
}

}  // namespace

TEST_CASE("hot keys: by all events, and by one kind") {
  using What = KeyEvent::What;
  HotKeys keys;
  add(keys, "read", What::found, 10);
  add(keys, "missed", What::missed, 8);
  add(keys, "written", What::stored, 7);
  add(keys, "removed", What::deleted, 6);
  add(keys, "evicted", What::evicted, 5);
  add(keys, "written", What::missed, 1);
  CHECK(names(keys.hottest(KeyMetric::events, 9)) == "read missed written removed evicted ");
  CHECK(names(keys.hottest(KeyMetric::events, 2)) == "read missed ");
  CHECK(names(keys.hottest(KeyMetric::gets, 9)) == "read missed written ");
  CHECK(names(keys.hottest(KeyMetric::misses, 9)) == "missed written ");
  CHECK(names(keys.hottest(KeyMetric::stores, 9)) == "written ");
  CHECK(names(keys.hottest(KeyMetric::evictions, 9)) == "evicted ");
  CHECK(keys.hottest(KeyMetric::events, 1).front().counts.gets == 10);
  CHECK(keys.uncounted() == 0);
}

TEST_CASE("hot keys: one key on two servers is two") {
  HotKeys keys;
  add(keys, "k", KeyEvent::What::found, 2, 0);
  add(keys, "k", KeyEvent::What::found, 3, 1);
  const auto hottest = keys.hottest(KeyMetric::events, 5);
  REQUIRE(hottest.size() == 2);
  CHECK(hottest[0].server == 1);
  CHECK(hottest[0].counts.gets == 3);
  CHECK(hottest[1].server == 0);
}

TEST_CASE("hot keys: more keys than are kept: the hottest stay, and what is uncounted is bounded") {
  constexpr int kept = 100, rare = 20000, hot = 5;
  HotKeys keys(kept);
  std::array<int, hot> truth{};
  for (int i = 0; i < rare; ++i) {
    add(keys, "rare" + std::to_string(i), KeyEvent::What::found);
    for (int k = 0; k < hot; ++k) {
      if (i % (10 * (k + 1)) != 0) continue;
      add(keys, "hot" + std::to_string(k), KeyEvent::What::found);
      ++truth.at(static_cast<std::size_t>(k));
    }
  }
  const auto hottest = keys.hottest(KeyMetric::events, hot);
  CHECK(names(hottest) == "hot0 hot1 hot2 hot3 hot4 ");
  CHECK(keys.uncounted() > 0);
  for (std::size_t k = 0; k < hot; ++k) {
    const auto real = static_cast<std::uint64_t>(truth.at(k));
    CHECK(hottest[k].counts.gets <= real);
    CHECK(hottest[k].counts.gets + keys.uncounted() >= real);
  }
  CHECK(keys.hottest(KeyMetric::events, rare).size() <= 2 * kept);
}
