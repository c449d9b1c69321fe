// The parts of the simulation, shared only by its two sources.
#pragma once

#include "common/base/fiber.hpp"
#include "tests/support/memory_client.hpp"
#include "tests/support/simulation.hpp"

namespace mcds {

// Unwinds a dead client's stack. Not a std::exception: only `catch (...)` sees it, and must rethrow it.
struct ClientKilled {};

// A request that reaches its server after its client has stopped waiting for it.
struct Ghost {
  Duration due;
  std::uint64_t incarnation;  // server start it was sent to: a restarted server never sees it
  Request request;
};

struct Simulation::Inside {
  Inside(std::uint64_t seed, const SimulationOptions& options);

  Duration now() const { return time.elapsed(); }
  bool chance(double probability) { return random.unit() < probability; }
  Duration between(Duration low, Duration high) {
    return low + Duration(random.below(static_cast<std::uint64_t>((high - low).count()) + 1));
  }
  // Returns how long a message takes. The times are similar, so that every order occurs.
  Duration delay() { return between(std::chrono::microseconds(20), std::chrono::microseconds(300)); }
  void leave_ghost(const Request& request, std::size_t server, std::uint64_t incarnation, Duration due);

  void draw_faults();
  void disturb();
  SimulatedClient* next_client();
  std::size_t next_ghost() const;
  void apply_ghost(std::size_t index);
  void resume(SimulatedClient& client);
  void unwind_all();

  SimulationOptions options;
  SeededRandom random;
  VirtualTime time;
  MemoryCluster cluster;
  bool native = true;
  double message_faults = 0;  // probability per server and trip
  double client_faults = 0;   // per step
  double server_faults = 0;   // per step
  std::vector<void (Inside::*)(MemoryServer&)> disturbances;
  std::vector<Duration> stalled_until;
  std::vector<std::unique_ptr<SimulatedClient>> clients;
  std::vector<Ghost> ghosts;
  FaultCounts counts;
  std::size_t steps = 0;
  std::string error;
  std::unique_ptr<Observer> observer;

  void evict_one(MemoryServer& server);
  void restart(MemoryServer& server);
  void flush(MemoryServer& server);
  void delay_tick(MemoryServer& server);
  void stall(MemoryServer& server);
};

struct SimulatedClient::Inside {
  Inside(std::uint64_t seed, std::function<void()> run) : random(seed), fiber(std::move(run)) {}

  SeededRandom random;
  Fiber fiber;
  std::unique_ptr<Cluster> wire;
  std::unique_ptr<Cluster> cluster;
  std::unique_ptr<Context> context;
  Duration wake{0};
  std::chrono::microseconds skew{0};
  Duration steady_offset{0};
  bool dying = false;
};

// A client's connections to all servers. Requests and replies travel separately, and either may be lost.
class SimulatedWire final : public Cluster {
 public:
  explicit SimulatedWire(SimulatedClient& client);
  std::vector<Reply> execute(std::span<const Request> batch) override;
  using Cluster::execute;
  const Placement& placement() const override;

  // Lets other clients run until `due`. Throws ClientKilled if this client dies meanwhile.
  static void wait_until(SimulatedClient& client, Duration due);

 private:
  // The requests to one server in one trip, in order.
  struct Lane {
    std::size_t server = 0;
    std::vector<std::size_t> requests;  // indices into the batch
    std::size_t position = 0;
    std::size_t answered_to = 0;  // replies from here on are lost
    std::size_t applied_to = 0;   // requests from here on are lost
    bool late = false;            // requests without a reply are applied after the client has given up
    bool open = true;
    Duration due{0};
  };
  struct Trip {
    std::span<const Request> batch;
    std::vector<Reply> replies;
    std::vector<Lane> lanes;
    Duration deadline{0};
    bool silent = false;  // some reply never arrives: the client waits for its timeout
  };

  void plan(Trip& trip, Lane& lane);
  void advance(Trip& trip, Lane& lane);
  void close(Trip& trip, Lane& lane, ReplyFailure::Kind kind, const char* message);
  void haunt(Trip& trip, Lane& lane, Duration due);
  static Lane* next(Trip& trip);

  SimulatedClient& client_;
  Simulation::Inside& simulation_;
  std::vector<MemoryConnection> connections_;  // to each server
};

}  // namespace mcds
