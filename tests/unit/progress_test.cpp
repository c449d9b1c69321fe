#include "tools/cli/progress.hpp"

#include <doctest/doctest.h>

namespace mcds::progress_test {

using namespace std::chrono_literals;

TEST_CASE("progress: a bar with a total, a count without one") {
  CHECK(Progress::line("lines", 512000, 51, 100, 1s) ==
        "[############............] 51%  512000 lines, 512000/s, 1s left");
  CHECK(Progress::line("lines", 100, 1, 100, 10s) ==
        "[........................] 1%  100 lines, 10/s, 16m31s left");
  CHECK(Progress::line("lines", 100, 50, 100, 500ms) == "[############............] 50%  100 lines, 200/s");
  CHECK(Progress::line("lines", 3000, 0, std::nullopt, 2s) == "3000 lines, 1500/s");
  CHECK(Progress::line("lines", 0, 0, 100, 0s) == "[........................] 0%  0 lines");
  CHECK(Progress::line("lines", 1, 200, 100, 1s) == "[########################] 100%  1 lines, 1/s");
  CHECK(Progress::line("lines", 1, 1, 1000, 1s) == "[........................] 0%  1 lines, 1/s");
  CHECK(Progress::line("lines", 1, 0, 0, 1s) == "1 lines, 1/s");
}

}  // namespace mcds::progress_test
