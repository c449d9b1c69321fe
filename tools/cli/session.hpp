// The composition root: global options, environment and config become the objects a verb works with.
#pragma once

#include <unordered_set>

#include "common/cluster/cluster.hpp"
#include "common/cluster/decorators.hpp"
#include "common/cluster/distinct.hpp"
#include "common/placement/pools/files.hpp"
#include "common/primitives/context.hpp"
#include "tools/cli/access.hpp"
#include "tools/cli/config.hpp"
#include "tools/cli/output.hpp"

namespace mcds {

// Notices that something of this client was lost or dropped under its hands, at the cost of no trip.

// A journal, a part of a log or a counter that this client has created or appended to is there until it is
// lost or dropped. So if the server says of a later request that it created it, what was acknowledged before
// is gone. Not judged: counters that expire, fences of locks, and what has several copies, which heal.
class CreationWatch final : public Decorator {
 public:
  // Both outlive it. `key_prefix`: of the structures.
  CreationWatch(Cluster& inner, const std::string& key_prefix) : Decorator(inner), key_prefix_(key_prefix) {}
  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override;
  std::unique_ptr<Pending> begin(std::vector<Request> batch) override;

  // The keys that were created a second time.
  const std::set<std::string>& lost() const { return lost_; }

 private:
  void note(std::span<const Request> batch, std::span<const Reply> replies);
  bool is_counter(const Request& request) const;
  bool is_judged(const Request& request) const;

  // What a batch touches first is remembered, about 4 MB of hashes; beyond that, losses go unnoticed.
  static constexpr std::size_t most_known = 100'000;

  const std::string& key_prefix_;
  std::unordered_set<std::size_t> known_;
  std::set<std::string> lost_;
};

// As given on the command line, before environment and config are consulted.
struct GlobalOptions {
  std::optional<std::string> servers, servers_from, pool, profile, key_prefix, config, protocol;
  std::optional<std::string> output;
  std::optional<std::uint64_t> copies;
  std::optional<Duration> timeout, connect_timeout, deadline;
  std::optional<std::string> errors;
  bool verbose = false, quiet = false;
  bool null = false;  // names end with a NUL instead of a line feed, in input and output
  bool tls = false, tls_insecure = false;
  AccessSettings access;
};

class Session {
 public:
  explicit Session(GlobalOptions options);

  // What bounds the run counts from here. Throws InvalidInput, Failure(cannot_write).
  void begin();

  Output& output() { return output_; }
  const Output& output() const { return output_; }
  Clock& clock() { return *clock_; }
  Random& random() { return random_; }
  // Settled on first use: flags beat the environment, which beats the config. Throw Failure(configuration) or
  // InvalidInput.
  const std::shared_ptr<const Placement>& placement();
  // The profile asked for, with its parameters.
  std::string profile_name();
  // The same pool as another client places keys on it.
  std::shared_ptr<const Placement> placement_as(std::string_view profile) {
    return make_placement(profile, pool().pool, placement_options());
  }
  const std::string& key_prefix();
  // Where keys are for this operation. Before placement().
  void place_for(Operation operation) { operation_ = operation; }
  // How many copies of each key there are. Throws InvalidInput when the pool has fewer servers.
  std::size_t copies();
  // The longest time for which a lock with copies may be held, if it is configured.
  std::optional<Duration> longest_lock_ttl();
  // Everything a structure needs. Connects lazily, per server.
  Context context_with_copies();
  // For items as they are: of one server each.
  Context context_on(Cluster& cluster) { return {cluster, clock(), random(), key_prefix(), copies()}; }
  // Throws Failure(configuration) if two servers of the list have turned out to be one, and copies were asked
  // for.
  void expect_distinct_servers() {
    if (several_) several_->expect_distinct();
  }
  const GlobalOptions& options() const { return options_; }
  Cluster& cluster();
  // The same connections in the making, for another placement: another pool, another profile.
  std::unique_ptr<Cluster> connect_to(std::shared_ptr<const Placement> placement) {
    return connect(std::move(placement), connect_options());
  }
  ConnectOptions connect_options();
  // Many lines follow: requests to a server that pauses are held back for a while.
  void hold_for_the_sick() { limits_->treat(RunLimits::Sick::hold); }
  // For requests that must be sent even to a server that was sick.
  void try_always() { limits_->treat(RunLimits::Sick::try_always); }
  SteadyTime deadline() const { return limits_->deadline(); }
  void set_deadline(SteadyTime when) { limits_->set_deadline(when); }
  bool is_too_late() { return limits_->over(clock().steady()); }
  Failure too_late(const std::string& server) const { return limits_->failure(server); }
  // Throws Failure(try_again) if it is too late.
  void expect_time() { limits_->check(clock().steady()); }
  // For a command that changes many things: from now on INT, TERM and HUP end it as its deadline does, so
  // that it says what it did. One that comes a second later ends it at once.
  void end_by_signals();
  // The signal that has ended it, or 0.
  int signal() const { return limits_->signal(); }
  // The run has ended before its work was done.
  void note_unfinished() { unfinished_ = true; }
  bool is_unfinished() const { return unfinished_; }
  // Adds `unfinished` to its summary then.
  void add_unfinished(JsonObject& line) const {
    if (unfinished_) line.boolean("unfinished", true);
  }
  // For the "server" field of answers: `10.0.0.1:11211`.
  const std::string& server_address(std::size_t server);
  // The field as it stands in an answer: `"server":"10.0.0.1:11211"`.
  const std::string& server_field(std::size_t server);

