// Locates the tests' data files.
#pragma once

#include <string>

namespace mcds::test {

// Returns the absolute path of a folder below tests/.
std::string folder(const std::string& name);

}  // namespace mcds::test
