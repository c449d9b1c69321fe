// Executes the steps of a run.
#include <algorithm>
#include <utility>

#include "common/base/units.hpp"
#include "tests/support/exploration_inside.hpp"

namespace mcds {

Executed Exploration::Inside::execute(const Transition& transition, bool tells) {
  representative_reply = tells;
  Executed done;
  done.client = transition.client;
  done.process = transition.process;
  done.footprint.client = transition.client;
  if (transition.is_fault()) --faults_left;
  ++steps;
  switch (transition.kind) {
    case Transition::Kind::request: execute_request(transition, done); break;
    case Transition::Kind::ghost: execute_ghost(transition, done); break;
    case Transition::Kind::wake: {
      ExploredClient& client = *clients[static_cast<std::size_t>(transition.client)];
      time.advance_to(*client.inside_->wakes);
      client.inside_->wakes.reset();
      done.trip = ++client.inside_->trip;
      done.footprint.scope = Footprint::Scope::everything;
      report([&] { return who(*client.inside_) + " goes on after a sleep"; });
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
      report([&] { return format_duration(length) + " pass"; });
      break;
    }
    case Transition::Kind::evict:
      cluster.server(transition.index).evict(transition.key);
      lost_data = true;
      done.footprint.scope = Footprint::Scope::item;
      done.footprint.server = static_cast<int>(transition.index);
      done.footprint.item = item_at(transition.key, transition.index);
      done.footprint.writes = true;
      report([&] { return "the server evicts " + transition.key; });
      break;
    case Transition::Kind::restart:
      cluster.server(transition.index).restart();
      lost_data = true;
      done.footprint.scope = Footprint::Scope::server;
      done.footprint.server = static_cast<int>(transition.index);
      done.footprint.writes = true;
      report([&] { return "server " + std::to_string(transition.index + 1) + " restarts, empty"; });
  }
  note_change(done);
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
  if (std::exchange(one.held, false)) {
    one.looked_at.clear();
    one.changed = false;
  }
  one.looked_at.insert(item_at(request.key, lane.server));
  if (variant == Variant::death) return die(client, done);
  if (variant == Variant::unreachable) {
    report([&] { return who(one) + ": " + reported_request(request) + " -> nothing sent, no connection"; });
    fail_rest(one, lane, ReplyFailure::Kind::unreachable, "connection refused");
  } else if (variant == Variant::lost || variant == Variant::delayed) {
    report([&] {
      return who(one) + ": " + reported_request(request) +
             (variant == Variant::lost ? " -> lost" : " -> delayed; no reply");
    });
    if (variant == Variant::delayed) leave_ghost(one, lane, lane.position, static_cast<int>(steps) - 1);
    fail_rest(one, lane, ReplyFailure::Kind::unknown, "no reply in time");
  } else if (variant == Variant::refused) {
    report([&] { return who(one) + ": " + reported_request(request) + " -> SERVER_ERROR"; });
    one.replies[index] =
        Reply::failed_with(ReplyFailure::Kind::refused, "SERVER_ERROR out of memory", lane.server);
    ++lane.position;
  } else {
    MemoryServer& server = cluster.server(lane.server);
    MemoryConnection& connection = one.connections[lane.server];
    if (connection.incarnation != server.incarnation()) connection = {server.incarnation(), {}};
    Reply reply = connection.execute(server, lane.server, request);
    touch(done.footprint, request, lane.server, reply);
    report([&] {
      return who(one) + ": " + reported_request(request) + " -> " + told_reply(reply) +
             (variant == Variant::none ? "" : "; the reply is lost");
    });
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

// Records what a request touched: a read if it changed nothing, nothing if it never can change anything.
void Exploration::Inside::touch(Footprint& touched, const Request& request, std::size_t server,
                                const Reply& reply) {
  if (cluster.server(server).never_fits(request)) return;
  touched.scope = asks_server(request) ? Footprint::Scope::server : Footprint::Scope::item;
  touched.server = static_cast<int>(server);
  touched.item = item_at(request.key, server);
  touched.writes = reply.outcome == Outcome::stored || reply.outcome == Outcome::deleted ||
                   (request.op == Op::set && reply.failed());
}

void Exploration::Inside::fail_rest(ExploredClient::Inside& client, Lane& lane, ReplyFailure::Kind kind,
                                    const char* message) {
  for (; lane.position < lane.requests.size(); ++lane.position)
    client.replies[lane.requests[lane.position]] = Reply::failed_with(kind, message, lane.server);
  client.connections[lane.server] = {};
}

// Keeps the requests that will still be applied. Reads are dropped: no client waits for them any more.
void Exploration::Inside::leave_ghost(const ExploredClient::Inside& client, const Lane& lane,
                                      std::size_t from, int born) {
  GhostConnection ghost{
      static_cast<int>(client.index),
      first_ghost +
          (static_cast<int>(client.index) * trips_per_client + static_cast<int>(client.trip)) *
              connections_per_client +
          static_cast<int>(lane.server),
      born,
      lane.server,
      cluster.server(lane.server).incarnation(),
      {}};
  const MemoryConnection& connection = client.connections[lane.server];
  for (std::size_t i = from; i < lane.requests.size(); ++i) {
    const Request& request = client.batch[lane.requests[i]];
    if (!reads(request) && connection.allows(request) &&
        !(bounds.reduced && cluster.server(lane.server).never_fits(request)))
      ghost.requests.push_back(request);
  }
  ghosts.push_back(std::move(ghost));
}

void Exploration::Inside::execute_ghost(const Transition& transition, Executed& done) {
  GhostConnection& ghost = ghosts[transition.index];
  const Request& request = ghost.requests[ghost.position++];
  const Reply reply = cluster.server(ghost.server).execute(request);
  touch(done.footprint, request, ghost.server, reply);
  done.born = ghost.born;
  report([&] {
    return "client " + std::to_string(ghost.client + 1) + "'s delayed " + reported_request(request) +
           " arrives -> " + told_reply(reply);
  });
}

void Exploration::Inside::die(ExploredClient& client, Executed& done) {
  report([&] { return who(*client.inside_) + " dies"; });
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

void Exploration::Inside::note_change(const Executed& done) {
  const Footprint& step = done.footprint;
  const bool anything = step.scope == Footprint::Scope::everything || step.scope == Footprint::Scope::server;
  for (const auto& client : clients) {
    auto& one = *client->inside_;
    if (done.client == static_cast<int>(one.index)) continue;
    one.changed = one.changed || anything || (step.writes && one.looked_at.contains(step.item));
  }
}

}  // namespace mcds
