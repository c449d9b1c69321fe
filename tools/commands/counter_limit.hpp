// mcds counter limit.
#pragma once

#include "tools/cli/program.hpp"

namespace mcds {

void declare_counter_limit(Command& counter);

}  // namespace mcds
