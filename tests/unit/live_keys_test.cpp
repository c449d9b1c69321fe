#include <doctest/doctest.h>

#include "common/cluster/keys/dump.hpp"
#include "common/cluster/keys/live.hpp"

using namespace mcds;

TEST_CASE("live keys: a dump line's fields") {
  std::string buffer;
  const auto key =
      parse_metadump_line("key=price%3A44 exp=1795254718 la=1795254618 cas=2 fetch=no cls=1 size=69", buffer);
  REQUIRE(key);
  CHECK(key->key == "price:44");
  CHECK(key->expires_at == 1795254718);
  CHECK(key->last_accessed_at == 1795254618);
  CHECK(key->cas == 2);
  CHECK(key->size_bytes == 69);
}

TEST_CASE("live keys: later versions' additional fields and older ones' missing ones") {
  std::string buffer;
  CHECK(parse_metadump_line("key=k exp=-1 la=1 cas=2 fetch=no cls=1 size=69 flags=0 ext=1", buffer)
            ->size_bytes == 69);
  CHECK(parse_metadump_line("key=k exp=-1 la=1", buffer)->size_bytes == 0);
}

namespace {

std::string statistics(const std::string& version, std::uint64_t items, const std::string& more = "") {
  return "version " + version + "\ncurr_items " + std::to_string(items) + "\nhash_power_level 16\n" + more;
}

// Returns true if a dump is allowed at a second reading, after the first reading `before`.
bool may_dump(const std::string& now, const std::string& before = "") {
  const auto first = before.empty() ? std::nullopt : std::optional(DumpState::of(before));
  return DumpState::of(now).objection(first).empty();
}

}  // namespace

TEST_CASE(
    "live keys: before 1.6.19 no dump starts beside another, in a growing table, or in one about to grow") {
  CHECK(may_dump(statistics("1.6.18", 1000)));
  CHECK_FALSE(may_dump(statistics("1.6.18", 1000, "lru_crawler_running 1\n")));
  CHECK_FALSE(may_dump(statistics("1.6.18", 1000, "hash_is_expanding 1\n")));
  CHECK(may_dump(statistics("1.6.18", 85000)));
  CHECK_FALSE(may_dump(statistics("1.6.18", 86000)));
  CHECK_FALSE(may_dump(statistics("1.4.15", 86000)));
  for (const char* version : {"1.6.19", "1.6.45", "unknown"}) {
    CHECK(may_dump(statistics(version, 98000)));
    CHECK(may_dump(statistics(version, 1000, "lru_crawler_running 1\nhash_is_expanding 1\n")));
  }
}

TEST_CASE("live keys: a table that is nearly full and does not fill further is listed after a second") {
  CHECK(may_dump(statistics("1.6.18", 90000), statistics("1.6.18", 90000)));
  CHECK(may_dump(statistics("1.6.18", 90200), statistics("1.6.18", 90000)));
  CHECK_FALSE(may_dump(statistics("1.6.18", 91000), statistics("1.6.18", 90000)));
  CHECK_FALSE(may_dump(statistics("1.6.18", 98000), statistics("1.6.18", 98000)));
  CHECK_FALSE(may_dump(statistics("1.6.18", 99000), statistics("1.6.18", 99000)));
}

TEST_CASE("live keys: a list that lacks more than a hundredth of what was there all the time may be short") {
  CHECK(LiveKeysOfServer{{.keys = 986066, .complete = true, .items_before = 1000000, .items_after = 1000000},
                         nullptr}
            .may_be_short());
  CHECK_FALSE(LiveKeysOfServer{
      {.keys = 995000, .complete = true, .items_before = 1000000, .items_after = 1000000}, nullptr}
                  .may_be_short());
  CHECK_FALSE(
      LiveKeysOfServer{{.keys = 10, .complete = true, .items_before = 10, .items_after = 1000}, nullptr}
          .may_be_short());
  CHECK_FALSE(LiveKeysOfServer{{.keys = 10, .complete = true}, nullptr}.may_be_short());
}

TEST_CASE("live keys: what is no dump line") {
  std::string buffer;
  for (const char* line :
       {"", "END", "ERROR", "key=", "key= exp=1 la=1", "key=k", "key=k exp=x la=1", "key=k%2 exp=1 la=1",
        "key=k%zz exp=1 la=1", "BUSY currently processing crawler request"}) {
    CAPTURE(line);
    CHECK(!parse_metadump_line(line, buffer));
  }
}

TEST_CASE("live keys: a key that is longer than a server keeps is none") {
  std::string buffer;
  const auto line = [](std::size_t size) { return "key=" + std::string(size, 'k') + " exp=-1 la=1"; };
  CHECK(parse_metadump_line(line(250), buffer));
  CHECK_FALSE(parse_metadump_line(line(251), buffer));
}

TEST_CASE("live keys: a list may have twice the items that were counted and some more") {
  CHECK(DumpState::of(statistics("1.6.18", 0)).max_keys == 100'000);
  CHECK(DumpState::of(statistics("1.6.18", 1'000'000)).max_keys == 2'100'000);
  CHECK(DumpState::of(statistics("1.6.18", UINT64_MAX)).max_keys == UINT64_MAX);
  CHECK(DumpState::of("version 1.6.18\n").max_keys == 8'000'000);
}
