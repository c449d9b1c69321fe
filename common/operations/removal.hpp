// Removes the keys of a selection from every server of a pool, at a bounded rate, while clients go on.
//
// Each key that a server lists is read, and removed as it was read: what is written in between stays. Held
// locks, fences and what a change of the number of copies left behind are passed over, whoever's they are: to
// remove one would give a lock two holders. Where servers have no cas, a write at the same moment may be
// removed.
//
// Round trips: two for each batch of up to 512 keys. Memory: one batch.
// When things fail: a key whose server does not answer is reported and stays; after a lost reply it is
// `unknown`. A run that ends may be repeated.
#pragma once

#include "common/base/bounds.hpp"
#include "common/base/errors.hpp"
#include "common/cluster/keys/live.hpp"
#include "common/cluster/statistics.hpp"
#include "common/primitives/context.hpp"

namespace mcds {

// What a server takes for now, in seconds of UNIX time: it expires items by its own clock. One that does not
// say is taken to have ours.
struct ServerTime {
  std::int64_t now;
  std::optional<ServerLife> life = {};
};
ServerTime server_time(const Reply& statistics, const Clock& clock);
// Of all. `only`: the others are not asked.
std::vector<ServerTime> server_times(Cluster& cluster, const Clock& clock,
                                     std::optional<std::size_t> only = {});

struct RemovalOptions {
  KeySelection selection = {};
  std::optional<Duration> older_than = {};  // neither read nor written for so long, as the server counts it
  std::optional<std::uint64_t> rate = {};   // keys a second at most
  bool dry_run = false;                     // nothing is removed, and `removed` is what would be
};

struct RemovalReport {
  std::uint64_t listed = 0;              // keys of the selection
  std::uint64_t removed = 0, bytes = 0;  // bytes of the servers' memory
  std::uint64_t gone = 0;                // expired, or removed by others
  std::uint64_t changed = 0;             // written while they were to be removed
  std::uint64_t used = 0;                // since they were listed, with older_than
  std::uint64_t held = 0;                // locks and fences
  std::uint64_t failed = 0;
};

class SelectedRemoval {
 public:
  struct Watch {
    // With a dry run each that would be removed, and always each that stays, with the word for it in
    // RemovalReport.
    std::function<void(const std::string& key, std::size_t server, const char* kept)> key;
    std::function<void(const std::string& key, const Failure& failure)> failed;
  };
  // Asks the servers for their time if it matters.
  SelectedRemoval(const Context& context, RemovalOptions options, Watch watch);

  // To be given every key that the servers list; waits where the rate says so.
  void take(const LiveKey& key);
  void finish() { send(); }
  // So far.
  const RemovalReport& report() const { return report_; }

 private:
  struct Listed {
    std::string key;
    std::size_t server;
    std::uint64_t bytes;
  };
  void send();
  // Why this one stays; nullptr: it does not.
  const char* kept(const Listed& listed, const Reply& seen);
  void count(const Listed& listed, const Reply& removed);
  void fail(const Listed& listed, const Failure& failure);

  Context context_;
  RemovalOptions options_;
  Watch watch_;
  Pace pace_;
  std::size_t largest_batch_;
  std::vector<ServerTime> times_;  // when the run began
  std::vector<Listed> batch_;
  std::size_t batch_bytes_ = 0;
  RemovalReport report_;
};

}  // namespace mcds
