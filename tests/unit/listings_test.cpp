#include "common/operations/listings.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace mcds;

namespace {

// Adds `count` keys, each on its server. Every third is also on another server, with its name only there.
void fill(Listings& listings, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i)
    listings.add({.hash = i * 0x9e3779b97f4a7c15, .bytes = i, .server = 0, .owner = true});
  for (std::uint64_t i = 0; i < count; i += 3)
    listings.add({.hash = i * 0x9e3779b97f4a7c15, .bytes = i, .server = 1}, "key" + std::to_string(i));
}

void check_all(Listings& listings, std::uint64_t count) {
  std::uint64_t keys = 0, doubled = 0, last = 0;
  bool right = true;
  listings.for_each([&](std::span<const Listing> group, const std::string& name) {
    const Listing& first = group.front();
    right = right && (keys == 0 || first.hash > last);
    right = right && group.size() == (first.bytes % 3 == 0 ? 2 : 1);
    right = right && name == (group.size() == 2 ? "key" + std::to_string(first.bytes) : "");
    right = right && std::ranges::count(group, true, &Listing::owner) == 1;
    last = first.hash;
    ++keys;
    doubled += group.size() == 2 ? 1 : 0;
  });
  CHECK(right);
  CHECK(keys == count);
  CHECK(doubled == (count + 2) / 3);
}

}  // namespace

TEST_CASE("listings: each key once with all its servers, in memory and in runs, as often as asked") {
  for (const std::size_t max_bytes : {std::size_t{1} << 30, std::size_t{100'000}, std::size_t{4096}}) {
    Listings listings(max_bytes);
    fill(listings, 20'000);
    check_all(listings, 20'000);
    check_all(listings, 20'000);
  }
}

TEST_CASE("listings: what one server lists again and again is one listing") {
  Listings listings(1000);
  for (int i = 0; i < 5000; ++i) listings.add({.hash = 7, .server = 2}, "again");
  int keys = 0;
  listings.for_each([&](std::span<const Listing> group, const std::string& name) {
    CHECK(group.size() == 1);
    CHECK(name == "again");
    ++keys;
  });
  CHECK(keys == 1);
}
