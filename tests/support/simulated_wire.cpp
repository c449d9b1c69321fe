#include "tests/support/simulation_inside.hpp"

namespace mcds {

SimulatedWire::SimulatedWire(SimulatedClient& client)
    : client_(client), simulation_(*client.simulation().inside_), connections_(simulation_.cluster.size()) {}

const Placement& SimulatedWire::placement() const {
  return simulation_.cluster.placement();
}

void SimulatedWire::wait_until(SimulatedClient& client, Duration due) {
  if (client.inside_->dying) return;
  client.inside_->wake = due;
  client.inside_->fiber.pause();
  if (client.inside_->dying) throw ClientKilled{};
}

std::vector<Reply> SimulatedWire::execute(std::span<const Request> batch) {
  Trip trip{batch, std::vector<Reply>(batch.size()), {}, simulation_.now() + simulation_.options.timeout};
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const std::size_t server = server_of(batch[i]);
    Lane* lane = nullptr;
    for (Lane& other : trip.lanes) {
      if (other.server == server) lane = &other;
    }
    if (lane == nullptr) {
      lane = &trip.lanes.emplace_back();
      lane->server = server;
    }
    lane->requests.push_back(i);
  }
  for (Lane& lane : trip.lanes) plan(trip, lane);
  try {
    while (Lane* lane = next(trip)) {
      wait_until(client_, lane->due);
      advance(trip, *lane);
    }
    wait_until(client_, trip.silent ? trip.deadline : simulation_.now() + simulation_.delay());
  } catch (const ClientKilled&) {
    for (Lane& lane : trip.lanes) {
      if (lane.open && simulation_.chance(0.5)) haunt(trip, lane, simulation_.now() + simulation_.delay());
    }
    throw;
  }
  return std::move(trip.replies);
}

SimulatedWire::Lane* SimulatedWire::next(Trip& trip) {
  Lane* first = nullptr;
  for (Lane& lane : trip.lanes) {
    if (lane.open && (first == nullptr || lane.due < first->due)) first = &lane;
  }
  return first;
}

void SimulatedWire::plan(Trip& trip, Lane& lane) {
  const std::size_t size = lane.requests.size();
  lane.answered_to = lane.applied_to = size;
  lane.due = simulation_.now() + simulation_.delay();
  if (client_.inside_->dying) return close(trip, lane, ReplyFailure::Kind::unreachable, "connection refused");
  if (!simulation_.chance(simulation_.message_faults)) return;
  const std::size_t cut = simulation_.random.below(size);
  const Faults& faults = simulation_.options.faults;
  switch (simulation_.random.below(4)) {
    case 0:
      if (faults.unreachable) close(trip, lane, ReplyFailure::Kind::unreachable, "connection refused");
      break;
    case 1:
      if (faults.lost_requests) lane.answered_to = lane.applied_to = cut;
      break;
    case 2:
      if (!faults.lost_replies) break;
      lane.answered_to = cut;
      lane.applied_to = cut + 1 + simulation_.random.below(size - cut);
      break;
    default:
      if (!faults.ghosts) break;
      lane.answered_to = cut;
      lane.applied_to = cut + 1 + simulation_.random.below(size - cut);
      lane.late = true;
  }
}

void SimulatedWire::advance(Trip& trip, Lane& lane) {
  MemoryServer& server = simulation_.cluster.server(lane.server);
  MemoryConnection& connection = connections_[lane.server];
  if (connection.incarnation == 0) connection.incarnation = server.incarnation();
  const Duration stalled_until = simulation_.stalled_until[lane.server];
  if (stalled_until > simulation_.now()) {
    lane.due = stalled_until + simulation_.delay();
    if (stalled_until >= trip.deadline) haunt(trip, lane, lane.due);
    return;
  }
  if (connection.incarnation != server.incarnation()) {
    connection = {};
    const bool noticed = lane.position == 0 && simulation_.chance(0.5);
    return close(trip, lane, noticed ? ReplyFailure::Kind::unreachable : ReplyFailure::Kind::unknown,
                 "connection reset");
  }
  if (lane.position >= lane.answered_to && lane.late) {
    return haunt(trip, lane, simulation_.now() + simulation_.between(Duration(0), std::chrono::seconds(8)));
  }
  if (lane.position < lane.applied_to) {
    const std::size_t index = lane.requests[lane.position];
    Reply reply = connection.execute(server, lane.server, trip.batch[index]);
    if (lane.position < lane.answered_to) {
      trip.replies[index] = std::move(reply);
      ++lane.position;
    } else {
      trip.replies[index] = Reply::failed_with(ReplyFailure::Kind::unknown, "no reply in time", lane.server);
      ++lane.position;
    }
  }
  lane.due = simulation_.now() + simulation_.between(Duration(0), std::chrono::microseconds(50));
  if (lane.position < lane.applied_to) return;
  if (lane.answered_to == lane.requests.size()) {
    lane.open = false;
    return;
  }
  close(trip, lane, ReplyFailure::Kind::unknown, "no reply in time");
}

// Fails the requests that have no reply yet, and closes the connection.
void SimulatedWire::close(Trip& trip, Lane& lane, ReplyFailure::Kind kind, const char* message) {
  lane.open = false;
  if (kind == ReplyFailure::Kind::unknown) {
    ++simulation_.counts.messages;
    connections_[lane.server] = {};
    if (simulation_.chance(0.5)) trip.silent = true;
  }
  for (std::size_t i = lane.position; i < lane.requests.size(); ++i) {
    trip.replies[lane.requests[i]] = Reply::failed_with(kind, message, lane.server);
  }
}

// Delays the requests that were sent but not applied yet, and closes the connection.
void SimulatedWire::haunt(Trip& trip, Lane& lane, Duration due) {
  const MemoryConnection& connection = connections_[lane.server];
  for (std::size_t i = lane.position; i < lane.applied_to; ++i) {
    const Request& request = trip.batch[lane.requests[i]];
    if (!connection.allows(request)) continue;
    simulation_.leave_ghost(request, lane.server, connection.incarnation, due);
    due += simulation_.between(Duration(1), std::chrono::microseconds(50));
  }
  close(trip, lane, ReplyFailure::Kind::unknown, "no reply in time");
}

}  // namespace mcds
