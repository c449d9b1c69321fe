// Rates between two readings of a server's statistics.
#include "tools/commands/servers/rates.hpp"

#include <doctest/doctest.h>

#include "tools/cli/cell_text.hpp"

using namespace mcds;

namespace {

Sample sample(int second, const std::string& stats, const std::string& items = "") {
  return Sample::of(SteadyTime(std::chrono::seconds(second)), stats, items);
}

std::string text_of(const Rates& rates) {
  JsonObject line;
  rates.describe(line);
  return line.text();
}

}  // namespace

TEST_CASE("rates: what counts up is divided by the time, what is now stays as it is") {
  const Rates rates(
      sample(10, "pid 7\nuptime 5\ncurr_items 3\ncmd_get 100\nget_hits 90\ncmd_set 5\nlisten_disabled_num 1",
             "items:1:outofmemory 3\nitems:2:outofmemory 1\nitems:2:number 9"),
      sample(12, "pid 7\nuptime 7\ncurr_items 9\ncmd_get 200\nget_hits 165\ncmd_set 5\nlisten_disabled_num 4",
             "items:1:outofmemory 3\nitems:2:outofmemory 6"));
  CHECK(!rates.restarted());
  CHECK(
      text_of(rates) ==
      R"({"gets_per_s":50.0,"hit_ratio":0.7500,"sets_per_s":0.0,"items":9,"listen_disabled":3,"out_of_memory":5})");
}

TEST_CASE("rates: a restarted server has none, by its pid or by its start") {
  const char* before = "pid 7\ntime 1050\nuptime 50\ncurr_items 5\ncmd_get 100";
  for (const char* now : {"pid 8\ntime 1060\nuptime 60\ncurr_items 1\ncmd_get 900",
                          "pid 7\ntime 1060\nuptime 1\ncurr_items 1\ncmd_get 900",
                          "pid 7\ntime 1060\nuptime 58\ncurr_items 1\ncmd_get 900"}) {
    const Rates rates(sample(1, before), sample(2, now));
    CHECK(rates.restarted());
    CHECK(text_of(rates) == R"({"items":1})");
  }
}

TEST_CASE("rates: statistics that were reset between have no rate") {
  const Rates rates(sample(1, "pid 7\nuptime 5\ncmd_get 100\ncmd_set 4"),
                    sample(2, "pid 7\nuptime 6\ncmd_get 10\ncmd_set 6"));
  CHECK(text_of(rates) == "{}");
  // Nothing fell, but no server has more hits than gets.
  CHECK(text_of(Rates(sample(1, "pid 7\ncmd_get 1000\nget_hits 0"),
                      sample(2, "pid 7\ncmd_get 1500\nget_hits 1500"))) ==
        R"({"gets_per_s":500.0,"out_of_memory":0})");
}

TEST_CASE("rates: the pool's are the sums of those that report them") {
  Rates all;
  all.add(Rates(sample(1, "pid 7\nuptime 5\ncmd_get 100\nget_hits 100\nbytes 10"),
                sample(3, "pid 7\nuptime 7\ncmd_get 300\nget_hits 150\nbytes 20")));
  all.add(Rates(sample(1, "pid 8\nuptime 5\ncmd_get 0\nget_hits 0"),
                sample(3, "pid 8\nuptime 7\ncmd_get 200\nget_hits 150")));
  all.add(Rates());
  all.add(Rates(sample(1, "pid 9\ncmd_get 0"), sample(3, "pid 9\ncmd_get 0")));
  CHECK(text_of(all) == R"({"gets_per_s":200.0,"hit_ratio":0.5000,"used_bytes":20,"out_of_memory":0})");
}

TEST_CASE("rates: in words for people") {
  CHECK(column_title("gets_per_s") == "gets/s");
  CHECK(cell_text("gets_per_s", "81.36", {}) == "81.4");
  CHECK(column_title("sent_bytes_per_s") == "sent");
  CHECK(cell_text("sent_bytes_per_s", "2048.0", {}) == "2 KiB/s");
  CHECK(cell_text("hit_ratio", "0.975", {}) == "97.50%");
}
