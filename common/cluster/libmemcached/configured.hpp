// Reads the servers and the placement from a configuration string of libmemcached, by means of the installed
// library. A child process loads the library, parses the string and answers where keys are placed. A string
// that crashes the library or hangs it therefore does no harm. The child cannot open files, inherits no
// descriptors, and ends with its parent.
#pragma once

#include "common/base/clock.hpp"
#include "common/placement/ring/check.hpp"

namespace mcds::libmemcached {

// Throws Failure(configuration) if the library is not installed, refuses the string, crashes, or takes longer
// than `longest`; also if the string has no servers or places keys at random (--DISTRIBUTION=RANDOM).
std::shared_ptr<const AskedClient> configured_client(const std::string& text, Duration longest);

// Asks the installed library for the places of 100 keys, and returns a problem if `placement`, of the
// servers `listed`, differs. Returns nothing if its profile is none of libmemcached's that can be set here,
// if servers have names, or if the library is not installed or does not answer.
std::vector<Finding> check_installed(const Pool& listed, const Placement& placement);

}  // namespace mcds::libmemcached
