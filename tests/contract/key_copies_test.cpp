// Probing and pruning against every backend.
#include <doctest/doctest.h>

#include "common/cluster/keys/probe.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/cluster_doubles.hpp"
#include "tests/support/sockets.hpp"

using namespace mcds;
using namespace mcds::test;

namespace {

void put(Cluster& cluster, std::size_t server, const std::string& value) {
  REQUIRE(cluster.execute(Request::set("k", value, Exptime::never()).on(server)).outcome == Outcome::stored);
}

// One server under two names, on which a client stores the same value again between two reads.
class TwoNames final : public Decorator {
 public:
  using Cluster::execute;
  using Decorator::Decorator;
  std::vector<Reply> execute(std::span<const Request> batch) override {
    std::vector<Reply> replies;
    for (Request request : batch) {
      const std::size_t name = request.server.value_or(0);
      if (name == 1 && request.op == Op::probe && writes-- > 0) put(inner(), 0, "v");
      replies.push_back(inner().execute(std::move(request).on(0)));
      replies.back().server = name;
    }
    return replies;
  }
  int writes = 1;
};

KeyCopies probe(Cluster& cluster) {
  const std::vector<std::string> keys{"k"};
  return probe_keys(cluster, keys).front();
}

}  // namespace

TEST_CASE("key copies: every server's copy is found, with its figures") {
  for (const auto& name : backend_names()) {
    CAPTURE(name);
    const auto backend = make_backend(name, 3);
    put(backend->cluster(), 0, "old");
    put(backend->cluster(), 2, "newer");
    const KeyCopies copies = probe(backend->cluster());
    CHECK(copies[0].found());
    CHECK(copies[0].size_bytes == 3);
    CHECK(copies[0].md5 == "149603e6c03516362a8da23f624db945");
    CHECK(copies[0].cas.value != 0);
    CHECK(copies[1].state == KeyCopy::State::missing);
    CHECK(copies[2].size_bytes == 5);
    CHECK(verdict_of(copies, copies_on({0})) == Verdict::divergent);
    CHECK(verdict_of(copies, copies_on({1})) == Verdict::divergent);
  }
}

TEST_CASE("key copies: pruning removes what was probed, and never what was written since") {
  for (const auto& name : backend_names()) {
    CAPTURE(name);
    const auto backend = make_backend(name, 3);
    for (std::size_t server = 0; server < 3; ++server) put(backend->cluster(), server, "v");
    const KeyCopies copies = probe(backend->cluster());
    put(backend->rival(), 1, "changed");
    const auto removed = remove_copies(backend->cluster(), "k", copies,
                                       find_not_on_owner(copies, copies_on({0}), false).equal);
    REQUIRE(removed.size() == 2);
    CHECK(removed[0].removal == Removal::changed);
    CHECK(removed[1].removal == Removal::removed);
    const KeyCopies after = after_removal(copies, removed);
    CHECK(verdict_of(after, copies_on({0})) == Verdict::duplicate);
    const KeyCopies now = probe(backend->cluster());
    CHECK(now[0].found());
    CHECK(now[1].size_bytes == 7);
    CHECK(!now[2].found());
  }
}

TEST_CASE("key copies: pruning removes nothing if the copy that stays has gone since it was probed") {
  for (const auto& name : backend_names()) {
    CAPTURE(name);
    const auto backend = make_backend(name, 3);
    for (std::size_t server = 0; server < 3; ++server) put(backend->cluster(), server, "v");
    const KeyCopies copies = probe(backend->cluster());
    REQUIRE(backend->rival().execute(Request::remove("k").on(0)).outcome == Outcome::deleted);
    const auto removed = remove_copies(backend->cluster(), "k", copies,
                                       find_not_on_owner(copies, copies_on({0}), false).equal);
    REQUIRE(removed.size() == 2);
    for (const RemovedCopy& one : removed) CHECK(one.removal == Removal::changed);
    const KeyCopies now = probe(backend->cluster());
    CHECK(now[1].found());
    CHECK(now[2].found());
  }
}

TEST_CASE(
    "key copies: pruning takes two trips, three more where a copy may be one item with one that stays") {
  for (const bool alike : {false, true}) {
    const auto backend = make_backend("memory", 3);
    // Another write more, so that the servers have counted differently.
    if (!alike) put(backend->cluster(), 0, "before");
    for (std::size_t server = 0; server < 3; ++server) put(backend->cluster(), server, "v");
    TripCounter trips(backend->cluster());
    const KeyCopies copies = probe(trips);
    CHECK((copies[0].cas == copies[1].cas) == alike);
    const auto not_on_owner = find_not_on_owner(copies, copies_on({0}), false).equal;
    std::vector<RemovedCopy> removed;
    CHECK(trips.trips_of([&] { removed = remove_copies(trips, "k", copies, not_on_owner); }) ==
          (alike ? 5 : 2));
    REQUIRE(removed.size() == 2);
    for (const RemovedCopy& one : removed) CHECK(one.removal == Removal::removed);
  }
}

// Once, the token of the second read, the newer one, removed the only item.
TEST_CASE("key copies: one item under two names is not removed, though it is written between the two reads") {
  for (const int writes : {1, 100}) {
    const auto backend = make_backend("memory", 2);
    put(backend->cluster(), 0, "v");
    TwoNames names(backend->cluster());
    names.writes = writes;
    const KeyCopies copies = probe(names);
    REQUIRE(copies[0].cas.value < copies[1].cas.value);
    for (const std::size_t server : {0, 1}) {
      const auto removed = remove_copies(names, "k", copies, std::vector{server});
      CHECK(removed[0].removal != Removal::removed);
      CHECK(backend->cluster().execute(Request::get("k").on(0)).outcome == Outcome::hit);
    }
  }
}

TEST_CASE("key copies: a restart between probe and prune removes nothing, though cas uniques count again") {
  for (const auto& name : backend_names()) {
    if (name == "memory") continue;  // it has no connections that uniques could be of
    CAPTURE(name);
    const auto backend = make_backend(name, 2);
    put(backend->cluster(), 0, "v");
    put(backend->cluster(), 1, "v");
    const KeyCopies copies = probe(backend->cluster());
    backend->restart(1);
    put(backend->rival(), 1, "w");
    const auto removed = remove_copies(backend->cluster(), "k", copies,
                                       find_not_on_owner(copies, copies_on({0}), false).equal);
    CHECK(removed[0].removal != Removal::removed);
    CHECK(probe(backend->rival())[1].found());
  }
}

TEST_CASE("key copies: a probe over the meta protocol leaves no trace on the item") {
  MemcachedProcess server;
  const auto cluster =
      connect(placement_over({server.server()}), options_of("meta", std::chrono::seconds(5)));
  put(*cluster, 0, "v");
  CHECK(probe(*cluster)[0].found());
  CHECK(talk(server.server(), "mg k h t\r\n") == "HD h0 t-1\r\n");
}

TEST_CASE("key copies: an item invalidated by another client, or written under a base64 key, is found") {
  MemcachedProcess server;
  const auto cluster =
      connect(placement_over({server.server()}), options_of("meta", std::chrono::seconds(5)));
  put(*cluster, 0, "v");
  talk(server.server(), "md k I T30\r\n");
  CHECK(probe(*cluster)[0].found());
  talk(server.server(), "ms aw== 2 b\r\nvv\r\n");
  CHECK(probe(*cluster)[0].size_bytes == 2);
}
