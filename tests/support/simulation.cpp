#include "tests/support/simulation.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/cluster/decorators.hpp"
#include "tests/support/simulation_inside.hpp"

namespace mcds {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t nobody = std::numeric_limits<std::size_t>::max();

std::uint64_t environment_number(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : parse_u64(text).value_or(fallback);
}

}  // namespace

Simulation::Inside::Inside(std::uint64_t seed, const SimulationOptions& given)
    : options(given), random(seed), cluster(time, given.servers, given.server) {
  // The first number after splitmix64 of neighbouring seeds is related, so it is dropped.
  random.bits();
  time.advance(between(0s, 3600s));
  draw_faults();
  native = options.composites == CompositeStyle::either ? chance(0.5)
                                                        : options.composites == CompositeStyle::native;
  stalled_until.assign(cluster.size(), Duration(0));
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    MemoryServerOptions& server = cluster.server(i).options();
    server.tick_phase = between(0ns, 999'999'999ns);
    server.reports_cas = native;
    if (options.faults.client_skew)
      server.clock_skew = std::chrono::microseconds(between(0s, 4s).count() / 1000) - 2s;
    cluster.restart(i);
  }
  observer = std::make_unique<Observer>(cluster, time, random.bits());
}

void Simulation::Inside::draw_faults() {
  constexpr std::array<double, 4> rates{0, 0.02, 0.1, 0.3};
  Faults& faults = options.faults;
  message_faults = rates[random.below(rates.size())];
  client_faults = rates[random.below(3)] / 2;
  server_faults = rates[random.below(3)] / 2;
  for (bool* fault : {&faults.kills, &faults.pauses, &faults.client_skew}) *fault = *fault && chance(0.6);
  const auto allow = [&](bool fault, void (Inside::*disturbance)(MemoryServer&)) {
    if (fault && chance(0.6)) disturbances.push_back(disturbance);
  };
  allow(faults.late_ticks, &Inside::delay_tick);
  allow(faults.server_stalls, &Inside::stall);
  allow(faults.evictions, &Inside::evict_one);
  allow(faults.restarts, &Inside::restart);
  allow(faults.flushes, &Inside::flush);
}

void Simulation::Inside::disturb() {
  if (disturbances.empty() || !chance(server_faults)) return;
  MemoryServer& server = cluster.server(random.below(cluster.size()));
  (this->*disturbances[random.below(disturbances.size())])(server);
}

void Simulation::Inside::evict_one(MemoryServer& server) {
  if (server.items().empty()) return;
  const auto victim =
      std::next(server.items().begin(), static_cast<std::ptrdiff_t>(random.below(server.items().size())));
  server.evict(std::string(victim->first));
  ++counts.losses;
}

void Simulation::Inside::restart(MemoryServer& server) {
  server.restart();
  ++counts.losses;
}

void Simulation::Inside::flush(MemoryServer& server) {
  server.flush();
  ++counts.losses;
}

void Simulation::Inside::delay_tick(MemoryServer& server) {
  server.set_tick_lag(chance(0.5) ? Duration(0) : between(0ms, 999ms));
}

void Simulation::Inside::stall(MemoryServer& server) {
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    if (&cluster.server(i) != &server) continue;
    // A stall is never shortened: waiting requests would be executed after later ones, like ghosts.
    const Duration end = now() + (chance(0.5) ? between(0ms, 5ms) : between(0s, 6s));
    stalled_until[i] = std::max(stalled_until[i], end);
  }
}

void Simulation::Inside::leave_ghost(const Request& request, std::size_t server, std::uint64_t incarnation,
                                     Duration due) {
  ghosts.push_back({due, incarnation, request});
  ghosts.back().request.server = server;
}

std::size_t Simulation::Inside::next_ghost() const {
  std::size_t first = nobody;
  for (std::size_t i = 0; i < ghosts.size(); ++i) {
    if (first == nobody || ghosts[i].due < ghosts[first].due) first = i;
  }
  return first;
}

void Simulation::Inside::apply_ghost(std::size_t index) {
  const Ghost ghost = std::move(ghosts[index]);
  ghosts.erase(ghosts.begin() + static_cast<std::ptrdiff_t>(index));
  time.advance_to(ghost.due);
  MemoryServer& server = cluster.server(*ghost.request.server);
  if (server.incarnation() == ghost.incarnation) server.execute(ghost.request);
}

SimulatedClient* Simulation::Inside::next_client() {
  SimulatedClient* first = nullptr;
  for (const auto& client : clients) {
    if (client->inside_->fiber.finished()) continue;
    if (first == nullptr || client->inside_->wake < first->inside_->wake) first = client.get();
  }
  return first;
}

