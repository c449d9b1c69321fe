// The verbs of mcds ring, one file each.
#pragma once

#include "tools/cli/program.hpp"

namespace mcds {

void declare_ring_shares(Verb& verb);

}  // namespace mcds
