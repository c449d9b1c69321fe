// Estimated hit ratios, compared with a simulated cache of each size.
#include "common/operations/capacity/capacity.hpp"

#include <doctest/doctest.h>

#include <list>
#include <random>

#include "common/operations/capacity/reuse.hpp"

namespace mcds::capacity_estimates {

namespace {

// A cache that drops the least recently used key; every value is one byte.
class Cache {
 public:
  explicit Cache(std::size_t size) : size_(size) {}
  bool get(std::uint64_t key) {
    const auto found = at_.find(key);
    const bool hit = found != at_.end();
    if (hit) order_.erase(found->second);
    order_.push_front(key);
    at_[key] = order_.begin();
    if (order_.size() > size_) {
      at_.erase(order_.back());
      order_.pop_back();
    }
    return hit;
  }
  const std::list<std::uint64_t>& order() const { return order_; }

 private:
  std::size_t size_;
  std::list<std::uint64_t> order_;
  std::unordered_map<std::uint64_t, std::list<std::uint64_t>::iterator> at_;
};

}  // namespace

TEST_CASE("capacity: a loop over 100 keys hits in a cache that holds them all, and never in a smaller one") {
  ReuseDistances distances(400);
  for (int round = 0; round < 50; ++round) {
    for (std::uint64_t key = 0; key < 100; ++key) distances.get(key, 1, round);
  }
  distances.finish();
  CHECK(distances.hit_ratio(90).value == doctest::Approx(0).epsilon(0.001));
  CHECK(distances.hit_ratio(110).value > 0.97);
}

TEST_CASE("capacity: from what one cache holds and a while of its requests, the hit ratios of others") {
  std::mt19937_64 random(1);
  std::vector<double> weights;
  for (int rank = 1; rank <= 20000; ++rank) weights.push_back(std::pow(rank, -0.9));
  std::discrete_distribution<std::uint64_t> zipf(weights.begin(), weights.end());
  const std::vector<std::size_t> sizes{1000, 2000, 4000, 8000};
  std::vector<Cache> caches(sizes.begin(), sizes.end());
  for (int i = 0; i < 200'000; ++i) {
    const std::uint64_t key = zipf(random);
    for (Cache& cache : caches) cache.get(key);
  }
  ReuseDistances distances(9000);
  // The estimate knows only the contents of the second cache.
  for (auto key = caches[1].order().rbegin(); key != caches[1].order().rend(); ++key)
    distances.seed(*key, 1, ReuseDistances::never);
  std::vector<double> hits(sizes.size());
  constexpr int requests = 60'000;
  for (int i = 0; i < requests; ++i) {
    const std::uint64_t key = zipf(random);
    for (std::size_t cache = 0; cache < caches.size(); ++cache) hits[cache] += caches[cache].get(key) ? 1 : 0;
    distances.get(key, 1, 0);
  }
  distances.finish();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const double estimated = distances.hit_ratio(static_cast<double>(sizes[i])).value;
    CHECK(std::abs(estimated - hits[i] / requests) < 0.03);
  }
}

TEST_CASE("capacity: what has expired or was deleted is a miss at any size") {
  ReuseDistances distances(100);
  for (std::int64_t now = 0; now < 100; ++now) {
    distances.get(1, 1, now * 10);
    distances.store(1, 1, now * 10 + 5, now * 10);
    distances.get(2, 1, now * 10);
    distances.store(2, 1, ReuseDistances::never, now * 10);
    distances.remove(2);
  }
  distances.finish();
  CHECK(distances.hit_ratio(100).value < 0.02);
}

TEST_CASE(
    "capacity: less memory never gives more hits, whatever the model's error and however few the requests") {
  std::mt19937_64 random(3);
  ReuseDistances distances(100);
  for (int i = 0; i < 40; ++i) distances.get(random() % 25, 1, 0);
  distances.finish();
  for (const double error : {-0.5, -0.1, 0.0, 0.3}) {
    capacity::Estimate smaller{0, 0, 0, 0};
    for (double factor = 0.01; factor < 1.5; factor += 0.01) {
      const auto ratio = distances.hit_ratio(factor * 30);
      const auto one = capacity::corrected({factor, ratio.value, ratio.low, ratio.high}, error);
      CHECK(one.hit_ratio >= smaller.hit_ratio);
      CHECK(one.low >= smaller.low);
      CHECK(one.high >= smaller.high);
      CHECK((one.low <= one.hit_ratio && one.hit_ratio <= one.high));
      smaller = one;
    }
  }
}

TEST_CASE("capacity: the pool's result says that the model of one of its servers is off") {
  capacity::PerServer good, bad;
  good.gets = bad.gets = 100;
  good.hit_ratio = bad.hit_ratio = 0.5;
  good.estimates = bad.estimates = {{1, 0.5, 0.4, 0.6}};
  bad.model_error = -0.25;
  const auto pool = capacity::of_pool({good, bad});
  REQUIRE(pool.notes.size() == 1);
  CHECK(pool.notes.front().find("off by up to 0.250") != std::string::npos);
  CHECK(capacity::of_pool({good, good}).notes.empty());
}

TEST_CASE("capacity: chunks as memcached cuts them with its default settings") {
  const capacity::ChunkSizes sizes(48, 1.25, 524288);
  CHECK(sizes.chunk_for(60) == 96);
  CHECK(sizes.chunk_for(97) == 120);
  CHECK(sizes.chunk_for(500) == 600);
  CHECK(sizes.chunk_for(1'000'000) == 1'000'000);  // of several chunks
  CHECK(capacity::ChunkSizes(0, 0, 0).chunk_for(77) == 77);
}

}  // namespace mcds::capacity_estimates
