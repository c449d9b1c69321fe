// The composition root: turns global options, environment and config into the objects that a verb works with.
#pragma once

#include <unordered_set>

#include "common/cluster/cluster.hpp"
#include "common/cluster/decorators.hpp"
#include "common/cluster/distinct.hpp"
#include "common/placement/pools/files.hpp"
#include "common/primitives/context.hpp"
#include "tools/cli/access.hpp"
#include "tools/cli/output.hpp"

namespace mcds {

// Detects that data of this client was lost or dropped while it was used, without any extra round trip.

// A journal, a part of a log or a counter that this client has created or appended to exists until it is lost
// or dropped. So if the server reports that a later request created it, acknowledged data is gone. Not
// judged: counters with a ttl, fences of locks, and data in several copies, which read repair restores.
class CreationWatch final : public Decorator {
 public:
  // Both references must outlive this object. `key_prefix` is that of the structures.
  CreationWatch(Cluster& inner, const std::string& key_prefix) : Decorator(inner), key_prefix_(key_prefix) {}
  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override;
  std::unique_ptr<Pending> begin(std::vector<Request> batch) override;

  // Returns the keys that were created a second time.
  const std::set<std::string>& lost() const { return lost_; }

 private:
  void note(std::span<const Request> batch, std::span<const Reply> replies);
  bool is_counter(const Request& request) const;
  bool is_judged(const Request& request) const;

  // Limits the keys remembered in `known_`: about 4 MB of hashes. Losses of further keys go unnoticed.
  static constexpr std::size_t max_known = 100'000;

  const std::string& key_prefix_;
  std::unordered_set<std::size_t> known_;
  std::set<std::string> lost_;
};

class Session {
 public:
  explicit Session(GlobalOptions options);

  // Starts the run's time limits. Throws InvalidInput, Failure(cannot_write).
  void begin();

  Output& output() { return output_; }
  const Output& output() const { return output_; }
  Clock& clock() { return *clock_; }
  Random& random() { return random_; }
  // The following are resolved on first use: options win over the environment, which wins over the config.
  // They throw Failure(configuration) or InvalidInput.
  const std::shared_ptr<const Placement>& placement();
  // Returns the name of the requested profile, with its parameters.
  std::string profile_name();
  // Returns the placement of the same pool for another client's profile.
  std::shared_ptr<const Placement> placement_as(std::string_view profile) {
    return make_placement(profile, pool().pool, placement_options());
  }
  const std::string& key_prefix();
  // Sets the operation for which keys are located. Must be called before placement().
  void place_for(Operation operation) { operation_ = operation; }
  // Returns the number of copies of each key. Throws InvalidInput if the pool has fewer servers.
  std::size_t copies();
  // Returns the maximum ttl of a lock with copies.
  Duration longest_lock_ttl();
  // Returns the context that a structure needs. Connects to each server on first use.
  Context context_with_copies();
  // Returns a context for single items, each on one server.
  Context context_on(Cluster& cluster) { return {cluster, clock(), random(), key_prefix(), copies()}; }
  // Throws Failure(configuration) if copies are requested but two servers of the list are the same.
  void expect_distinct_servers() {
    if (several_) several_->expect_distinct();
  }
  const GlobalOptions& options() const { return options_; }
  Cluster& cluster();
  // Opens connections with the same settings for another placement: another pool or another profile.
  std::unique_ptr<Cluster> connect_to(std::shared_ptr<const Placement> placement) {
    return connect_with(std::move(placement), connect_options());
  }
  ConnectOptions connect_options();
  // Counts the changes that this session sends as those of `main`.
  void change_for(const Session& main) { changed_ = main.changed_; }
  // Delays requests to a server that pauses for a while, because many lines follow.
  void hold_for_unhealthy() { limits_->treat(RunLimits::UnhealthyPolicy::hold); }
  // Sends requests even to a server that was unhealthy.
  void try_always() { limits_->treat(RunLimits::UnhealthyPolicy::try_always); }
  // Fails requests to an unhealthy server at once, as commands do by default.
  void skip_unhealthy() { limits_->treat(RunLimits::UnhealthyPolicy::skip); }
  SteadyTime deadline() const { return limits_->deadline(); }
  // Returns the time until the deadline, Duration::max() if there is none.
  Duration time_left() {
    return deadline() == SteadyTime::max() ? Duration::max() : deadline() - clock().steady();
  }
  void set_deadline(SteadyTime when) { limits_->set_deadline(when); }
  bool is_too_late() { return limits_->over(clock().steady()); }
  Failure too_late(const std::string& server) const { return limits_->failure(server); }
  // Calls `observer` before each batch and while the run sleeps. An empty function ends this.
  void observe(std::function<void(SteadyTime)> observer) { limits_->observe(std::move(observer)); }
  // Throws Failure(try_again) if the deadline has passed.
  void expect_time() { limits_->check(clock().steady()); }
  // Lets INT, TERM and HUP end the run like its deadline, so that a command that changes many items reports
  // what it did. A second signal at least a second after the first ends it at once.
  void end_by_signals();
  // Returns the signal that ended the run, or 0.
  int signal() const { return limits_->signal(); }
  // Records that the run ended before its work was done.
  void note_unfinished() { unfinished_ = true; }
  bool is_unfinished() const { return unfinished_; }
  // Adds `unfinished` to the summary of such a run.
  void add_unfinished(JsonObject& line) const {
    if (unfinished_) line.boolean("unfinished", true);
  }
  // Returns the text of the "server" field of answers: `10.0.0.1:11211`.
  const std::string& server_address(std::size_t server);
  // Returns the complete field: `"server":"10.0.0.1:11211"`.
  const std::string& server_field(std::size_t server);

