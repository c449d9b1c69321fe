// What more or less memory would give: hit ratios at other sizes, estimated from what is in the servers and
// what is asked for now.
//
// The keys of a server are listed once, then watched for a while; nothing is changed. Watching costs the
// server time for each event, so the cost is measured first: statistics without, with and without a watcher
// again. A server that pays more than `most_cost` for a request, or drops more than `most_dropped` of its
// events, is left alone, and its answer says so.
#pragma once

#include "common/cluster/cluster.hpp"
#include "common/cluster/keys/line_stream.hpp"

namespace mcds::capacity {

constexpr double most_dropped = 0.05;

struct Options {
  ConnectOptions connecting = {};
  Duration watched{};
  Duration measured{};          // each of the three times that tell the cost
  std::vector<double> factors;  // of the memory that a server has
  double most_cost = 0.1;       // more processor time a request
  // False: end now.
  std::function<bool(Duration)> wait = {};
};

struct Estimate {
  double factor = 1, hit_ratio = 0, low = 0, high = 0;
};

struct OfServer {
  std::uint64_t memory_bytes = 0;
  std::uint64_t gets = 0;            // while it was watched, by its own count
  std::optional<double> hit_ratio;   // of these
  std::vector<Estimate> estimates;   // for each factor; none: it could not be told
  std::optional<Estimate> one_lost;  // if one server of the pool were lost, and the others shared its keys
  std::optional<double> coverage;    // the share of events that were seen
  std::optional<double> cost;        // by which a request takes more processor time while it is watched
  std::vector<std::string> notes;
  std::string failure;   // why there is no answer
  bool stopped = false;  // because of the cost or of dropped events
};

// One for each server of the pool.
std::vector<OfServer> measure(std::shared_ptr<const Placement> placement, const Clock& clock,
                              Options options);

// Their sum, by their requests. Servers without an answer are left out.
OfServer of_pool(const std::vector<OfServer>& servers);

// What a server takes for an item of this size, header and key included.
class ChunkSizes {
 public:
  // From `stats settings`: the smallest chunk, the factor between them, and the largest; 0: unknown.
  ChunkSizes(double smallest, double factor, double largest);
  std::uint64_t chunk_for(std::uint64_t item_bytes) const;

 private:
  std::vector<std::uint64_t> sizes_;
};

}  // namespace mcds::capacity