  // Whether this key, or any, was lost or dropped while the command used it.
  bool has_lost(const std::string& key) const { return watch_ && watch_->lost().contains(key); }
  bool has_lost() const { return watch_ && !watch_->lost().empty(); }
  // Says what was; false: nothing.
  bool tell_lost();

  // Whether one of the servers of two copies has not answered.
  bool is_degraded() { return several_ && copies() == 2 && several_->has_been_silent(); }

  // True once for each server, so that a message about it is not repeated.
  bool first_failure_of(std::size_t server) { return failed_servers_.insert(server).second; }

  const Config& config();
  // Which list of servers is chosen, and which settings count for it.
  const AccessSources& sources();
  // Servers of this session's list that are among these are reached, and logged in to, as these are. Before
  // pool().
  void share_credentials(const Pool& known) { known_.insert(known_.end(), known.begin(), known.end()); }
  // This session is for the other list of a run: if the servers of the main one are reached with TLS, no
  // login goes to other servers without. Before pool().
  void set_main_list(const Pool& main) {
    main_list_has_tls_ = std::ranges::any_of(main, &Server::tls);
    share_credentials(main);
  }
  // The inputs of a placement besides the profile and the pool.
  PlacementOptions placement_options();
  // The servers, and the hashing that their source specifies.
  const PoolFile& pool();

 private:
  void settle_output();
  std::uint64_t copies_of_pool();
  Cluster& distinct_servers();  // for keys in several copies
  // Of the pool that was named, of the environment, of the pool that is configured, of the defaults.
  std::optional<std::string> of_pools(std::optional<std::string> PoolConfig::*member,
                                      const char* variable = nullptr);

  GlobalOptions options_;
  std::shared_ptr<RunLimits> limits_ = std::make_shared<RunLimits>();
  Output output_;
  // Everything is settled once, when it is first needed.
  std::unique_ptr<Clock> clock_;  // waits for nothing beyond the deadline
  SystemRandom random_;
  std::optional<PoolFile> pool_;
  std::shared_ptr<const Placement> placement_;
  std::vector<std::string> addresses_;  // of the placement's servers
  std::vector<std::string> server_fields_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<DistinctServers> several_;  // the same servers
  std::optional<CreationWatch> watch_;        // of what structures create on either
  std::optional<Config> config_;
  std::optional<std::string> key_prefix_;
  std::optional<std::size_t> copies_;
  std::optional<AccessSources> sources_;
  Pool known_;  // servers of other lists of this run
  bool main_list_has_tls_ = false;
  Operation operation_ = Operation::any;
  std::set<std::size_t> failed_servers_;
  bool unfinished_ = false;
};

// The run time of a child does not count: the command's deadline moves by it.
class ChildTime {
 public:
  explicit ChildTime(Session& session);
  ~ChildTime();
  ChildTime(const ChildTime&) = delete;
  ChildTime& operator=(const ChildTime&) = delete;

 private:
  Session& session_;
  SteadyTime deadline_, started_;
};

}  // namespace mcds
