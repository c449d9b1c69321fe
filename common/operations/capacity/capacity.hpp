// measure(): estimates hit ratios for more or less memory, from the items and requests of the servers.
//
// The keys of a server are listed once, then watched for a while; nothing is changed. Watching costs the
// server time for each event, so that cost is measured first, by statistics without, with and without a
// watcher. Watching ends early if it takes more than `max_cost` per request or drops more than
// `max_dropped` of the events; the result says so.
#pragma once

#include "common/cluster/cluster.hpp"
#include "common/cluster/keys/line_stream.hpp"

namespace mcds::capacity {

constexpr double max_dropped = 0.05;

struct Options {
  ConnectOptions connecting = {};
  Duration watched{};
  Duration measured{};          // each of the three measurements of the cost
  std::vector<double> factors;  // multiples of the server's memory
  double max_cost = 0.1;        // maximum increase of the processor time per request
  // Waits. Returns false to end now.
  std::function<bool(Duration)> wait = {};
};

struct Estimate {
  double factor = 1, hit_ratio = 0, low = 0, high = 0;
};

struct PerServer {
  std::uint64_t memory_bytes = 0;
  std::uint64_t gets = 0;            // while watched, by the server's count
  std::optional<double> hit_ratio;   // of these gets
  std::vector<Estimate> estimates;   // for each factor; empty if impossible
  std::optional<Estimate> one_lost;  // if one server of the pool were lost and the others shared its keys
  std::optional<double> coverage;    // the share of events that were seen
  std::optional<double> cost;        // the increase of processor time per request while watched
  double model_error = 0;            // at the current size; of a pool, the largest of its servers
  std::vector<std::string> notes;
  std::string failure;  // why there is no result
};

// Returns an estimate for another size, given the model's error at the current one: more memory never gives
// fewer hits. A model that hits too often does so at a smaller size too, and one that hits too rarely does so
// by less, because a cache without memory has no hits.
Estimate corrected(Estimate estimate, double error);

// Returns the result for each server of the pool.
std::vector<PerServer> measure(std::shared_ptr<const Placement> placement, const Clock& clock,
                               Options options);

// Returns the results of all servers, weighted by requests. Servers without a result are left out.
PerServer of_pool(const std::vector<PerServer>& servers);

// Computes the memory that a server uses for an item, including its header and key.
class ChunkSizes {
 public:
  // Takes values of `stats settings`: the smallest chunk, the factor between chunks, the largest chunk; 0:
  // unknown.
  ChunkSizes(double smallest, double factor, double largest);
  std::uint64_t chunk_for(std::uint64_t item_bytes) const;

 private:
  std::vector<std::uint64_t> sizes_;
};

}  // namespace mcds::capacity
