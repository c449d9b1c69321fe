// What --live adds: a part of the keys of every server, read as `item list` reads them. Nothing is changed.
#pragma once

#include "common/cluster/keys/live.hpp"
#include "common/operations/doctor/examination.hpp"

namespace mcds::doctor {

// So many of each server.
constexpr std::size_t keys_of_each = 20'000;

struct LiveOptions {
  LiveKeysOptions reading = {};
  PlacementOptions placing = {};
  std::string key_prefix = {};  // of our structures; empty: in any namespace
};

LiveKeysSeen look_at_keys(const Placement& placement, const Clock& clock, const LiveOptions& options);

}  // namespace mcds::doctor
