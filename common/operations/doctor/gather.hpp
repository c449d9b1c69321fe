// Looks at a pool twice and asks each server a few more things in between, at most 17 trips a server in all:
// a greeting with `version`, four `stats` in one trip, ten probes, a second look of three `stats` in one
// trip, `stats conns` if wanted; and where two entries name one process, a connection more to each and two
// trips. Nothing is changed.
//
// A server that is down, refuses or closes is reported as it is and costs one timeout. No call outlasts the
// limits of ConnectOptions::run.
#pragma once

#include <functional>

#include "common/cluster/cluster.hpp"
#include "common/cluster/keys/live.hpp"
#include "common/operations/doctor/examination.hpp"

namespace mcds::doctor {

constexpr int probes = 10;

struct GatherOptions {
  ConnectOptions connecting = {};
  PlacementOptions placing = {};  // those that the placement was made with
  Duration interval{};
  bool connections = false;  // `stats conns`, which costs a server time for each of them
  // Between the looks; false: end now.
  std::function<bool(Duration)> wait = {};
};

// `listed`: the servers as the list gives them, with repetitions.
Examination gather(std::shared_ptr<const Placement> placement, const Pool& listed, const Clock& clock,
                   GatherOptions options);

// What --live adds: a part of the keys of every server, read as `item list` reads them. Nothing is changed.

// So many of each server.
constexpr std::size_t keys_of_each = 20'000;

struct LiveOptions {
  LiveKeysOptions reading = {};
  PlacementOptions placing = {};
  std::string key_prefix = {};  // of our structures; empty: in any namespace
};

// Lists keys of every server, and compares the values of those that several servers list.
LiveKeysSeen look_at_keys(Cluster& cluster, const Clock& clock, const LiveOptions& options);

}  // namespace mcds::doctor