void Simulation::Inside::resume(SimulatedClient& client) {
  time.advance_to(client.inside_->wake);
  disturb();
  if (chance(client_faults)) {
    if (options.faults.pauses && chance(0.5)) {
      client.inside_->wake = now() + (chance(0.5) ? between(0ms, 5ms) : between(0s, 6s));
      return;
    }
    if (options.faults.kills && chance(0.3) && client.inside_->fiber.started()) {
      client.inside_->dying = true;
      ++counts.kills;
    }
  }
  client.inside_->fiber.resume();
}

void Simulation::Inside::unwind_all() {
  for (std::size_t i = 0; i < clients.size(); ++i) {
    SimulatedClient& client = *clients[i];
    client.inside_->dying = true;
    while (client.inside_->fiber.started() && !client.inside_->fiber.finished())
      client.inside_->fiber.resume();
  }
}

SimulatedClient::SimulatedClient(Simulation& simulation, std::size_t index,
                                 std::function<void(Context&, SimulatedClient&)> body)
    : simulation_(simulation), index_(index) {
  Simulation::Inside& all = *simulation_.inside_;
  inside_ = std::make_unique<Inside>(all.random.bits(), [this, body = std::move(body), &all] {
    try {
      body(*inside_->context, *this);
    } catch (const ClientKilled&) {
    } catch (const Failure&) {
    } catch (const std::exception& error) {
      all.error = std::string("a client threw: ") + error.what();
    }
  });
  inside_->wake = all.now() + all.between(0ms, 2ms);
  if (all.options.faults.client_skew) {
    const auto widest = std::chrono::microseconds(all.options.max_skew);
    inside_->skew = std::chrono::microseconds(all.between(Duration(0), 2 * widest).count() / 1000) - widest;
  }
  inside_->steady_offset = all.between(0s, 1000s);
  inside_->wire = std::make_unique<SimulatedWire>(*this);
  inside_->cluster = std::make_unique<Composites>(
      *inside_->wire, all.native ? Composites::Expand::append_only : Composites::Expand::both);
  inside_->context = std::make_unique<Context>(Context{*inside_->cluster, *this, inside_->random, {}});
}

SimulatedClient::~SimulatedClient() = default;

void SimulatedClient::step() {
  Simulation::Inside& all = *simulation_.inside_;
  SimulatedWire::wait_until(*this, all.now() + all.delay());
}

WallTime SimulatedClient::wall() const {
  return simulation_.time().wall() + inside_->skew;
}

SteadyTime SimulatedClient::steady() const {
  return simulation_.time().steady() + inside_->steady_offset;
}

void SimulatedClient::sleep_for(Duration duration) {
  Simulation::Inside& all = *simulation_.inside_;
  SimulatedWire::wait_until(*this, all.now() + std::max(duration, Duration(0)) + all.between(0us, 100us));
}

Simulation::Simulation(std::uint64_t seed, SimulationOptions options)
    : inside_(std::make_unique<Inside>(seed, options)) {}

Simulation::~Simulation() {
  inside_->unwind_all();
}

void Simulation::client(std::function<void(Context&, SimulatedClient&)> body) {
  auto& clients = inside_->clients;
  clients.push_back(
      std::unique_ptr<SimulatedClient>(new SimulatedClient(*this, clients.size(), std::move(body))));
}

void Simulation::run() {
  while (true) {
    SimulatedClient* client = inside_->next_client();
    const std::size_t ghost = inside_->next_ghost();
    if (client == nullptr && ghost == nobody) break;
    if (++inside_->steps > inside_->options.largest_step_count) throw std::runtime_error("somebody spins");
    if (client == nullptr || (ghost != nobody && inside_->ghosts[ghost].due <= client->inside_->wake)) {
      inside_->apply_ghost(ghost);
    } else {
      inside_->resume(*client);
    }
    if (!inside_->error.empty()) throw std::runtime_error(inside_->error);
  }
}

Random& Simulation::random() {
  return inside_->random;
}
MemoryCluster& Simulation::servers() {
  return inside_->cluster;
}
VirtualTime& Simulation::time() {
  return inside_->time;
}
Context& Simulation::observer() {
  return inside_->observer->context();
}
const FaultCounts& Simulation::happened() const {
  return inside_->counts;
}

namespace {

// Runs a model. A step is the beginning or the end of an operation.
class SimulatedTrial final : public Trial {
 public:
  SimulatedTrial(std::uint64_t seed, const SimulationOptions& options, Duration pause)
      : pause_(pause), simulation_(seed, options) {}

