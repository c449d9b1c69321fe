// Names and addresses as this machine resolves them, for the profiles of clients that hash what a name
// resolves to.
#pragma once

#include <chrono>
#include <memory>

#include "common/cluster/health/run_limits.hpp"
#include "common/placement/placement.hpp"

namespace mcds {

// How long a name server is waited for.
constexpr Duration longest_lookup = std::chrono::seconds(5);

// It waits no longer than `limits` allows.
Resolver system_resolver(std::shared_ptr<const RunLimits> limits);

}  // namespace mcds
