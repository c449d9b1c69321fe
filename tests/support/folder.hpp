// Where the tests' data files are.
#pragma once

#include <string>

namespace mcds::test {

// The absolute path of a folder below tests/.
std::string folder(const std::string& name);

}  // namespace mcds::test
