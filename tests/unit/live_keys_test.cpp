#include <doctest/doctest.h>

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

TEST_CASE("live keys: what is no dump line") {
  std::string buffer;
  for (const char* line :
       {"", "END", "ERROR", "key=", "key= exp=1 la=1", "key=k", "key=k exp=x la=1", "key=k%2 exp=1 la=1",
        "key=k%zz exp=1 la=1", "BUSY currently processing crawler request"}) {
    CAPTURE(line);
    CHECK(!parse_metadump_line(line, buffer));
  }
}
