// One run: clients, servers, and what each step does.
#include "tests/support/exploration.hpp"

#include <algorithm>

#include "common/base/errors.hpp"
#include "common/base/units.hpp"
#include "common/cluster/decorators.hpp"
#include "tests/support/exploration_inside.hpp"

namespace mcds {

namespace {

// Process numbers: a client's lane to each server, its waking up, the environment, ghosts.
constexpr int lanes_per_client = 16;
constexpr int first_environment = 1000;
constexpr int last_process = 1999;
constexpr int first_ghost = 2000;
constexpr int trips_per_client = 1000;

class ObserverClock final : public Clock {
 public:
  explicit ObserverClock(VirtualTime& time) : time_(time) {}
  WallTime wall() const override { return time_.wall(); }
  SteadyTime steady() const override { return time_.steady(); }
  void sleep_for(Duration duration) override { time_.advance(std::max(duration, Duration(0))); }

 private:
  VirtualTime& time_;
};

bool compares(const Request& request) {
  return request.op == Op::cas || request.op == Op::remove_if;
}

bool asks_server(const Request& request) {
  return request.op == Op::version || request.op == Op::stats;
}

bool reads(const Request& request) {
  return request.op == Op::get || request.op == Op::gets || request.op == Op::probe || asks_server(request);
}

std::uint64_t digest_of(std::string_view text, std::uint64_t seed = 14695981039346656037U) {
  for (const char c : text) seed = (seed ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return seed;
}

// A request that changed nothing is a look.
Footprint footprint_of(const Request& request, std::size_t server, Outcome outcome) {
  Footprint touched;
  touched.scope = asks_server(request) ? Footprint::Scope::server : Footprint::Scope::item;
  touched.server = static_cast<int>(server);
  touched.item = digest_of(request.key, server + 1);
  touched.writes = outcome == Outcome::stored || outcome == Outcome::deleted;
  return touched;
}

std::string shortened(std::string text) {
  std::replace(text.begin(), text.end(), '\n', '|');
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

std::string told_request(const Request& request) {
  std::string text = std::string(name_of(request.op)) + ' ' + (asks_server(request) ? "" : request.key);
  if (!request.value.empty()) text += " \"" + shortened(request.value) + '"';
  return text;
}

std::string told_reply(const Reply& reply) {
  std::string text = name_of(reply.outcome);
  if (reply.failure) text += ": " + reply.failure->message;
  if (reply.outcome == Outcome::hit && !reply.value.empty()) text += " \"" + shortened(reply.value) + '"';
  if (reply.number != 0) text += ' ' + std::to_string(reply.number);
  return text;
}

}  // namespace

bool dependent(const Footprint& a, const Footprint& b) {
  using Scope = Footprint::Scope;
  if ((a.begins && b.ends) || (a.ends && b.begins)) return true;
  if ((a.kills || b.kills) && a.client == b.client) return true;
  // Time: whoever goes on looks at the clock, even if its request went nowhere.
  if (a.scope == Scope::everything || b.scope == Scope::everything) return true;
  if (a.scope <= Scope::clock || b.scope <= Scope::clock) return false;
  if (a.server != b.server) return false;
  if (a.scope == Scope::item && b.scope == Scope::item) return a.item == b.item && (a.writes || b.writes);
  // A restart, and anything there; what else asks a server asks how long it has been up.
  return (a.scope == Scope::server && a.writes) || (b.scope == Scope::server && b.writes);
}

Exploration::Inside::Inside(const Bounds& given)
    : bounds(given),
      cluster(time, given.servers, given.server),
      faults_left(given.faults),
      pauses_left(given.most_pauses) {
  for (std::size_t i = 0; i < cluster.size(); ++i) cluster.server(i).options().reports_cas = given.native;
  observer_clock = std::make_unique<ObserverClock>(time);
  observer_random = std::make_unique<SeededRandom>(0xb5e);
  observer = std::make_unique<Context>(Context{cluster, *observer_clock, *observer_random, {}});
}

std::string Exploration::Inside::who(const ExploredClient::Inside& client) const {
  std::string text = "client " + std::to_string(client.index + 1);
  return client.operation.empty() ? text : text + " (" + client.operation + ")";
}

void Exploration::Inside::tell(const std::string& line) {
  if (telling) story.push_back(line);
}

std::vector<Transition> Exploration::Inside::enabled() const {
  std::vector<Transition> all;
  for (const auto& client : clients) {
    const auto& one = *client->inside_;
    if (one.fiber.finished()) continue;
    for (std::size_t lane = 0; lane < one.lanes.size(); ++lane) {
      if (one.lanes[lane].open) offer(all, one, lane);
    }
    if (one.wakes || one.stands) {
      Transition wake;
      wake.kind = one.stands ? Transition::Kind::resume : Transition::Kind::wake;
      wake.client = static_cast<int>(one.index);
      wake.process = wake.client * lanes_per_client + lanes_per_client - 1;
      all.push_back(wake);
    }
  }
  for (std::size_t i = 0; i < ghosts.size(); ++i) {
    const bool gone =
        const_cast<MemoryCluster&>(cluster).server(ghosts[i].server).incarnation() != ghosts[i].incarnation;
    if (gone || ghosts[i].position == ghosts[i].requests.size()) continue;
    Transition ghost;
    ghost.kind = Transition::Kind::ghost;
    ghost.process = ghosts[i].process;
    ghost.index = i;
    all.push_back(ghost);
  }
  // What is lost when nobody is left to see it ends the run, as an equal loss before somebody's last step may.
  if (all.empty() && !ended && faults_left > 0 && (bounds.kinds.evictions || bounds.kinds.restarts)) {
    Transition end;
    end.kind = Transition::Kind::end;
    end.process = last_process;
    all.push_back(end);
  }
  if (!all.empty()) offer_environment(all);
  return all;
}

void Exploration::Inside::offer(std::vector<Transition>& all, const ExploredClient::Inside& client,
                                std::size_t index) const {
  const Lane& lane = client.lanes[index];
  const Request& request = client.batch[lane.requests[lane.position]];
  Transition one;
  one.client = static_cast<int>(client.index);
  one.process = one.client * lanes_per_client + static_cast<int>(lane.server);
  one.index = index;
  const auto add = [&](bool allowed, Variant variant) {
    one.variant = static_cast<int>(variant);
    if (allowed) all.push_back(one);
  };
  add(true, Variant::none);
  if (faults_left == 0) return;
  const bool writes = !reads(request);
  const bool more = std::any_of(lane.requests.begin() + static_cast<std::ptrdiff_t>(lane.position) + 1,
                                lane.requests.end(), [&](std::size_t i) { return !reads(client.batch[i]); });
  add(bounds.kinds.lost, Variant::lost);
  add(bounds.kinds.reply_lost && writes, Variant::reply_lost);
  add(bounds.kinds.reply_lost && more, Variant::reply_lost_rest_delayed);
  add(bounds.kinds.delayed && (writes || more), Variant::delayed);
  add(bounds.kinds.unreachable && lane.position == 0, Variant::unreachable);
  add(bounds.kinds.refused && writes, Variant::refused);
  add(bounds.kinds.deaths, Variant::death);
}

void Exploration::Inside::offer_environment(std::vector<Transition>& all) const {
  Transition one;
  const bool alone = all.front().kind == Transition::Kind::end;
  if (pauses_left > 0 && !alone) {
    one.kind = Transition::Kind::pause;
    one.process = first_environment;
    for (std::size_t i = 0; i < bounds.pauses.size(); ++i) {
      one.variant = static_cast<int>(i);
      all.push_back(one);
    }
  }
  if (faults_left == 0) return;
  auto& servers = const_cast<MemoryCluster&>(cluster);
  for (std::size_t server = 0; server < servers.size(); ++server) {
    one.index = server;
    if (bounds.kinds.restarts) {
      one.kind = Transition::Kind::restart;
      one.process = first_environment + 1;
      one.variant = static_cast<int>(server);
      all.push_back(one);
    }
    if (!bounds.kinds.evictions) continue;
    one.kind = Transition::Kind::evict;
    one.process = first_environment + 2;
    for (const auto& [key, item] : servers.server(server).items()) {
      if (bounds.evictable && !bounds.evictable(key)) continue;
      one.key = key;
      one.variant = static_cast<int>(digest_of(key, server + 1) & 0x3fffffff);
      all.push_back(one);
    }
    one.key.clear();
  }
}

Executed Exploration::Inside::execute(const Transition& transition, bool tells) {
  telling = tells;
  Executed done;
  done.client = transition.client;
  done.process = transition.process;
  done.footprint.client = transition.client;
  if (transition.is_fault()) --faults_left;
  ++steps;
  switch (transition.kind) {
    case Transition::Kind::request:
      execute_request(transition, done);
      break;
    case Transition::Kind::ghost:
      execute_ghost(transition, done);
      break;
    case Transition::Kind::wake: {
      ExploredClient& client = *clients[static_cast<std::size_t>(transition.client)];
      time.advance_to(*client.inside_->wakes);
      client.inside_->wakes.reset();
      done.trip = ++client.inside_->trip;
      done.footprint.scope = Footprint::Scope::everything;
      tell(who(*client.inside_) + " goes on after a sleep");
      go_on(client, done);
      break;
    }
    case Transition::Kind::resume: {
      ExploredClient& client = *clients[static_cast<std::size_t>(transition.client)];
      client.inside_->stands = false;
      done.trip = ++client.inside_->trip;
      done.footprint.scope = Footprint::Scope::clock;
      go_on(client, done);
      break;
    }
    case Transition::Kind::end:
      ended = true;
      done.footprint.scope = Footprint::Scope::everything;
      break;
    case Transition::Kind::pause: {
      const Duration length = bounds.pauses[static_cast<std::size_t>(transition.variant)];
      --pauses_left;
      time.advance(length);
      done.footprint.scope = Footprint::Scope::everything;
      tell(format_duration(length) + " pass");
      break;
    }
    case Transition::Kind::evict:
      cluster.server(transition.index).evict(transition.key);
      lost_data = true;
      done.footprint.scope = Footprint::Scope::item;
      done.footprint.server = static_cast<int>(transition.index);
      done.footprint.item = digest_of(transition.key, transition.index + 1);
      done.footprint.writes = true;
      tell("the server evicts " + transition.key);
      break;
    case Transition::Kind::restart:
      cluster.server(transition.index).restart();
      lost_data = true;
      done.footprint.scope = Footprint::Scope::server;
      done.footprint.server = static_cast<int>(transition.index);
      done.footprint.writes = true;
      tell("server " + std::to_string(transition.index + 1) + " restarts, empty");
  }
  return done;
}

void Exploration::Inside::execute_request(const Transition& transition, Executed& done) {
  ExploredClient& client = *clients[static_cast<std::size_t>(transition.client)];
  ExploredClient::Inside& one = *client.inside_;
  Lane& lane = one.lanes[transition.index];
  const auto variant = static_cast<Variant>(transition.variant);
  done.trip = one.trip;
  if (one.in_operation && !one.has_begun) {
    one.has_begun = true;
    one.begun = steps;
    done.footprint.begins = true;
  }
  const std::size_t index = lane.requests[lane.position];
  const Request& request = one.batch[index];
  if (variant == Variant::death) return die(client, done);
  if (variant == Variant::unreachable) {
    tell(who(one) + ": " + told_request(request) + " -> nothing sent, no connection");
    fail_rest(one, lane, ReplyFailure::Kind::unreachable, "connection refused");
  } else if (variant == Variant::lost || variant == Variant::delayed) {
    tell(who(one) + ": " + told_request(request) +
         (variant == Variant::lost ? " -> lost" : " -> delayed; no reply"));
    if (variant == Variant::delayed) leave_ghost(one, lane, lane.position, static_cast<int>(steps) - 1);
    fail_rest(one, lane, ReplyFailure::Kind::unknown, "no reply in time");
  } else if (variant == Variant::refused) {
    tell(who(one) + ": " + told_request(request) + " -> SERVER_ERROR");
    one.replies[index] =
        Reply::failed_with(ReplyFailure::Kind::refused, "SERVER_ERROR out of memory", lane.server);
    ++lane.position;
  } else {
    MemoryServer& server = cluster.server(lane.server);
    ExploredConnection& connection = one.connections[lane.server];
    if (connection.incarnation != server.incarnation()) connection = {server.incarnation(), {}};
    const auto unique = connection.uniques.find(request.key);
    const bool stale =
        compares(request) && (unique == connection.uniques.end() || unique->second != request.cas);
    Reply reply = stale ? Reply::of(Outcome::exists, lane.server) : server.execute(request);
    if (compares(request) && !stale) connection.uniques.erase(request.key);
    if (reply.cas.value != 0) connection.uniques[request.key] = reply.cas;
    const bool begins = done.footprint.begins;
    done.footprint = footprint_of(request, lane.server, reply.outcome);
    done.footprint.begins = begins;
    done.footprint.client = transition.client;
    tell(who(one) + ": " + told_request(request) + " -> " + told_reply(reply) +
         (variant == Variant::none ? "" : "; the reply is lost"));
    if (variant == Variant::none) {
      one.replies[index] = std::move(reply);
      ++lane.position;
    } else {
      if (variant == Variant::reply_lost_rest_delayed)
        leave_ghost(one, lane, lane.position + 1, static_cast<int>(steps) - 1);
      fail_rest(one, lane, ReplyFailure::Kind::unknown, "no reply in time");
    }
  }
  if (lane.position == lane.requests.size()) lane.open = false;
  if (std::none_of(one.lanes.begin(), one.lanes.end(), [](const Lane& other) { return other.open; })) {
    one.lanes.clear();
    if (bounds.stalls)
      one.stands = true;
    else
      go_on(client, done);
  }
}

void Exploration::Inside::fail_rest(ExploredClient::Inside& client, Lane& lane, ReplyFailure::Kind kind,
                                    const char* message) {
  for (; lane.position < lane.requests.size(); ++lane.position)
    client.replies[lane.requests[lane.position]] = Reply::failed_with(kind, message, lane.server);
  client.connections[lane.server] = {};
}

// What is looked at concerns nobody any more.
void Exploration::Inside::leave_ghost(const ExploredClient::Inside& client, const Lane& lane,
                                      std::size_t from, int born) {
  GhostLane ghost{static_cast<int>(client.index),
                  first_ghost +
                      (static_cast<int>(client.index) * trips_per_client + static_cast<int>(client.trip)) *
                          lanes_per_client +
                      static_cast<int>(lane.server),
                  born,
                  lane.server,
                  cluster.server(lane.server).incarnation(),
                  {}};
  const auto& uniques = client.connections[lane.server].uniques;
  for (std::size_t i = from; i < lane.requests.size(); ++i) {
    const Request& request = client.batch[lane.requests[i]];
    const auto unique = uniques.find(request.key);
    const bool stale = compares(request) && (unique == uniques.end() || unique->second != request.cas);
    if (!reads(request) && !stale) ghost.requests.push_back(request);
  }
  ghosts.push_back(std::move(ghost));
}

void Exploration::Inside::execute_ghost(const Transition& transition, Executed& done) {
  GhostLane& ghost = ghosts[transition.index];
  const Request& request = ghost.requests[ghost.position++];
  const Reply reply = cluster.server(ghost.server).execute(request);
  done.footprint = footprint_of(request, ghost.server, reply.outcome);
  done.born = ghost.born;
  tell("client " + std::to_string(ghost.client + 1) + "'s delayed " + told_request(request) + " arrives -> " +
       told_reply(reply));
}

void Exploration::Inside::die(ExploredClient& client, Executed& done) {
  tell(who(*client.inside_) + " dies");
  done.footprint.kills = true;
  client.inside_->lanes.clear();
  client.inside_->dying = true;
  client.inside_->fiber.resume();
}

void Exploration::Inside::go_on(ExploredClient& client, Executed& done) {
  client.inside_->ended_now = false;
  client.inside_->fiber.resume();
  done.footprint.ends = client.inside_->ended_now;
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
  for (const std::string& one : told) sum = digest_of(one + '|', sum);
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
  client.fiber.pause();
  if (client.dying) throw ExplorationOver{};
  return std::move(client.replies);
}

ExploredClient::ExploredClient(Exploration& run, std::size_t index,
                               std::function<void(Context&, ExploredClient&)> body)
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
  all.tell(all.who(*inside_) + " answers: " + shortened(result));
  all.told[inside_->index] += result + ';';
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

WallTime ExploredClient::wall() const {
  return run_.inside_->time.wall() + inside_->skew;
}

SteadyTime ExploredClient::steady() const {
  return run_.inside_->time.steady();
}

void ExploredClient::sleep_for(Duration duration) {
  if (duration < shortest_sleep || inside_->dying) return;
  inside_->wakes = run_.inside_->time.elapsed() + duration;
  inside_->fiber.pause();
  if (inside_->dying) throw ExplorationOver{};
}

Exploration::Exploration(const Bounds& bounds) : inside_(std::make_unique<Inside>(bounds)) {}

Exploration::~Exploration() {
  inside_->give_up();
}

void Exploration::client(std::function<void(Context&, ExploredClient&)> body) {
  auto& clients = inside_->clients;
  clients.push_back(
      std::unique_ptr<ExploredClient>(new ExploredClient(*this, clients.size(), std::move(body))));
  inside_->told.resize(clients.size());
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
  return *inside_->observer;
}

}  // namespace mcds