  std::optional<std::string> verdict(const Scenario& scenario) {
    scenario(*this);
    simulation_.run();
    if (!violation_) violation_ = check_(observer());
    return violation_ ? std::optional(*violation_ + story_) : std::nullopt;
  }

  void client(std::function<void(Context&, Actor&)> body) override {
    simulation_.client([this, body = std::move(body)](Context& context, SimulatedClient& client) {
      One one(*this, client);
      body(context, one);
    });
  }
  void check(std::function<std::optional<std::string>(Context&)> check) override {
    check_ = std::move(check);
  }
  void violated(const std::string& what) override {
    if (!violation_) violation_ = what;
  }
  MemoryCluster& servers() override { return simulation_.servers(); }
  VirtualTime& time() override { return simulation_.time(); }
  std::size_t steps() const override { return steps_; }
  bool lost_data() const override { return simulation_.happened().losses != 0; }
  Context& observer() override { return simulation_.observer(); }

 private:
  class One final : public Actor {
   public:
    One(SimulatedTrial& all, SimulatedClient& client) : all_(all), client_(client) {}
    bool operation(const std::string& name, const std::function<std::string()>& act) override {
      Random& random = all_.simulation_.random();
      begun_ = all_.steps_;  // if it dies during the pause
      const auto longest = static_cast<std::uint64_t>(all_.pause_.count());
      if (longest == 0)
        client_.step();
      else
        client_.sleep_for(Duration(random.below(2) * random.below(longest)));
      begun_ = ++all_.steps_;
      const auto done = attempt(act);
      ended_ = ++all_.steps_;
      all_.story_ += "\n" + std::to_string(begun_) + "-" + std::to_string(ended_) + ": client " +
                     std::to_string(index() + 1) + ", " + name + ": " +
                     (done.failure() ? done.failure()->what() : done.value());
      return !done.failure();
    }
    std::size_t begun() const override { return begun_; }
    std::size_t ended() const override { return ended_; }
    std::size_t index() const override { return client_.index(); }
    Trial& run() override { return all_; }
    WallTime wall() const override { return client_.wall(); }
    SteadyTime steady() const override { return client_.steady(); }
    void sleep_for(Duration duration) override { client_.sleep_for(duration); }

   private:
    SimulatedTrial& all_;
    SimulatedClient& client_;
    std::size_t begun_ = 0, ended_ = 0;
  };

  Duration pause_;
  std::function<std::optional<std::string>(Context&)> check_;
  std::optional<std::string> violation_;
  std::string story_;
  std::size_t steps_ = 0;
  Simulation simulation_;  // unwinds what uses the rest
};

std::optional<std::string> violation(const Schedule& schedule, std::uint64_t seed) {
  try {
    return schedule(seed);
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

std::optional<std::string> simulate(std::uint64_t seed, const SimulationOptions& options,
                                    const Scenario& scenario, Duration pause) {
  return SimulatedTrial(seed, options, pause).verdict(scenario);
}

std::vector<std::string> random_letters(std::uint64_t seed, const std::vector<std::string>& alphabets,
                                        std::size_t count) {
  SeededRandom random(~seed);
  random.bits();
  std::vector<std::string> letters;
  for (const std::string& alphabet : alphabets) {
    std::string& mine = letters.emplace_back();
    for (std::size_t i = 0; i < count; ++i) mine += alphabet[random.below(alphabet.size())];
  }
  return letters;
}

void check_schedules(const Schedule& schedule, double share) {
  const std::uint64_t first = environment_number("MCDS_TEST_SEED", 0);
  const auto count = static_cast<std::uint64_t>(
      static_cast<double>(environment_number("MCDS_TEST_SCHEDULES", 10'000)) * share);
  const std::uint64_t end =
      std::getenv("MCDS_TEST_SEED") != nullptr ? first + 1 : std::max<std::uint64_t>(count, 1);
  for (std::uint64_t seed = first; seed < end; ++seed) {
    INFO("seed ", seed, ": repeat it with MCDS_TEST_SEED=", seed);
    if (const auto found = violation(schedule, seed)) FAIL(*found);
  }
}

bool finds_violation(const Schedule& schedule, std::uint64_t limit) {
  for (std::uint64_t seed = 0; seed < limit; ++seed) {
    if (const auto found = violation(schedule, seed)) {
      MESSAGE("found with seed ", seed, ": ", *found);
      return true;
    }
  }
  return false;
}

}  // namespace mcds
