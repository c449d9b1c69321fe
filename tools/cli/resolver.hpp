// Names and addresses as this machine resolves them, for the profiles of clients that hash what a name resolves to.
#pragma once

#include "common/placement/placement.hpp"

namespace mcds {

Resolver system_resolver();

}  // namespace mcds
