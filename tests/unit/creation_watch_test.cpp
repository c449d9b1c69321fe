// A key that a client has created or changed is created again: it was lost or dropped meanwhile.
#include <doctest/doctest.h>

#include "tests/support/world.hpp"
#include "tools/cli/session.hpp"

namespace mcds::creation_watch_test {

namespace {

struct Watched {
  test::World world{1, 1};
  std::string prefix;
  CreationWatch watch{world.context.cluster, prefix};

  Reply incr(const std::string& key, Exptime exptime = Exptime::never()) {
    return watch.execute(Request::incr_or_create(key, 1, 1, exptime));
  }
  Reply append(const std::string& key) {
    return watch.begin({Request::append_or_create(key, "P", "v", Exptime::never())})->finish().front();
  }
  void remove(const std::string& key) { watch.execute(Request::remove(key)); }
  const std::set<std::string>& lost() const { return watch.lost(); }
};

}  // namespace

TEST_CASE("creation watch: a second creation is reported, the first is not") {
  Watched client;
  client.incr("counter:hits");
  client.incr("counter:hits");
  client.append("array:jobs");
  CHECK(client.lost().empty());
  client.remove("counter:hits");
  CHECK(client.incr("counter:hits").created);
  CHECK(client.lost() == std::set<std::string>{"counter:hits"});
  client.remove("array:jobs");
  CHECK(client.append("array:jobs").created);
  CHECK(client.lost() == std::set<std::string>{"array:jobs", "counter:hits"});
}

TEST_CASE("creation watch: what was there before and was appended to counts as known") {
  Watched client;
  client.world.context.cluster.execute(Request::set("array:jobs", "P", Exptime::never()));
  CHECK_FALSE(client.append("array:jobs").created);
  client.remove("array:jobs");
  CHECK(client.append("array:jobs").created);
  CHECK(client.lost() == std::set<std::string>{"array:jobs"});
}

TEST_CASE("creation watch: what ends by itself, fences and what has copies are not judged") {
  Watched client;
  const Exptime minute = Exptime::after(std::chrono::seconds(60), {});
  for (const char* key : {"counter:hits", "lock:nightly:fence", "table2:blocked:i:3"}) {
    for (int time = 0; time < 2; ++time) {
      CHECK(client.incr(key, minute).created);
      client.remove(key);
    }
  }
  CHECK(client.lost().empty());
}

}  // namespace mcds::creation_watch_test
