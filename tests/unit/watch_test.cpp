// Parses the lines of `watch`.
#include "common/cluster/keys/watch.hpp"

#include <doctest/doctest.h>

#include "common/cluster/statistics.hpp"

using namespace mcds;

TEST_CASE("watch: what versions from 1.4.31 to 1.6.45 write") {
  std::string buffer;
  const auto what = [&](const char* line) {
    const auto event = parse_watch_line(line, buffer);
    REQUIRE(event);
    CHECK(event->key == "price:44");
    return event->what;
  };
  using What = KeyEvent::What;
  CHECK(what("ts=1.2 gid=7 type=item_get key=price%3A44 status=found") == What::found);
  CHECK(what("ts=1.2 gid=7 type=item_get key=price%3A44 status=not_found clsid=0 cfd=26 size=0") ==
        What::missed);
  CHECK(what("ts=1.2 gid=7 type=item_get key=price%3A44 status=expired clsid=0 cfd=26 size=0") ==
        What::missed);
  CHECK(what("ts=1.2 gid=7 type=item_store key=price%3A44 status=exists cmd=set") == What::stored);
  CHECK(what("ts=1.2 gid=7 type=item_store key=price%3A44 status=not_stored cmd=add ttl=0 clsid=1 cfd=26 "
             "size=3") == What::stored);
  CHECK(what("ts=1.2 gid=7 type=deleted key=price%3A44 cmd=delete clsid=1 size=3") == What::deleted);
  CHECK(what("ts=1.2 gid=7 type=eviction key=price%3A44 fetch=yes ttl=-1 la=5 clsid=1 size=3") ==
        What::evicted);
}

TEST_CASE("watch: the value's size, where it is reported") {
  std::string buffer;
  CHECK(parse_watch_line("ts=1.2 gid=7 type=item_get key=k status=found clsid=1 cfd=26 size=31", buffer)
            ->size_bytes == 31);
  CHECK(
      !parse_watch_line("ts=1.2 gid=7 type=item_get key=k status=found clsid=1 cfd=26", buffer)->size_bytes);
}

TEST_CASE("watch: a key that looks like fields") {
  std::string buffer;
  const auto event = parse_watch_line(
      "ts=1.2 gid=7 type=item_get key=a%20status%3Dfound%20size%3D9 status=not_found size=0", buffer);
  REQUIRE(event);
  CHECK(event->key == "a status=found size=9");
  CHECK(event->what == KeyEvent::What::missed);
}

TEST_CASE("watch: what is no event of a key") {
  std::string buffer;
  for (const char* line :
       {"", "OK", "skipped=12", "ts=1 gid=2 type=conn_new rip=unix rport=0 transport=local cfd=3",
        "ts=1 gid=2 type=item_get key= status=found", "ts=1 gid=2 type=item_get key=%zz status=found",
        "ts=1 gid=2 type=extwrite key=k fetch=yes"}) {
    CAPTURE(line);
    CHECK(!parse_watch_line(line, buffer));
  }
}

TEST_CASE("statistics: a name and no other that begins or ends like it") {
  const char* lines = "uptime 5\ntime 7\nrusage_user 0.1\nlog_worker_dropped 12\nlast x";
  CHECK(statistic_number(lines, "time") == 7);
  CHECK(statistic_number(lines, "log_worker_dropped") == 12);
  CHECK(!statistic(lines, "worker_dropped"));
  CHECK(!statistic_number(lines, "rusage_user"));
  CHECK(statistic(lines, "last") == "x");
  CHECK(!statistic("", "time"));
}

TEST_CASE("servers: in a container each is process 1, and its start tells its lives apart") {
  const auto incarnation = [](const char* uptime) {
    return *ServerStart::of(std::string("pid 1\ntime 1000\nuptime ") + uptime + "\n");
  };
  CHECK(incarnation("500").is(incarnation("500")));
  CHECK(incarnation("500").is(incarnation("501")));
  CHECK_FALSE(incarnation("500").is(incarnation("20")));
  CHECK_FALSE(ServerStart::of("pid 7\ntime 1000\nuptime 500\n")->is(incarnation("500")));
  CHECK_FALSE(ServerStart::of("pid 7\nuptime 500\n"));
}
