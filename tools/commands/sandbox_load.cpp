#include "tools/commands/sandbox_load.hpp"

#include "tools/commands/commands.hpp"

namespace mcds {

namespace {

constexpr std::size_t all_keys = 20'000;
constexpr std::size_t keys_per_trip = 20;
constexpr Duration between_trips = std::chrono::milliseconds(20);

struct Kind {
  const char* prefix;
  std::size_t size;  // of the smallest value
  std::int64_t ttl_s;
};
constexpr Kind kinds[] = {{"page:", 1500, 0}, {"session:", 200, 600}, {"query:", 400, 60}};

std::string key_of(std::size_t rank) {
  return kinds[rank % 3].prefix + std::to_string(rank);
}

Request store(std::size_t rank, WallTime now) {
  const Kind& kind = kinds[rank % 3];
  const Exptime ends =
      kind.ttl_s == 0 ? Exptime::never() : Exptime::after(std::chrono::seconds(kind.ttl_s), now);
  return Request::set(key_of(rank), std::string(kind.size + rank * 37 % 2000, 'x'), ends);
}

// For each rank, the sum of the weights up to it.
std::vector<double> zipf() {
  std::vector<double> sums;
  double sum = 0;
  for (std::size_t rank = 1; rank <= all_keys; ++rank) sums.push_back(sum += 1 / static_cast<double>(rank));
  return sums;
}

}  // namespace

void run_sandbox_load(Session& session) {
  const std::vector<double> sums = zipf();
  Cluster& cluster = session.cluster();
  for (;;) {
    std::vector<std::size_t> ranks;
    std::vector<Request> reads, stores;
    for (std::size_t i = 0; i < keys_per_trip; ++i) {
      const double at = session.random().unit() * sums.back();
      ranks.push_back(static_cast<std::size_t>(std::ranges::lower_bound(sums, at) - sums.begin()));
      reads.push_back(Request::get(key_of(ranks.back())));
    }
    const std::vector<Reply> replies = cluster.execute(reads);
    for (std::size_t i = 0; i < replies.size(); ++i) {
      if (replies[i].outcome == Outcome::miss) stores.push_back(store(ranks[i], session.clock().wall()));
    }
    cluster.execute(stores);
    if (std::ranges::all_of(replies, &Reply::failed)) return;
    session.clock().sleep_for(between_trips);
  }
}

}  // namespace mcds
