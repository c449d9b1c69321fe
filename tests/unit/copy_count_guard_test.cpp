// Structures in several copies, used with another copy count.
#include "common/replication/copy_count_guard.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <map>

#include "common/base/errors.hpp"
#include "common/replication/copies.hpp"
#include "common/structures/elements/hash.hpp"
#include "common/structures/elements/table.hpp"
#include "tests/support/world.hpp"

namespace mcds::copy_count_guard_test {

namespace {

using Texts = std::vector<std::string>;

struct GuardWorld : test::World {
  GuardWorld() : World(5) {}

  Hash cfg(std::size_t copies) { return {with(copies), "cfg"}; }
  Table blocked(std::size_t copies) { return {with(copies), "blocked"}; }

  using Bytes = std::map<std::pair<std::size_t, std::string>, std::string>;
  Bytes bytes() {
    Bytes all;
    for (std::size_t server = 0; server < memory.size(); ++server) {
      for (const auto& [key, item] : memory.server(server).items()) all[{server, key}] = item.value;
    }
    return all;
  }
};

void check_refused(const std::function<void()>& act, std::size_t kept) {
  const std::string reported = std::to_string(kept) + (kept == 1 ? " copy" : " copies");
  bool refused = false;
  try {
    act();
  } catch (const Failure& failure) {
    refused = true;
    CHECK(failure.code() == ErrorCode::bad_data);
    CHECK(std::string(failure.what()).find("' has " + reported) != std::string::npos);
  }
  CHECK(refused);
}

using Verb = std::function<void(GuardWorld&, std::size_t copies)>;

// Checks every copy count with every other one: the call is refused, and nothing changes.
void check_all(const std::function<void(GuardWorld&, std::size_t copies)>& write,
               const std::map<std::string, Verb>& verbs) {
  for (const std::size_t kept : {1U, 2U, 3U}) {
    GuardWorld world;
    write(world, kept);
    const auto before = world.bytes();
    for (const std::size_t other : {1U, 2U, 3U}) {
      if (other == kept) continue;
      for (const auto& [name, verb] : verbs) {
        CAPTURE(kept);
        CAPTURE(other);
        CAPTURE(name);
        check_refused([&] { verb(world, other); }, kept);
        REQUIRE(world.bytes() == before);
      }
    }
  }
}

const std::map<std::string, Verb> hash_verbs{
    {"set",
     [](GuardWorld& world, std::size_t copies) {
       world.cfg(copies).set(std::vector<Element>{{"a", "x"}});
     }},
    {"set another",
     [](GuardWorld& world, std::size_t copies) {
       world.cfg(copies).set(std::vector<Element>{{"new", "x"}});
     }},
    {"get", [](GuardWorld& world, std::size_t copies) { world.cfg(copies).get(Texts{"a"}); }},
    {"remove", [](GuardWorld& world, std::size_t copies) { world.cfg(copies).remove(Texts{"a"}); }},
    {"fetch",
     [](GuardWorld& world, std::size_t copies) { world.cfg(copies).fetch([](Elements::Found&) {}); }},
    {"accept", [](GuardWorld& world, std::size_t copies) { world.cfg(copies).accept(); }},
    {"where", [](GuardWorld& world, std::size_t copies) { world.cfg(copies).index_keys(); }},
};

bool nothing_to_undo() {
  CHECK(!"there is no other");
  return false;
}

// Creates a one-item structure in two copies; `meanwhile` runs between the two checks.
ErrorCode create_in_two(GuardWorld& world, const std::function<void()>& meanwhile,
                        const CopyCountGuard::Undo& undo) {
  const Context context = world.with(2);
  CopyCountGuard guard(context, "table", "jobs", "");
  guard.check();
  for (const Reply& reply : context.cluster.execute(
           to_copies(context, std::array{Request::add(guard.key(), "mine", Exptime::never())})))
    CHECK(reply.outcome == Outcome::stored);
  meanwhile();
  const auto failure = attempt([&] { guard.confirm_creation(undo); }).failure();
  return failure ? failure->code() : ErrorCode();
}

}  // namespace

TEST_CASE("copy count guard: a hash touched with another number of copies stays as it is") {
  check_all(
      [](GuardWorld& world, std::size_t copies) {
        world.cfg(copies).set(std::vector<Element>{{"a", "1"}, {"b", "2"}, {"c", "3"}});
      },
      hash_verbs);
}

TEST_CASE("copy count guard: what is missing costs one more trip, once") {
  GuardWorld world;
  world.blocked(1).add(Texts{"a"});
  Table blocked = world.blocked(1);
  CHECK(world.trips.trips_of([&] { CHECK(blocked.get(Texts{"a"}).front().yes); }) == 1);
  CHECK(world.trips.trips_of([&] { CHECK_FALSE(blocked.get(Texts{"b"}).front().yes); }) == 2);
  CHECK(world.trips.trips_of([&] { CHECK_FALSE(blocked.get(Texts{"c"}).front().yes); }) == 1);
}

TEST_CASE("copy count guard: a pool of one server has no other number, and costs no trip") {
  test::World world(1);
  CopyCountGuard guard(world.context, "table", "blocked", ":i");
  CHECK(world.trips.trips_of([&] { guard.check(); }) == 0);
  CHECK_FALSE(guard.find_other_count());
}

TEST_CASE("copy count guard: while the other number's servers do not answer, a second structure harms none") {
  GuardWorld world;
  world.blocked(1).add(Texts{"a"});
  const std::size_t owner = world.memory.placement().server_of("table:blocked:i");
  world.memory.stop(owner);
  CHECK_FALSE(world.blocked(2).add(Texts{"x"}).front().failure);
  world.memory.proceed(owner);
  CHECK(world.blocked(1).get(Texts{"a"}).front().yes);
  CHECK_FALSE(world.blocked(1).get(Texts{"x"}).front().yes);
  CHECK(world.blocked(2).get(Texts{"x"}).front().yes);
}

TEST_CASE("copy count guard: a creator checks again, and undoes its creation where another was created") {
  const auto undo = [](GuardWorld& world) {
    return [&world] {
      const std::vector<Request> gets = to_copies(world.with(2), std::vector{Request::gets("table2:jobs")});
      return remove_created(world.memory, gets,
                            [](std::size_t, const Reply& found) { return found.value == "mine"; });
    };
  };
  for (const std::size_t other : {1U, 3U}) {
    GuardWorld world;
    const auto theirs = [&] {
      const std::string key = other == 1 ? "table:jobs" : "table3:jobs";
      for (const std::size_t server : copy_servers(world.with(other), key))
        world.memory.execute(Request::add(key, "theirs", Exptime::never()).on(server));
    };
    CHECK(create_in_two(world, theirs, undo(world)) == ErrorCode::bad_data);
    for (const auto& [place, value] : world.bytes()) CHECK(value == "theirs");
  }
  GuardWorld alone;
  CHECK(create_in_two(
            alone, [] {}, nothing_to_undo) == ErrorCode());
  GuardWorld changed;
  const auto theirs = [&] { changed.memory.execute(Request::add("table:jobs", "x", Exptime::never())); };
  CHECK(create_in_two(changed, theirs, [] { return false; }) == ErrorCode::unknown_outcome);
  for (std::size_t server = 0; server < 5; ++server) {
    GuardWorld cut;
    const bool asked = cut.memory.server_of(Request::get("table:jobs")) == server;
    const auto stop = [&] { cut.memory.stop(server); };
    const ErrorCode code = create_in_two(cut, stop, nothing_to_undo);
    if (asked) CHECK(code == ErrorCode::unknown_outcome);
    GuardWorld dead;
    const auto servers = copy_servers(dead.with(2), "table2:jobs");
    if (std::ranges::find(servers, server) != servers.end()) continue;
    dead.memory.stop(server);
    CHECK(create_in_two(
              dead, [] {}, nothing_to_undo) == ErrorCode());
  }
}

}  // namespace mcds::copy_count_guard_test
