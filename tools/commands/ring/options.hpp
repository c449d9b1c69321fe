// The verbs of mcds ring, one file each.
#pragma once

#include "tools/cli/program.hpp"

namespace mcds {

void declare_ring_shares(Verb& verb);
void declare_ring_diff(Verb& verb);
void declare_ring_check(Verb& verb);
void declare_ring_move(Verb& verb);

}  // namespace mcds
