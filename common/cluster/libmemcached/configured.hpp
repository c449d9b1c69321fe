// The servers and the placement of a configuration string of libmemcached, as the library that is installed
// here has them. A child process of its own loads the library, parses the string and is asked where keys
// are: a string that crashes it or never ends does no harm. The child can open no file, has no descriptor
// of ours, and ends with us.
#pragma once

#include "common/base/clock.hpp"
#include "common/placement/placement.hpp"

namespace mcds::libmemcached {

// Throws Failure(configuration) if the library is not here, refuses the string, crashes, or takes longer
// than `longest`; if the string has no servers, or places keys by chance (--DISTRIBUTION=RANDOM).
std::shared_ptr<const AskedClient> configured_client(const std::string& text, Duration longest);

}  // namespace mcds::libmemcached
