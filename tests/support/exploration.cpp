// Sets up one run: its clients, its servers, its beginning and end.
#include "tests/support/exploration.hpp"

#include <algorithm>
#include <utility>

#include "common/base/errors.hpp"
#include "common/cluster/decorators.hpp"
#include "tests/support/exploration_inside.hpp"

namespace mcds {

Exploration::Inside::Inside(const Bounds& given)
    : bounds(given),
      cluster(time, given.servers, given.server),
      faults_left(given.faults),
      pauses_left(given.max_pauses),
      observer(cluster, time, 0xb5e) {
  for (std::size_t i = 0; i < cluster.size(); ++i) cluster.server(i).options().reports_cas = given.native;
}

std::string Exploration::Inside::who(const ExploredClient::Inside& client) const {
  std::string text = "client " + std::to_string(client.index + 1);
  return client.operation.empty() ? text : text + " (" + client.operation + ")";
}

void Exploration::Inside::start() {
  for (const auto& client : clients) {
    if (bounds.stalls)
      client->inside_->stands = true;
    else
      client->inside_->fiber.resume();
  }
}

void Exploration::Inside::give_up() {
  for (const auto& client : clients) {
    client->inside_->dying = true;
    while (client->inside_->fiber.started() && !client->inside_->fiber.finished())
      client->inside_->fiber.resume();
  }
}

std::uint64_t Exploration::Inside::digest() {
  std::uint64_t sum = 0;
  for (const std::string& one : reported) sum = digest_of(one + '|', sum);
  for (std::size_t server = 0; server < cluster.size(); ++server) {
    std::vector<std::string> keys;
    for (const auto& [key, item] : cluster.server(server).items()) keys.push_back(key);
    for (const std::string& key : keys) {
      const auto item = cluster.server(server).peek(key);
      if (item) sum = digest_of(key + '=' + item->value + '@' + std::to_string(item->expires) + ';', sum);
    }
  }
  return sum;
}

std::vector<Reply> ExploredWire::execute(std::span<const Request> batch) {
  ExploredClient::Inside& client = *client_.inside_;
  if (batch.empty()) return {};
  client.replies.assign(batch.size(), Reply{});
  if (client.dying) {
    for (Reply& reply : client.replies)
      reply = Reply::failed_with(ReplyFailure::Kind::unreachable, "connection refused", 0);
    return std::move(client.replies);
  }
  client.batch = batch;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const std::size_t server = server_of(batch[i]);
    auto lane = std::find_if(client.lanes.begin(), client.lanes.end(),
                             [&](const Lane& other) { return other.server == server; });
    if (lane == client.lanes.end()) lane = client.lanes.insert(lane, Lane{server, {}, 0, true});
    lane->requests.push_back(i);
  }
  ++client.trip;
  client.held = std::exchange(client.backs_off, false) && client_.run_.inside_->bounds.hasty_attempts;
  client.fiber.pause();
  if (client.dying) throw ExplorationOver{};
  return std::move(client.replies);
}

ExploredClient::ExploredClient(Exploration& run, std::size_t index,
                               std::function<void(Context&, Actor&)> body)
    : run_(run) {
  inside_ = std::make_unique<Inside>(index, [this, body = std::move(body)] {
    try {
      body(*inside_->context, *this);
    } catch (const ExplorationOver&) {
    } catch (const std::exception& error) {
      run_.violated(std::string("a client threw: ") + error.what());
    }
    inside_->operation.clear();
  });
  Exploration::Inside& all = *run.inside_;
  if (index < all.bounds.skews.size()) inside_->skew = all.bounds.skews[index];
  inside_->connections.resize(all.cluster.size());
  inside_->wire = std::make_unique<ExploredWire>(*this);
  inside_->cluster = std::make_unique<Composites>(
      *inside_->wire, all.bounds.native ? Composites::Expand::append_only : Composites::Expand::both);
  inside_->context = std::make_unique<Context>(Context{*inside_->cluster, *this, inside_->random, {}});
}

ExploredClient::~ExploredClient() = default;

bool ExploredClient::operation(const std::string& name, const std::function<std::string()>& act) {
  Exploration::Inside& all = *run_.inside_;
  inside_->operation = name;
  inside_->in_operation = true;
  inside_->has_begun = false;
  inside_->backs_off = false;
  inside_->back_offs = 0;
  inside_->slept = Duration(0);
  std::string result;
  bool failed = false;
  try {
    result = act();
  } catch (const Failure& failure) {
    result = failure.what();
    failed = true;
  }
  if (!inside_->has_begun) inside_->begun = all.steps;
  inside_->ended = all.steps;
  inside_->in_operation = false;
  inside_->ended_now = inside_->has_begun;
  all.report([&] { return all.who(*inside_) + " answers: " + shortened(result); });
  all.reported[inside_->index] += result + ';';
  return !failed;
}

std::size_t ExploredClient::begun() const {
  return inside_->begun;
}
std::size_t ExploredClient::ended() const {
  return inside_->ended;
}
std::size_t ExploredClient::index() const {
  return inside_->index;
}
Trial& ExploredClient::run() {
  return run_;
}

WallTime ExploredClient::wall() const {
  return run_.inside_->time.wall() + inside_->skew;
}

SteadyTime ExploredClient::steady() const {
  return run_.inside_->time.steady();
}

void ExploredClient::sleep_for(Duration duration) {
  if (inside_->dying) return;
  inside_->slept += duration;
  if (inside_->slept < min_sleep) {
    inside_->backs_off = true;
    ++inside_->back_offs;
    return;
  }
  inside_->wakes = run_.inside_->time.elapsed() + std::exchange(inside_->slept, Duration(0));
  inside_->fiber.pause();
  if (inside_->dying) throw ExplorationOver{};
}

Exploration::Exploration(const Bounds& bounds) : inside_(std::make_unique<Inside>(bounds)) {}

Exploration::~Exploration() {
  inside_->give_up();
}

void Exploration::client(std::function<void(Context&, Actor&)> body) {
  auto& clients = inside_->clients;
  clients.push_back(
      std::unique_ptr<ExploredClient>(new ExploredClient(*this, clients.size(), std::move(body))));
  inside_->reported.resize(clients.size());
}

void Exploration::check(std::function<std::optional<std::string>(Context&)> check) {
  inside_->check = std::move(check);
}

void Exploration::violated(const std::string& what) {
  if (!inside_->violation) inside_->violation = what;
}

MemoryCluster& Exploration::servers() {
  return inside_->cluster;
}
VirtualTime& Exploration::time() {
  return inside_->time;
}
std::size_t Exploration::steps() const {
  return inside_->steps;
}
bool Exploration::lost_data() const {
  return inside_->lost_data;
}
Context& Exploration::observer() {
  return inside_->observer.context();
}

}  // namespace mcds
