// Simulates many clients of one structure against in-memory servers, deterministically. A seeded scheduler
// interleaves them at every request, and loses, delays and repeats only what a real network and real servers
// would. The same seed gives the same run on any machine. The contract is at the end of this file.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/trial.hpp"

namespace mcds {

class Simulation;

// The faults that may occur. Each schedule uses a random part of the allowed ones, so that some schedules
// have few faults and some have many.
struct Faults {
  bool unreachable = true;    // a connection is refused; nothing is sent
  bool lost_requests = true;  // sent, but never arrives; the client sees `unknown`
  bool lost_replies = true;   // applied; the client sees `unknown`
  bool ghosts = true;         // applied seconds after the client gave up
  bool kills = true;          // a client dies between two trips; no later request of it reaches a server
  bool pauses = true;         // a client pauses for seconds
  bool late_ticks = true;     // a server's clock is up to a second late, then jumps
  bool server_stalls = true;  // a server pauses; waiting requests are applied when it continues
  bool client_skew = true;    // clients' wall clocks differ by up to `max_skew`
  bool evictions = false;     // items disappear
  bool restarts = false;      // a server is empty, and its cas tokens start at 1
  bool flushes = false;

  static Faults none() { return {false, false, false, false, false, false, false, false, false}; }
  // Returns all faults, including the loss of data.
  static Faults all() { return {true, true, true, true, true, true, true, true, true, true, true, true}; }
};

enum class CompositeStyle {
  native,   // incr_or_create is one request, as with meta
  classic,  // both composites are sequences of requests
  either,   // each schedule chooses
};

struct SimulationOptions {
  std::size_t servers = 1;
  Faults faults = {};
  CompositeStyle composites = CompositeStyle::either;
  std::chrono::milliseconds max_skew{3000};
  Duration timeout = std::chrono::seconds(1);  // of the clients
  std::size_t largest_step_count = 20000;      // more is a violation: a client loops
  MemoryServerOptions server = {};             // tick phases and server skews are drawn per schedule
};

struct FaultCounts {
  std::size_t messages = 0;  // requests whose outcome the client does not know
  std::size_t kills = 0;
  std::size_t losses = 0;  // evictions, restarts and flushes that removed something
};

class SimulatedClient final : public Clock {
 public:
  ~SimulatedClient() override;
  Simulation& simulation() { return simulation_; }
  std::size_t index() const { return index_; }
  // Marks a point between two trips, where other clients may run and this one may die. Structures need not
  // call it; bodies may, to interleave their own steps.
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

  // Adds a client, possibly while running. It starts somewhere in the first milliseconds.
  void client(std::function<void(Context&, SimulatedClient&)> body);
  // Runs until every client has returned or died and every delayed request was applied. Throws
  // std::runtime_error if a client loops, or if a body throws anything but a Failure.
  void run();

  // Returns the scheduler's random numbers. A test that draws its choices from them is repeated by the seed.
  Random& random();
  MemoryCluster& servers();
  VirtualTime& time();
  // Returns a context without faults or delays, for reading the result after run().
  Context& observer();
  const FaultCounts& happened() const;

 private:
  friend class SimulatedClient;
  friend class SimulatedWire;
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

// Runs one seed. Returns the violation, if any.
using Schedule = std::function<std::optional<std::string>(std::uint64_t seed)>;

// Runs a model's scenario with one seed. Between operations a client pauses for up to `pause`, or not at all.
std::optional<std::string> simulate(std::uint64_t seed, const SimulationOptions& options,
                                    const Scenario& scenario, Duration pause = {});
// Draws the operations of each client by the seed: `count` letters of its own alphabet.
std::vector<std::string> random_letters(std::uint64_t seed, const std::vector<std::string>& alphabets,
                                        std::size_t count);

// Runs every seed and FAILs with the first bad one, or runs MCDS_TEST_SEED. `share` scales the number.
void check_schedules(const Schedule& schedule, double share = 1);
// Returns true if one of the first `limit` seeds finds a violation, for algorithms broken on purpose.
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
// MCDS_TEST_SCHEDULES sets how many seeds a test tries (10 000), MCDS_TEST_SEED repeats one. A Failure that
// leaves a client's body ends that client, like a crash of its program; any other exception is a violation. A
// client is killed by unwinding its stack: destructors that contact servers must be noexcept(false), and
// their requests reach no server.
