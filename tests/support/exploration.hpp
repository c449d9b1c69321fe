// Explores exhaustively, on the real code, every order in which the requests of a few clients can reach the
// servers, and every fault within a budget at every place. Nothing is random: a run is a sequence of choices,
// and explore() runs all sequences that differ. The contract is at the end of this file.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/support/trial.hpp"

namespace mcds {

class Exploration;

// The faults that may hit a request or the servers. Each costs one fault of the budget.
struct Happenings {
  bool lost = true;         // never arrives; the client sees `unknown`
  bool reply_lost = true;   // applied; the client sees `unknown`. Later ones to the server: lost or delayed
  bool delayed = true;      // `unknown`, applied at any later time, with later requests to the server
  bool unreachable = true;  // nothing sent, and the client knows
  bool refused = true;      // SERVER_ERROR: not applied
  bool deaths = true;       // the client dies before the request
  bool evictions = false;   // an item disappears
  bool restarts = false;    // a server loses its items and its connections

  static Happenings none() { return {false, false, false, false, false, false, false, false}; }
};

struct Bounds {
  int faults = 0;  // in one run
  Happenings kinds = {};
  std::optional<std::size_t> mortal = {};  // the only client that may die; unset: any
  std::vector<Duration> pauses = {};       // how far time may advance, at any place
  int max_pauses = 0;                      // in one run
  bool stalls = false;  // clients may also pause before their first request, and after a reply
  // Bounds the search without being a reduction: a client that sleeps continues only while no other client is
  // within an operation, unless the other one sleeps too.
  bool prompt = false;
  // Bounds the search without being a reduction: a client that backs off may retry at once this many times in
  // one operation, if an item that it read has changed since. After that it continues only when no other
  // client can, as if its pauses were long. Unset: it may continue at any time; where retry loops are long,
  // the interleavings then do not end.
  std::optional<int> hasty_attempts = {};
  std::size_t servers = 1;
  MemoryServerOptions server = {};
  bool native = true;  // composites are one request (meta), else sequences (classic)
  std::vector<std::chrono::milliseconds> skews = {};       // offsets of the clients' wall clocks
  std::function<bool(const std::string&)> evictable = {};  // which keys; unset: all
  std::size_t max_schedules = 1'000'000;
  std::uint64_t effort = std::numeric_limits<std::uint64_t>::max();  // steps of all runs
  std::size_t max_steps = 500;                                       // more is a violation: a client loops
  bool reduced = true;               // false: runs every sequence of choices, to check the reduction
  std::optional<int> preemptions{};  // unreduced only: limit of interruptions within operations
  bool servers_in_order = false;     // bound, not a reduction: a batch reaches one server after the other
  bool collect_finals = false;

  std::string reported() const;  // the bounds, as text
};

struct Verdict {
  std::uint64_t schedules = 0;  // runs that ended
  std::uint64_t pruned = 0;     // abandoned because an equal run is made
  bool complete = false;        // all runs were made; false after a violation
  std::optional<std::string> violation;
  std::vector<std::string> story;
  std::set<std::uint64_t> finals;  // digests of the servers' final contents and the operations' results
  double seconds = 0;              // of processor time

  std::string reported() const;  // the violation and its story, in lines
  std::string line() const;      // schedules, pruned, verdict, seconds
};

// Runs all schedules until one violates, then finds the shortest: fewest faults and pauses, then preemptions.
Verdict explore(const Scenario& scenario, const Bounds& bounds);

class ExploredClient final : public Actor {
 public:
  static constexpr Duration min_sleep = std::chrono::milliseconds(100);

  ~ExploredClient() override;
  bool operation(const std::string& name, const std::function<std::string()>& act) override;
  // An operation begins with its first request and ends with its last.
  std::size_t begun() const override;
  std::size_t ended() const override;
  std::size_t index() const override;
  Trial& run() override;

  WallTime wall() const override;
  SteadyTime steady() const override;
  void sleep_for(Duration duration) override;

 private:
  friend class Exploration;
  friend class ExploredWire;
  struct Inside;
  explicit ExploredClient(Exploration& run, std::size_t index, std::function<void(Context&, Actor&)> body);
  Exploration& run_;
  std::unique_ptr<Inside> inside_;
};

class Exploration final : public Trial {
 public:
  ~Exploration() override;
  Exploration(const Exploration&) = delete;
  Exploration& operator=(const Exploration&) = delete;

  void client(std::function<void(Context&, Actor&)> body) override;
  void check(std::function<std::optional<std::string>(Context& observer)> check) override;
  void violated(const std::string& what) override;

  MemoryCluster& servers() override;
  VirtualTime& time() override;
  std::size_t steps() const override;
  bool lost_data() const override;
  Context& observer() override;

 private:
  friend class ExploredClient;
  friend class ExploredWire;
  friend class Explorer;
  struct Inside;
  explicit Exploration(const Bounds& bounds);
  std::unique_ptr<Inside> inside_;
};

}  // namespace mcds

//   void two_increments(Trial& run)       {                    // builds one run; called for each schedule
//     auto acknowledged = std::make_shared<int>(0);
//     run.servers().execute(Request::set("n", "5", …));        // the initial contents
//     for (int i = 0; i < 2; ++i) {
//       run.client([=](Context& context, Actor& client) {
//         client.operation("incr", [&] { increment(context, "n"); ++*acknowledged; return "done"; });
//       });
//     }
//     run.check([=](Context& observer) -> std::optional<std::string> {
//       if (value(observer, "n") < 5 + *acknowledged) return "an acknowledged increment is missing";
//       return std::nullopt;
//     });
//   }
//   const Verdict verdict = explore(two_increments, {.faults = 1});
//   INFO(verdict.reported());                                  // the shortest counter-example, as a story
//   CHECK(!verdict.violation);
//
// Any code over Cluster, Clock and Random can be explored, including a test's own protocol. Requirements:
//   - A run depends on the choices alone: no state outlives it, and each client draws from its own
//     `context.random`.
//   - Clients communicate only through the servers. Notes for check() are read there, or in the same client.
//     To compare times, use the steps at which operations begin and end (Actor::begun, ended): an
//     operation begins with its first request and ends with its last, so the intervals are tight.
//   - Sleeping advances the time of all clients. A sleep shorter than `min_sleep`, also in sum since an
//     operation's last longer one, is a back-off and advances no time.
//
// One step is one request at one server. Requests of one batch to one server are executed in order, possibly
// with other clients' requests in between; requests to different servers are executed in any order. While
// faults are left, a step has variants (see Happenings). A delayed request is a step of its own at any later
// time. Time advances only by sleeps and `pauses`.
//
// Reduction: source sets and sleep sets (Abdulla, Aronis, Jonsson, Sagonas 2014). Two steps may be exchanged
// if they concern different items, or neither changes the item; if neither advances time, restarts a server
// or kills the other's client; and if they are not the end of one operation and the beginning of another, so
// that equal runs have the same order of operations. A run is skipped, or abandoned ("pruned"), only if such
// exchanges turn it into a run that is made. A request too large for any item is always refused, so it can be
// exchanged with every step. If requests may be delayed, a lost reply is tried only with the loss of the
// later requests: a request that is delayed but applied before any other step has the same effect. Cas tokens
// differ between equal runs, but they are compared only for equality, and only with those of the same item.
