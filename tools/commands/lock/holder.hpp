// The holder of a lock: written by every command that takes one, shown to every command that finds it taken.
#pragma once

#include <string>

#include "common/structures/lock/lock.hpp"

namespace mcds {

// This process.
LockHolder holder_here(std::string note = {});

// `deploy@web3 (pid 4711) since 2026-…`, as far as it is known.
std::string describe_holder(const std::string& holder,
                            const char* why_kept = ", kept by --min-hold or --once-per");

}  // namespace mcds