  // Returns true if this key, or any key, was lost or dropped while the command used it.
  bool has_lost(const std::string& key) const { return watch_ && watch_->lost().contains(key); }
  bool has_lost() const { return watch_ && !watch_->lost().empty(); }
  // Warns of the lost keys. Returns false if there are none.
  bool report_lost();

  // Returns true if there are two copies and one of the servers has not answered.
  bool is_degraded() { return several_ && copies() == 2 && several_->has_been_silent(); }

  // Returns true on the first call for each server, so that a message about it is not repeated.
  bool first_failure_of(std::size_t server) { return failed_servers_.insert(server).second; }

  const Config& config();
  // Returns the settings from all sources, and which list of servers is chosen.
  const Settings& settings();
  // Uses the connection settings of `known` for this session's servers in it. Call it before pool().
  void share_credentials(const Pool& known) { known_.insert(known_.end(), known.begin(), known.end()); }
  // Makes this session the one for the second list of a run: if the main list's servers are reached with TLS,
  // no login is sent without TLS to other servers. Must be called before pool().
  void set_main_list(const Pool& main) {
    main_list_has_tls_ = std::ranges::any_of(main, &Server::tls);
    share_credentials(main);
  }
  // Returns the inputs of a placement other than the profile and the pool.
  PlacementOptions placement_options();
  // Returns the servers, and the hashing that their source specifies.
  const PoolFile& pool();

 private:
  void resolve_output();
  std::unique_ptr<Cluster> connect_with(std::shared_ptr<const Placement> placement,
                                        const ConnectOptions& options) const;
  std::uint64_t copies_of_pool();
  Cluster& distinct_servers();  // for keys with several copies

  GlobalOptions options_;
  std::shared_ptr<RunLimits> limits_ = std::make_shared<RunLimits>();
  std::shared_ptr<std::atomic<bool>> changed_ = std::make_shared<std::atomic<bool>>();  // changes were sent
  Output output_;
  // The following are resolved once, when they are first needed.
  std::unique_ptr<Clock> clock_;  // does not sleep beyond the deadline
  SystemRandom random_;
  std::optional<PoolFile> pool_;
  std::shared_ptr<const Placement> placement_;
  std::vector<std::string> addresses_;  // addresses of the placement's servers
  std::vector<std::string> server_fields_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<DistinctServers> several_;  // wraps the same servers
  std::optional<CreationWatch> watch_;        // wraps either of the two, for structures
  std::optional<Config> config_;
  std::optional<std::string> key_prefix_;
  std::optional<std::size_t> copies_;
  std::optional<Settings> settings_;
  Pool known_;  // servers of other lists of this run
  bool main_list_has_tls_ = false;
  Operation operation_ = Operation::any;
  std::set<std::size_t> failed_servers_;
  bool unfinished_ = false;
};

// Leaves half of the time to the deadline to what follows: a server that is silent when all are asked first
// must not use up the time of the others.
class HalfTime {
 public:
  explicit HalfTime(Session& session) : session_(session), deadline_(session.deadline()) {
    if (deadline_ != SteadyTime::max()) session.set_deadline(deadline_ - session.time_left() / 2);
  }
  ~HalfTime() { session_.set_deadline(deadline_); }
  HalfTime(const HalfTime&) = delete;
  HalfTime& operator=(const HalfTime&) = delete;

 private:
  Session& session_;
  SteadyTime deadline_;
};

// Excludes the run time of a child from the command's deadline, which is moved accordingly.
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
