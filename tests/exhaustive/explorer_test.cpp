// Tests the explorer: its reduction loses nothing, every kind of fault occurs, violations are reported.
#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>

#include "common/base/bytes.hpp"
#include "common/primitives/cas_update.hpp"
#include "tests/support/exploration.hpp"

namespace mcds::explorer_test {

namespace {

using namespace std::chrono_literals;

// Each client's requests, one batch per operation. The replies are the operations' results.
using Program = std::vector<std::vector<Request>>;

Scenario programs(std::vector<Program> clients) {
  return [clients = std::move(clients)](Trial& run) {
    for (const Program& program : clients) {
      run.client([&program](Context& context, Actor& client) {
        for (const auto& batch : program) {
          client.operation("batch", [&] {
            std::string reported;
            for (const Reply& reply : context.cluster.execute(batch))
              reported +=
                  std::string(name_of(reply.outcome)) + reply.value + std::to_string(reply.number) + ' ';
            return reported;
          });
        }
      });
    }
  };
}

Request set(const char* key, const char* value) {
  return Request::set(key, value, Exptime::never());
}

// Returns requests of which some fit into no item: appends, and a set that then removes the item.
std::pair<Scenario, Bounds> too_large_for_items() {
  const auto append = [](std::size_t size) { return Request::append("a", std::string(size, 'x')); };
  Bounds bounds{.faults = 1};
  bounds.server.item_size = 150;
  return {programs({{{append(200), append(40), append(200), append(20)}, {Request::get("a")}},
                    {{set("a", "1")}, {Request::set("a", std::string(200, 'y'), Exptime::never())}}}),
          bounds};
}

std::vector<std::pair<Scenario, Bounds>> small_cases() {
  const auto incr = Request::incr_or_create("n", 1, 1, Exptime::never());
  const auto add = Request::add("l", "a", Exptime::after(1s, WallTime{}));
  return {
      {programs({{{set("a", "1")}, {Request::get("b")}}, {{set("b", "2")}, {Request::get("a")}}}), {}},
      {programs({{{incr}, {incr}}, {{incr}, {Request::get("n")}}}), {}},
      {programs({{{incr}}, {{incr}}, {{Request::get("n")}}}), {.faults = 1}},
      {programs({{{set("a", "1"), set("b", "1")}}, {{Request::get("b"), Request::get("a")}}}), {.faults = 1}},
      {programs({{{set("a", "1"), set("b", "1"), set("c", "1")}}, {{Request::get("c"), Request::get("a")}}}),
       {.faults = 1, .servers = 2}},
      {programs({{{add}}, {{add}}, {{Request::remove("l")}}}), {.pauses = {2s}, .max_pauses = 1}},
      {programs({{{add}, {Request::get("m")}}, {{set("m", "1")}, {add}}}),
       {.faults = 1, .pauses = {2s, 4s}, .max_pauses = 1}},
      {programs({{{set("a", "1")}, {set("b", "2")}}, {{Request::get("a"), Request::get("b")}}}),
       {.faults = 1, .kinds = {.evictions = true, .restarts = true}, .servers = 2}},
      {programs({{{set("a", "1")}, {set("b", "1")}}, {{set("b", "2"), set("a", "2")}}}), {.faults = 2}},
      too_large_for_items(),
  };
}

Request some_request(Random& random) {
  const std::string key(1, static_cast<char>('a' + random.below(3)));
  switch (random.below(7)) {
    case 0: return Request::set(key, std::to_string(random.below(9)), Exptime::never());
    case 1: return Request::add(key, std::to_string(random.below(9)), Exptime::after(1s, WallTime{}));
    case 2: return Request::remove(key);
    case 3: return Request::append_or_create(key, "1", "2", Exptime::never());
    case 4: return Request::incr_or_create(key, 1, 1, Exptime::never());
    default: return Request::get(key);
  }
}

// Returns two or three clients with some batches each, and a few possible faults.
std::pair<Scenario, Bounds> some_case(Random& random) {
  std::vector<Program> clients(2 + random.below(2));
  std::size_t left = clients.size() == 2 ? 6 : 5;
  for (std::size_t i = 0; left != 0; ++i, --left) {
    Program& program = clients[i % clients.size()];
    if (program.empty() || random.below(2) == 0) program.emplace_back();
    program.back().push_back(some_request(random));
  }
  Bounds bounds{.servers = 1 + random.below(2)};
  bounds.faults = static_cast<int>(random.below(2));
  bounds.kinds.evictions = random.below(3) == 0;
  bounds.kinds.restarts = random.below(3) == 0;
  bounds.pauses = {4s};
  bounds.max_pauses = static_cast<int>(random.below(4) == 0);
  return {programs(std::move(clients)), bounds};
}

struct Compared {
  std::uint64_t all = 0, few = 0;
};

// Explores with and without reduction.
void compare(const Scenario& scenario, Bounds bounds, Compared& sum) {
  bounds.collect_finals = true;
  const Verdict reduced = explore(scenario, bounds);
  bounds.reduced = false;
  bounds.max_schedules = 200'000;
  const Verdict whole = explore(scenario, bounds);
  REQUIRE(reduced.complete);
  if (!whole.complete) return;
  CAPTURE(bounds.faults);
  CAPTURE(bounds.kinds.evictions);
  CAPTURE(bounds.kinds.restarts);
  CAPTURE(bounds.max_pauses);
  CHECK(reduced.finals.size() == whole.finals.size());
  CHECK((reduced.finals == whole.finals));
  sum.all += whole.schedules;
  sum.few += reduced.schedules + reduced.pruned;
}

}  // namespace

TEST_CASE("exhaustive: the reduction reaches every final state and every answer that all runs reach") {
  Compared sum;
  for (const auto& [scenario, bounds] : small_cases()) compare(scenario, bounds, sum);
  SeededRandom random(1);
  for (int i = 0; i < 100; ++i) {
    const auto [scenario, bounds] = some_case(random);
    compare(scenario, bounds, sum);
  }
  MESSAGE(sum.all, " schedules without reduction, ", sum.few, " with it");
  CHECK(sum.few < sum.all);
}

TEST_CASE("exhaustive: who backs off and goes on late does nothing that it could not have done at any time") {
  const auto incrementing = [](Trial& run) {
    for (int i = 0; i < 2; ++i) {
      run.client([](Context& context, Actor& client) {
        client.operation("add one by cas", [&] {
          cas_update(
              context, "n",
              [](const Observed& seen) -> std::optional<Write> {
                return Write{std::to_string(parse_u64(seen.value).value_or(0) + 1)};
              },
              2);
          return "done";
        });
      });
    }
  };
  Bounds bounds{.faults = 1, .collect_finals = true};
  const Verdict all = explore(incrementing, bounds);
  bounds.hasty_attempts = 0;
  const Verdict some = explore(incrementing, bounds);
  REQUIRE(all.complete);
  REQUIRE(some.complete);
  CHECK(some.schedules < all.schedules);
  CHECK(std::includes(all.finals.begin(), all.finals.end(), some.finals.begin(), some.finals.end()));
  MESSAGE(all.finals.size(), " final states, ", some.finals.size(), " of them with patience");
}

TEST_CASE("exhaustive: a counter-example is the shortest one, told step by step") {
  // Faults could cause the violation, but none are needed.
  const auto increment = [](Trial& run) {
    auto acknowledged = std::make_shared<int>(0);
    for (int i = 0; i < 2; ++i) {
      run.client([=](Context& context, Actor& client) {
        client.operation("add one", [&] {
          const Reply found = context.cluster.execute(Request::get("n"));
          const auto value = parse_u64(found.value).value_or(0);
          const auto done =
              context.cluster.execute(Request::set("n", std::to_string(value + 1), Exptime::never()));
          if (!done.failed()) ++*acknowledged;
          return "done";
        });
      });
    }
    run.check([=](Context& observer) -> std::optional<std::string> {
      const auto value = parse_u64(observer.cluster.execute(Request::get("n")).value).value_or(0);
      if (value < static_cast<std::uint64_t>(*acknowledged)) return "an increment is missing";
      return std::nullopt;
    });
  };
  const Verdict verdict = explore(increment, {.faults = 3});
  REQUIRE(verdict.violation);
  CHECK(*verdict.violation == "an increment is missing");
  CHECK(verdict.story == std::vector<std::string>{
                             "client 1 (add one): get n -> miss",
                             "client 2 (add one): get n -> miss",
                             "client 2 (add one): set n \"1\" -> stored",
                             "client 2 (add one) answers: done",
                             "client 1 (add one): set n \"1\" -> stored",
                             "client 1 (add one) answers: done",
                         });
}

TEST_CASE("exhaustive: every kind of fault happens, and time passes") {
  struct Seen {
    bool lost = false, reply_lost = false, delayed = false, unreachable = false, refused = false,
         death = false, expired = false, evicted = false;
  };
  Seen seen;
  const Scenario scenario = [&seen](Trial& run) {
    struct Told {
      std::optional<Reply> set;
      bool returned = false;
      std::string read;
    };
    auto reported = std::make_shared<Told>();
    run.client([=](Context& context, Actor& client) {
      client.operation("set", [&] {
        reported->set = context.cluster.execute(Request::set("k", "v", Exptime::after(1s, client.wall())));
        reported->read = context.cluster.execute(Request::get("k")).value;
        reported->returned = true;
        return "";
      });
    });
    run.check([=, &run, &seen](Context& observer) -> std::optional<std::string> {
      const bool there = observer.cluster.execute(Request::get("k")).outcome == Outcome::hit;
      const bool unknown = reported->set && reported->set->unknown();
      seen.death |= !reported->returned;
      if (!reported->returned) return std::nullopt;
      seen.lost |= unknown && !there && !run.lost_data();
      seen.reply_lost |= unknown && reported->read == "v";
      seen.delayed |= unknown && reported->read.empty() && there;
      seen.unreachable |= reported->set->is(ReplyFailure::Kind::unreachable) && !there;
      seen.refused |= reported->set->is(ReplyFailure::Kind::refused) && !there;
      seen.evicted |= run.lost_data() && !there;
      seen.expired |= !reported->set->failed() && reported->read.empty() && !run.lost_data();
      return std::nullopt;
    });
  };
  Bounds bounds{.faults = 1, .pauses = {3s}, .max_pauses = 1};
  bounds.kinds.evictions = bounds.kinds.restarts = true;
  CHECK(explore(scenario, bounds).complete);
  CHECK(seen.lost);
  CHECK(seen.reply_lost);
  CHECK(seen.delayed);
  CHECK(seen.unreachable);
  CHECK(seen.refused);
  CHECK(seen.death);
  CHECK(seen.evicted);
  CHECK(seen.expired);
}

TEST_CASE("exhaustive: who never ends, and what a client throws, is reported") {
  const auto endless = [](Trial& run) {
    run.client([](Context& context, Actor&) {
      while (true) context.cluster.execute(Request::get("n"));
    });
  };
  CHECK(explore(endless, {}).violation.value_or("").find("spins") != std::string::npos);
  const auto throwing = [](Trial& run) {
    run.client([](Context& context, Actor&) {
      context.cluster.execute(Request::get("n"));
      throw std::logic_error("oops");
    });
  };
  CHECK(explore(throwing, {}).violation == "a client threw: oops");
}

}  // namespace mcds::explorer_test
