// The parts of the exploration, shared only by its sources.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "common/base/fiber.hpp"
#include "tests/support/exploration.hpp"
#include "tests/support/memory_client.hpp"

namespace mcds {

// Unwinds the stack of a client that died, or whose run is abandoned. Only `catch (...)` catches it.
struct ExplorationOver {};

enum class Variant : std::uint8_t {
  none,  // no fault
  lost,
  reply_lost,
  reply_lost_rest_delayed,
  delayed,
  unreachable,
  refused,
  death,
};

// The data that a step touches; the rule of exchange is in exploration.hpp.
struct Footprint {
  enum class Scope : std::uint8_t { nothing, clock, item, server, everything } scope = Scope::nothing;
  bool writes = false;
  bool begins = false;  // the first request of an operation
  bool ends = false;    // the last request of an operation
  bool kills = false;
  int client = -1;
  int server = -1;
  std::uint64_t item = 0;  // digest of server and key
};
bool dependent(const Footprint& a, const Footprint& b);
bool asks_server(const Request& request);
bool reads(const Request& request);
std::uint64_t digest_of(std::string_view text, std::uint64_t seed = 14695981039346656037U);
inline std::uint64_t item_at(std::string_view key, std::size_t server) {
  return digest_of(key, server + 1);
}

// Text for the story.
std::string shortened(std::string_view text);
std::string reported_request(const Request& request);
std::string told_reply(const Reply& reply);

// Process numbers of a client's lane to each server, of its waking up, of the environment, and of ghosts.
constexpr int connections_per_client = 16;
constexpr int first_environment = 1000;
constexpr int last_process = 1999;
constexpr int first_ghost = 2000;
constexpr int trips_per_client = 1000;

// A possible next step. Each process has at most one next step, in some variants.
struct Transition {
  enum class Kind : std::uint8_t {
    request,
    ghost,
    wake,
    resume,
    end,
    pause,
    evict,
    restart
  } kind = Kind::request;
  int process = 0;
  int variant = 0;  // a Variant, or the index of the pause, item or server
  int client = -1;
  std::size_t index = 0;  // index of the lane or the ghost
  std::string key = {};
  bool is_environment() const { return kind >= Kind::pause; }
  bool is_fault() const {
    return kind == Kind::evict || kind == Kind::restart || (kind == Kind::request && variant != 0);
  }
};

// An executed step.
struct Executed {
  Footprint footprint;
  int client = -1;
  int process = 0;
  std::size_t trip = 0;
  int born = -1;  // for a ghost: the step that left it
};

struct Lane {
  std::size_t server = 0;
  std::vector<std::size_t> requests;  // indices into the batch
  std::size_t position = 0;
  bool open = true;
};

struct GhostConnection {
  int client;
  int process;
  int born;
  std::size_t server;
  std::uint64_t incarnation;
  std::vector<Request> requests;
  std::size_t position = 0;
};

struct ExploredClient::Inside {
  Inside(std::size_t number, std::function<void()> body)
      : index(number), random(0x5eed + 977 * number), fiber(std::move(body)) {}
  std::size_t index;
  SeededRandom random;
  Fiber fiber;
  std::unique_ptr<Cluster> wire;
  std::unique_ptr<Cluster> cluster;
  std::unique_ptr<Context> context;
  std::chrono::microseconds skew{0};
  bool dying = false;
  // The client waits for replies, or for a time.
  std::span<const Request> batch;
  std::vector<Reply> replies;
  std::vector<Lane> lanes;
  std::optional<Duration> wakes;
  bool stands = false;  // has its replies but has not continued yet
  std::size_t trip = 0;
  std::vector<MemoryConnection> connections;
  // The state of a back-off.
  Duration slept{0};       // since the last sleep that advanced time
  int back_offs = 0;       // in the current operation
  bool backs_off = false;  // slept since its last request
  bool held = false;       // its next request waits
  bool changed = false;    // an item that it read has changed since
  std::set<std::uint64_t> looked_at = {};
  // The current operation.
  std::string operation;
  bool in_operation = false;
  bool has_begun = false;
  bool ended_now = false;
  std::size_t begun = 0;
  std::size_t ended = 0;
};

struct Exploration::Inside {
  explicit Inside(const Bounds& bounds);
  std::vector<Transition> enabled() const;
  Executed execute(const Transition& transition, bool representative_reply);
  void start();
  void give_up();
  std::uint64_t digest();

  Bounds bounds;
  VirtualTime time;
  MemoryCluster cluster;
  std::vector<std::unique_ptr<ExploredClient>> clients;
  std::vector<GhostConnection> ghosts;
  std::function<std::optional<std::string>(Context&)> check;
  std::optional<std::string> violation;
  std::size_t steps = 0;
  int faults_left = 0;
  int pauses_left = 0;
  bool lost_data = false;
  bool ended = false;
  std::vector<std::string> reported;  // results of the clients' operations
  std::vector<std::string> story;     // filled if `representative_reply` is true
  bool representative_reply = false;
  Observer observer;

  // Adds a line to the story. `line` is called only if the story is recorded.
  template <typename Line>
  void report(const Line& line) {
    if (representative_reply) story.push_back(line());
  }
  std::string who(const ExploredClient::Inside& client) const;

 private:
  bool may_go_on(const ExploredClient::Inside& client) const;
  bool may_wake(const ExploredClient::Inside& client) const;
  void note_change(const Executed& done);
  void offer(std::vector<Transition>& all, const ExploredClient::Inside& client, std::size_t lane) const;
  void offer_environment(std::vector<Transition>& all) const;
  void execute_request(const Transition& transition, Executed& done);
  void touch(Footprint& touched, const Request& request, std::size_t server, const Reply& reply);
  void execute_ghost(const Transition& transition, Executed& done);
  void leave_ghost(const ExploredClient::Inside& client, const Lane& lane, std::size_t from, int born);
  void fail_rest(ExploredClient::Inside& client, Lane& lane, ReplyFailure::Kind kind, const char* message);
  void go_on(ExploredClient& client, Executed& done);
  void die(ExploredClient& client, Executed& done);
};

class ExploredWire final : public Cluster {
 public:
  explicit ExploredWire(ExploredClient& client) : client_(client) {}
  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override;
  const Placement& placement() const override { return client_.run().servers().placement(); }

 private:
  ExploredClient& client_;
};

}  // namespace mcds
