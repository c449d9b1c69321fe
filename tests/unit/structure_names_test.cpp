// The structure to which a key belongs, by its name.
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "common/primitives/key_names.hpp"

using namespace mcds;

namespace {

// Returns `structure name copies`, followed by `root` for a root.
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

TEST_CASE("structure names: a part is known by its key, and nothing else is taken for one") {
  const std::string id = ":s:0123456789abcdef";
  const std::map<std::string, std::string> parts{
      {"ns:array:jobs" + id, "ns:array:jobs"},
      {"ns:array2:jobs" + id, "ns:array2:jobs"},
      {"ns:table:blocked:i" + id, "ns:table:blocked:i"},
      {"ns:hash3:cfg:i:15" + id, "ns:hash3:cfg:i:15"},
      {"ns:eventlog:deploys:60x60:29920568.1003", "ns:eventlog:deploys:60x60:29920568"},
      {"ns:eventlog2:deploys:60x60:29920568.1", "ns:eventlog2:deploys:60x60:29920568"},
      {"ns:lock:nightly:fence", "ns:lock:nightly"},
  };
  for (const auto& [part, with] : parts) {
    CHECK(placed(part, "ns:").with == with);
    CHECK(is_segment(placed(part, "ns:")) == part.ends_with(id));
  }
  for (const std::string& key : std::vector<std::string>{
           "ns:array:jobs", "ns:array:jobs:json", "ns:table:blocked" + id, "ns:hash:cfg:v:a",
           "array:jobs" + id, "ns:sessions" + id, "ns:eventlog:deploys:60x60:29920568",
           "ns:eventlog:deploys:conf", "ns:price:60x60:1.5", "ns:counter:a:fence"}) {
    CAPTURE(key);
    CHECK(placed(key, "ns:").with.empty());
  }
}

TEST_CASE("structure names: other keys are none of ours") {
  for (const char* key :
       {"", "lock", "lock:", "locked:x", "hash1:x", "hash100:x", "hash0:x", "array02x:y", "page:1"})
    CHECK(named(key) == "-");
}

TEST_CASE("structure names: locks and votes are relied on by their name alone") {
  for (const char* key : {"lock:a", "lock:a:slot:2", "lock:a:fence", "lockserver:votes:60", "app:lock:a"}) {
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
