// SelectedRemoval: removes the keys of a selection from every server of a pool, at a limited rate, while
// clients continue to work.
//
// Each listed key is read and removed by its cas token, so a later write stays. Held locks and fences of any
// program are skipped, because removing one could give a lock two holders. On servers without cas, a
// concurrent write may be removed.
//
// Round trips: two for each batch of up to 512 keys. Memory: one batch.
// When things fail: a key whose server does not answer is reported and stays; after a lost reply it is
// `unknown`. An interrupted run can be repeated.
#pragma once

#include "common/base/bounds.hpp"
#include "common/base/errors.hpp"
#include "common/cluster/keys/live.hpp"
#include "common/cluster/statistics.hpp"
#include "common/primitives/context.hpp"

namespace mcds {

// A server's time in UNIX seconds, by which it expires items. If it is not reported, our time is used.
struct ServerTime {
  std::int64_t now;
  std::optional<ServerStart> start = {};
};
ServerTime server_time(const Reply& statistics, const Clock& clock);
// Returns the time of all servers. With `only`, the other servers are not queried.
std::vector<ServerTime> server_times(Cluster& cluster, const Clock& clock,
                                     std::optional<std::size_t> only = {});

struct RemovalOptions {
  KeySelection selection = {};
  std::optional<Duration> older_than = {};  // neither read nor written for this long, by the server's count
  std::optional<std::uint64_t> rate = {};   // maximum keys per second
  bool dry_run = false;                     // nothing is removed; `removed` is what would be
};

struct RemovalReport {
  std::uint64_t listed = 0;              // selected keys
  std::uint64_t removed = 0, bytes = 0;  // bytes of the servers' memory
  std::uint64_t gone = 0;                // expired, or removed by other clients
  std::uint64_t changed = 0;             // written before they could be removed
  std::uint64_t used = 0;                // used since they were listed; with older_than
  std::uint64_t held = 0;                // locks and fences
  std::uint64_t failed = 0;
};

class SelectedRemoval {
 public:
  struct Watch {
    // Called for each key that stays, with the name of the RemovalReport field that counts it; in a dry run
    // also for each key that would be removed, with nullptr.
    std::function<void(const std::string& key, std::size_t server, const char* kept)> key;
    std::function<void(const std::string& key, const Failure& failure)> failed;
  };
  // Reads the servers' time if the options need it.
  SelectedRemoval(const Context& context, RemovalOptions options, Watch watch);

  // Takes each key that the servers list; waits if the rate requires it.
  void take(const LiveKey& key);
  void finish() { send(); }
  // Returns the report so far.
  const RemovalReport& report() const { return report_; }

 private:
  struct Listed {
    std::string key;
    std::size_t server;
    std::uint64_t bytes;
  };
  void send();
  // Returns why the key stays, or nullptr if it does not.
  const char* kept(const Listed& listed, const Reply& seen);
  void count(const Listed& listed, const Reply& removed);
  void fail(const Listed& listed, const Failure& failure);

  Context context_;
  RemovalOptions options_;
  Watch watch_;
  RateLimiter limiter_;
  std::size_t largest_batch_;
  std::vector<ServerTime> times_;  // at the start of the run
  std::vector<Listed> batch_;
  std::size_t batch_bytes_ = 0;
  RemovalReport report_;
};

}  // namespace mcds
