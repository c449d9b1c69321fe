#include "tests/support/folder.hpp"

namespace mcds::test {

std::string folder(const std::string& name) {
  return MCDS_TESTS_FOLDER "/" + name;
}

}  // namespace mcds::test
