// Exhaustive exploration: every order in which the requests of a few clients can reach the servers, and
// every fault within a budget at every place, on the real code. Nothing is drawn: a run is a sequence of
// choices, and explore() runs all sequences that differ. Its contract stands at the end of this file.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/primitives/context.hpp"
#include "tests/support/memory_cluster.hpp"

namespace mcds {

class Exploration;
using Scenario = std::function<void(Exploration& run)>;

// What may happen to a request or to the servers, each time at the cost of one fault.
struct Happenings {
  bool lost = true;         // never arrives; `unknown`
  bool reply_lost = true;   // applied; `unknown`. What is behind it to the same server is lost, or delayed
  bool delayed = true;      // `unknown`, applied at any later time, with what is behind it
  bool unreachable = true;  // nothing sent, and the client knows
  bool refused = true;      // SERVER_ERROR: not applied
  bool deaths = true;       // the client dies before it
  bool evictions = false;   // an item disappears
  bool restarts = false;    // a server is empty, open connections are dead

  static Happenings none() { return {false, false, false, false, false, false, false, false}; }
};

struct Bounds {
  int faults = 0;  // in one run
  Happenings kinds = {};
  std::optional<std::size_t> mortal = {};  // the only client that dies; any without it
  std::vector<Duration> pauses = {};       // how long time may stand out, at any place
  int most_pauses = 0;                     // in one run
  bool stalls =
      false;  // clients stand still before their first request, and between a reply and the next, too
  // A bound, no reduction: who sleeps goes on only while nobody else is in the midst of an operation, unless
  // that sleeps too.
  bool prompt = false;
  // A bound, no reduction: who backs off goes on at once so often in one operation, if what it looked at has
  // changed since;
  // then only when nobody else can go on, as if its pauses were long. Without it, at any time: where loops
  // are long, nobody sees the end of their interleavings.
  std::optional<int> hasty_attempts = {};
  std::size_t servers = 1;
  MemoryServerOptions server = {};
  bool native = true;  // composites are one request (meta), else sequences (classic)
  std::vector<std::chrono::milliseconds> skews = {};       // of the clients' wall clocks
  std::function<bool(const std::string&)> evictable = {};  // which keys; all without it
  std::size_t most_schedules = 1'000'000;
  std::uint64_t effort = std::numeric_limits<std::uint64_t>::max();  // steps of all runs
  std::size_t most_steps = 500;                                      // more is a violation: somebody spins
  bool reduced = true;  // false: every sequence of choices, to check the reduction
  std::optional<int>
      preemptions{};  // only unreduced: how often another client may go on in the midst of an operation
  bool servers_in_order = false;  // a bound, no reduction: a batch reaches one server after the other
  bool collect_finals = false;

  std::string told() const;  // what is bounded
};

struct Verdict {
  std::uint64_t schedules = 0;  // run to their end
  std::uint64_t pruned = 0;     // given up because an equal one is run
  bool complete = false;        // all of them, unless a violation ended it
  std::optional<std::string> violation;
  std::vector<std::string> story;
  std::set<std::uint64_t> finals;  // digests of what was left on the servers and told by operations
  double seconds = 0;              // of the processor

  std::string told() const;  // violation and story, in lines
  std::string line() const;  // schedules, pruned, verdict, seconds
};

// Runs all of them, until one violates; then looks for the shortest that does: fewest faults and pauses
// first, then fewest preemptions.
Verdict explore(const Scenario& scenario, const Bounds& bounds);

class ExploredClient final : public Clock {
 public:
  static constexpr Duration shortest_sleep = std::chrono::milliseconds(100);

  ~ExploredClient() override;
  // `act` answers what it tells; Failure is caught and told. False: it failed.
  bool operation(const std::string& name, const std::function<std::string()>& act);
  // Steps at which the operation that runs, or ran last, sent its first request, and ended.
  std::size_t begun() const;
  std::size_t ended() const;
  std::size_t index() const;
  Exploration& run() { return run_; }

  WallTime wall() const override;
  SteadyTime steady() const override;
  void sleep_for(Duration duration) override;

 private:
  friend class Exploration;
  friend class ExploredWire;
  struct Inside;
  explicit ExploredClient(Exploration& run, std::size_t index,
                          std::function<void(Context&, ExploredClient&)> body);
  Exploration& run_;
  std::unique_ptr<Inside> inside_;
};

class Exploration {
 public:
  ~Exploration();
  Exploration(const Exploration&) = delete;
  Exploration& operator=(const Exploration&) = delete;

  void client(std::function<void(Context&, ExploredClient&)> body);
  // Called when every client has returned or died and nothing is on its way any more.
  void check(std::function<std::optional<std::string>(Context& observer)> check);
  // For checks that need not wait for the end.
  void violated(const std::string& what);

  MemoryCluster& servers();
  VirtualTime& time();
  std::size_t steps() const;
  // Items were lost: what is missing may be missing.
  bool lost_data() const;
  // Faultless and instantaneous.
  Context& observer();

 private:
  friend class ExploredClient;
  friend class ExploredWire;
  friend class Explorer;
  struct Inside;
  explicit Exploration(const Bounds& bounds);
  std::unique_ptr<Inside> inside_;
};

}  // namespace mcds

//   void two_increments(Exploration& run) {                    // builds one run: called for each schedule
//                                                              anew
//     auto acknowledged = std::make_shared<int>(0);
//     run.servers().execute(Request::set("n", "5", …));        // what is there before
//     for (int i = 0; i < 2; ++i) {
//       run.client([=](Context& context, ExploredClient& client) {
//         client.operation("incr", [&] { increment(context, "n"); ++*acknowledged; return "done"; });
//       });
//     }
//     run.check([=](Context& observer) -> std::optional<std::string> {
//       if (value(observer, "n") < 5 + *acknowledged) return "an acknowledged increment is missing";
//       return std::nullopt;
//     });
//   }
//   const Verdict verdict = explore(two_increments, {.faults = 1});
//   INFO(verdict.told());                                      // the shortest counter-example, told as a
//                                                              story
//   CHECK(!verdict.violation);
//
// Any code over Cluster, Clock and Random can be explored, a test's own protocol too. What must hold of it:
//   - A run depends on the choices alone: no state outlives it, each client draws from its own
//   `context.random`.
//   - Clients talk to each other through the servers. What they note for check() is read there, or in the
//     same client; who compares times uses steps() at an operation's begin and end (ExploredClient::begun,
//     ended): an operation begins with its first request and ends with its last, so that intervals are as
//     tight as can be.
//   - Sleeping advances everybody's time. Less than `shortest_sleep`, also in sum since an operation's last
//     longer one, is a back-off and passes none.
//
// One step is one request at one server. Requests of one batch to one server are executed in order, with
// others' requests in between; those to different servers in any order. A step has variants when faults are
// left (see Happenings); a delayed request is a step of its own at any later time. Time stands still but for
// sleeps and `pauses`.
//
// Reduction: source sets and sleep sets (Abdulla, Aronis, Jonsson, Sagonas 2014). Two steps are taken for
// exchangeable when they concern different items, or neither changes the item; when none moves time, restarts
// a server or kills the other's client; and when not one ends an operation and the other begins one, so that
// who finished before whom is the same in all runs that are taken for equal. A run is not begun, or given up
// ("pruned"), only when exchanging such steps makes it one that is run. A request too large for any item is
// refused whatever is there: it is exchangeable with everything. Where requests may be delayed, a lost reply
// is left out unless what is behind it is lost, too: delayed, and applied before anything else happens, is
// the same to everybody. cas uniques differ between such runs; they are compared for equality with those of
// the same item only.
