// gather(): reads every server of a pool twice and sends a few requests in between. It changes nothing and
// takes at most 17 round trips per server: a greeting with `version`, four `stats` in one trip, ten probes, a
// second reading of three `stats` in one trip, and `stats conns` if wanted. Entries that may be one process
// cost one more connection and two more trips each.
//
// A server that is down, refuses or closes is reported and costs one timeout. No call exceeds the limits of
// ConnectOptions::run.
#pragma once

#include <functional>

#include "common/cluster/cluster.hpp"
#include "common/cluster/keys/live.hpp"
#include "common/operations/doctor/examination.hpp"

namespace mcds::doctor {

constexpr int probes = 10;

struct GatherOptions {
  ConnectOptions connecting = {};
  PlacementOptions placing = {};  // those of the placement
  Duration interval{};
  bool connections = false;  // read `stats conns`, which costs the server time for each connection
  // Waits between the readings. Returns false to end now.
  std::function<bool(Duration)> wait = {};
};

// `listed` are the servers as the list names them, repetitions included.
Examination gather(std::shared_ptr<const Placement> placement, const Pool& listed, const Clock& clock,
                   GatherOptions options);

// The part of --live: reads a part of the keys of every server as `item list` does. Nothing is changed.

// The maximum number of keys per server.
constexpr std::size_t keys_of_each = 20'000;

struct LiveOptions {
  LiveKeysOptions reading = {};
  PlacementOptions placing = {};
  std::string key_prefix = {};        // of our structures; empty: any namespace
  std::function<void()> listed = {};  // called for each key
};

// Lists keys of every server, and compares the values of keys that several servers list.
LiveKeysSeen read_keys(Cluster& cluster, const Clock& clock, const LiveOptions& options);

}  // namespace mcds::doctor
