// Lists the possible next steps of a run.
#include <algorithm>

#include "tests/support/exploration_inside.hpp"

namespace mcds {

std::vector<Transition> Exploration::Inside::enabled() const {
  std::vector<Transition> all;
  for (const auto& client : clients) {
    const auto& one = *client->inside_;
    if (one.fiber.finished() || !may_go_on(one)) continue;
    for (std::size_t lane = 0; lane < one.lanes.size(); ++lane) {
      if (!one.lanes[lane].open) continue;
      offer(all, one, lane);
      if (bounds.servers_in_order) break;
    }
    if ((one.wakes && may_wake(one)) || one.stands) {
      Transition wake;
      wake.kind = one.stands ? Transition::Kind::resume : Transition::Kind::wake;
      wake.client = static_cast<int>(one.index);
      wake.process = wake.client * connections_per_client + connections_per_client - 1;
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
  // Losses are also offered after the clients' last step. A run with such a loss before a last step that it
  // does not affect is equal to this one.
  if (all.empty() && !ended && faults_left > 0 && (bounds.kinds.evictions || bounds.kinds.restarts)) {
    Transition end;
    end.kind = Transition::Kind::end;
    end.process = last_process;
    all.push_back(end);
  }
  if (!all.empty()) offer_environment(all);
  return all;
}

// Returns true if a client that backed off may continue; see Bounds::hasty_attempts.
bool Exploration::Inside::may_go_on(const ExploredClient::Inside& client) const {
  const auto hasty = [&](const ExploredClient::Inside& one) {
    return !one.held || (one.changed && one.back_offs <= *bounds.hasty_attempts);
  };
  if (hasty(client)) return true;
  return std::none_of(clients.begin(), clients.end(), [&](const auto& other) {
    const auto& one = *other->inside_;
    return !one.fiber.finished() && (!one.lanes.empty() || one.wakes || one.stands) && hasty(one);
  });
}

// Returns true if a client that sleeps may wake; see Bounds::prompt.
bool Exploration::Inside::may_wake(const ExploredClient::Inside& client) const {
  return !bounds.prompt || std::none_of(clients.begin(), clients.end(), [&](const auto& other) {
    const auto& one = *other->inside_;
    return &one != &client && one.has_begun && one.in_operation && !one.fiber.finished() &&
           !one.lanes.empty() && may_go_on(one);
  });
}

void Exploration::Inside::offer(std::vector<Transition>& all, const ExploredClient::Inside& client,
                                std::size_t index) const {
  const Lane& lane = client.lanes[index];
  const Request& request = client.batch[lane.requests[lane.position]];
  Transition one;
  one.client = static_cast<int>(client.index);
  one.process = one.client * connections_per_client + static_cast<int>(lane.server);
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
  // A request that is applied late, but before any other step, has the same effect.
  const bool covered = bounds.kinds.delayed && bounds.reduced;
  add(bounds.kinds.reply_lost && writes && (more || !covered), Variant::reply_lost);
  add(bounds.kinds.reply_lost && more && !covered, Variant::reply_lost_rest_delayed);
  add(bounds.kinds.delayed && (writes || more), Variant::delayed);
  add(bounds.kinds.unreachable && lane.position == 0, Variant::unreachable);
  add(bounds.kinds.refused && writes, Variant::refused);
  add(bounds.kinds.deaths && bounds.mortal.value_or(client.index) == client.index, Variant::death);
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
      one.variant = static_cast<int>(item_at(key, server) & 0x3fffffff);
      all.push_back(one);
    }
    one.key.clear();
  }
}

}  // namespace mcds
