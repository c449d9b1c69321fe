// Deterministic simulation: many clients of one structure against in-memory servers, interleaved at every
// request by a seeded scheduler that also loses, delays and repeats nothing else than a real network and
// real servers would. The same seed gives the same run, whatever the machine. Its contract stands at the end
// of this file.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/primitives/context.hpp"
#include "tests/support/memory_cluster.hpp"

namespace mcds {

class Simulation;

// What may go wrong. Each schedule uses a random part of what is allowed, so that some are calm and some are
// wild.
struct Faults {
  bool unreachable = true;    // a connection is refused: nothing sent
  bool lost_requests = true;  // sent, never arrived; the client sees `unknown`
  bool lost_replies = true;   // applied; the client sees `unknown`
  bool ghosts = true;         // applied seconds after the client gave up
  bool kills = true;          // a client dies between two trips; nothing it does afterwards reaches a server
  bool pauses = true;         // a client stands still for seconds
  bool late_ticks = true;     // a server's clock is up to a second late, then jumps
  bool server_stalls = true;  // a server stands still; what waits is applied when it continues
  bool client_skew = true;    // clients' wall clocks differ by up to `largest_skew`
  bool evictions = false;     // any item disappears
  bool restarts = false;      // a server is empty, its cas uniques start at 1
  bool flushes = false;

  static Faults none() { return {false, false, false, false, false, false, false, false, false}; }
  // Everything, the loss of data too.
  static Faults all() { return {true, true, true, true, true, true, true, true, true, true, true, true}; }
};

enum class CompositeStyle {
  native,   // incr_or_create is one request, as under meta
  classic,  // both composites are sequences of requests
  either,   // each schedule chooses
};

struct SimulationOptions {
  std::size_t servers = 1;
  Faults faults = {};
  CompositeStyle composites = CompositeStyle::either;
  std::chrono::milliseconds largest_skew{3000};
  Duration timeout = std::chrono::seconds(1);  // of the clients
  std::size_t largest_step_count = 20000;      // more is a violation: somebody spins
  MemoryServerOptions server = {};             // tick phases and server skews are drawn per schedule
};

struct FaultCounts {
  std::size_t messages = 0;  // requests whose outcome the client did not learn
  std::size_t kills = 0;
  std::size_t losses = 0;  // evictions, restarts and flushes that hit something
};

class SimulatedClient final : public Clock {
 public:
  ~SimulatedClient() override;
  Simulation& simulation() { return simulation_; }
  std::size_t index() const { return index_; }
  // A point between two trips: others may run, this client may die here. Structures need not call it; bodies
  // may, to have their own steps interleaved.
  void step();

  WallTime wall() const override;
  SteadyTime steady() const override;
  void sleep_for(Duration duration) override;

 private:
  friend class Simulation;
  friend class SimulatedWire;
  struct Inside;
  SimulatedClient(Simulation& simulation, std::size_t index,
                  std::function<void(Context&, SimulatedClient&)> body);

  Simulation& simulation_;
  std::size_t index_;
  std::unique_ptr<Inside> inside_;
};

class Simulation {
 public:
  Simulation(std::uint64_t seed, SimulationOptions options = {});
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // Adds a client; also while running. It starts somewhere in the first milliseconds.
  void client(std::function<void(Context&, SimulatedClient&)> body);
  // Until every client returned or died and every delayed request was applied. Throws std::runtime_error when
  // somebody spins or a body throws what is no Failure.
  void run();

  // The scheduler's own: for the test's choices, so that a seed repeats them.
  Random& random();
  MemoryCluster& servers();
  const VirtualTime& time() const;
  // Faultless and instantaneous, for looking at the result after run().
  Context& observer();
  const FaultCounts& happened() const;
  // Lets true time pass after run().
  void advance(Duration duration);

 private:
  friend class SimulatedClient;
  friend class SimulatedWire;
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

// The violation found in the run with this seed, if any.
using Schedule = std::function<std::optional<std::string>(std::uint64_t seed)>;

// Runs every seed (a doctest FAIL names the first bad one), or the one of MCDS_TEST_SEED. `share` scales the
// number.
void check_schedules(const Schedule& schedule, double share = 1);
// Whether one of the first `limit` seeds finds a violation: for algorithms broken on purpose.
bool finds_violation(const Schedule& schedule, std::uint64_t limit = 20000);

}  // namespace mcds

//   std::optional<std::string> schedule(std::uint64_t seed) {
//     Simulation simulation(seed, {.servers = 2});
//     int acknowledged = 0;
//     for (int i = 0; i < 4; ++i) {
//       simulation.client([&](Context& context, SimulatedClient&) { …one structure's calls… ++acknowledged;
//       });
//     }
//     simulation.run();
//     if (value(simulation.observer()) < acknowledged) return "an acknowledged increment is missing";
//     return std::nullopt;
//   }
//   TEST_CASE("counter: …") { check_schedules(schedule); }
//   TEST_CASE("counter: the simulation catches …") { CHECK(finds_violation(broken_schedule)); }
//
// MCDS_TEST_SCHEDULES sets how many seeds a test tries (10 000), MCDS_TEST_SEED repeats one. Failure that
// leaves a client's body ends that client as a crash of its program would; any other exception is a
// violation. A client is killed by unwinding its stack: destructors that talk to servers must be
// noexcept(false); they reach none.
