// What a key's name says of the structure it is of.
#include "common/primitives/structure_names.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace mcds;

namespace {

// `structure name copies`, and `root` where it is one.
std::string named(std::string_view key) {
  const auto found = structure_named(key);
  if (!found) return "-";
  return std::string(found->structure) + ' ' + std::string(found->name) + ' ' +
         std::to_string(found->copies) + (found->is_root ? " root" : "");
}

}  // namespace

TEST_CASE("structure names: each structure is known by one of its keys") {
  CHECK(named("lock:a:b") == "lock a:b 1 root");
  CHECK(named("lock:a:slot:2") == "lock a 1 root");
  CHECK(named("counter:hits") == "counter hits 1 root");
  CHECK(named("visitors:site:300:5984459") == "visitors site 1 root");
  CHECK(named("eventlog:deploys:conf") == "eventlog deploys 1 root");
  CHECK(named("array2:jobs") == "array jobs 2 root");
  CHECK(named("table:blocked:i") == "table blocked 1 root");
  CHECK(named("hash12:cfg:i") == "hash cfg 12 root");
  CHECK(named("cache:report") == "cache report 1 root");
}

TEST_CASE("structure names: what belongs to it is none by itself") {
  CHECK(named("lock:a:fence") == "lock a 1");
  CHECK(named("lock:a:slot:2:fence") == "lock a 1");
  CHECK(named("counter:mail:limit:3600000:498704") == "counter mail 1");
  CHECK(named("visitors:site:300:5984459:77") == "visitors site 1");
  CHECK(named("visitors:site:conf") == "visitors site 1");
  CHECK(named("eventlog:deploys:60x60:29920568.1") == "eventlog deploys 1");
  CHECK(named("eventlog:deploys:60x60:dir:935017") == "eventlog deploys 1");
  CHECK(named("array:jobs:s:00000000000000af") == "array jobs 1");
  CHECK(named("table:blocked:v:x") == "table blocked 1");
  CHECK(named("table:blocked:i:7") == "table blocked 1");
  CHECK(named("table:blocked:i:s:00000000000000af") == "table blocked 1");
  CHECK(named("hash:cfg:i:7:s:00000000000000af") == "hash cfg 1");
  CHECK(named("cache:report:rebuild") == "cache report 1");
}

TEST_CASE("structure names: what recopy writes is of the structure that it changes") {
  for (const char* key : {"hash0:cfg", "hash0:cfg:00000000000000af",
                          "hash0:cfg:00000000000000af::", "hash0:cfg:00000000000000af:v:color"}) {
    CAPTURE(key);
    CHECK(named(key) == "hash cfg 2");
    CHECK(structure_named(key)->of_recopy);
  }
  CHECK(named("array0:jobs") == "array jobs 2");
  CHECK_FALSE(structure_named("array:jobs")->of_recopy);
  CHECK(named("counter0:x") == "counter x 2");
  CHECK(named("eventlog0:x") == "eventlog x 2");
}

TEST_CASE("structure names: other keys are none of ours") {
  for (const char* key : {"", "lock", "lock:", "locked:x", "hash1:x", "hash100:x", "array02x:y", "page:1"})
    CHECK(named(key) == "-");
}

TEST_CASE("structure names: locks, votes and marks of recopy are relied on by their name alone") {
  for (const char* key :
       {"lock:a", "lock:a:slot:2", "lock:a:fence", "lockserver:votes:60", "hash0:cfg", "app:lock:a"}) {
    CAPTURE(key);
    CHECK(is_relied_on(key, ""));
  }
  CHECK(is_relied_on("app:lockserver:votes:60", "app:"));
  CHECK_FALSE(is_relied_on("other:lock:a", "app:"));
  for (const char* key : {"hash2:cfg:i", "cache:page", "block:a", "locks:a", "counter:lock"}) {
    CAPTURE(key);
    CHECK_FALSE(is_relied_on(key, ""));
  }
}
