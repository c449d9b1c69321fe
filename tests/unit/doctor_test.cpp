// Checks of the doctor that no real server can be made to show; the others are in tests/doctor.
#include <doctest/doctest.h>

#include "common/operations/doctor/checks.hpp"

namespace mcds::doctor_checks {

using namespace doctor;

namespace {

std::string lines_of(const std::vector<std::pair<std::string, std::string>>& metrics) {
  std::string lines;
  for (const auto& [name, value] : metrics) lines += name + ' ' + value + '\n';
  return lines;
}

// Returns two servers without faults, with ten seconds between the readings.
Examination healthy() {
  Examination seen;
  seen.placement = make_placement("ketama", parse_pool("10.0.0.1,10.0.0.2"), {});
  seen.snapshots.resize(2);
  seen.shares = seen.fair = {0.5, 0.5};
  const WallTime start{std::chrono::seconds(1'800'000'000)};
  for (std::size_t i = 0; i < 2; ++i) {
    ServerSnapshot& snapshot = seen.snapshots[i];
    snapshot.version = "1.6.40";
    for (int at : {0, 10}) {
      Reading& look = at == 0 ? snapshot.before : snapshot.after;
      look.up = look.knows_items = look.knows_slabs = true;
      look.asked = look.answered = start + std::chrono::seconds(at);
      look.at = SteadyTime(std::chrono::seconds(1000 + at));
      const std::string pid = std::to_string(4711 + i);
      look.stats = StatisticsReply(lines_of({{"pid", pid},
                                             {"uptime", std::to_string(90000 + at)},
                                             {"time", std::to_string(1'800'000'000 + at)},
                                             {"limit_maxbytes", "67108864"},
                                             {"curr_items", "10"},
                                             {"hash_power_level", "16"},
                                             {"threads", "4"}}));
      look.settings = StatisticsReply(lines_of({{"maxbytes", "67108864"},
                                                {"maxconns", "1024"},
                                                {"item_size_max", "1048576"},
                                                {"evictions", "on"},
                                                {"udpport", "0"},
                                                {"oldest", "0"}}));
    }
  }
  return seen;
}

std::vector<CheckResult> found(const Examination& seen) {
  return diagnose(seen, [](const Check&) { return true; });
}

const CheckResult* named(const std::vector<CheckResult>& all, std::string_view name) {
  for (const CheckResult& check_result : all) {
    if (name == check_result.check->name) return &check_result;
  }
  return nullptr;
}

void add(Reading& look, const std::string& line) {
  look.stats = StatisticsReply(look.stats.lines() + line + '\n');
}

}  // namespace

TEST_CASE("a healthy pool has no findings, and nothing about it is unknown") {
  CHECK(found(healthy()).empty());
  CHECK(unknowns(healthy(), [](const Check&) { return true; }).empty());
}

TEST_CASE("what counts up between the looks is found, what stood before is told by how long ago it may be") {
  for (const char* name : {"malloc_fails", "response_obj_oom", "read_buf_oom"}) {
    Examination seen = healthy();
    add(seen.snapshots[1].before, std::string(name) + " 3");
    add(seen.snapshots[1].after, std::string(name) + " 5");
    const auto all = found(seen);
    REQUIRE(named(all, "allocation_fails") != nullptr);
    CHECK(named(all, "allocation_fails")->severity == Severity::problem);
    CHECK(named(all, "allocation_fails")->servers == std::vector<std::size_t>{1});
  }
  Examination seen = healthy();
  for (Reading* look : {&seen.snapshots[0].before, &seen.snapshots[0].after})
    add(*look, "listen_disabled_num 9");
  REQUIRE(named(found(seen), "connections_ran_out") != nullptr);
  CHECK(named(found(seen), "connections_ran_out")->severity == Severity::note);  // it may have been a day ago
  add(seen.snapshots[1].before, "ssl_handshake_errors 1");
  add(seen.snapshots[1].after, "ssl_handshake_errors 2");
  CHECK(named(found(seen), "handshakes_fail") != nullptr);
}

TEST_CASE("an advice's command comes after a colon, because the words before it are also shown alone") {
  for (const Check& check : all_checks()) {
    const std::string advice = check.advice, first = advice.substr(0, advice.find("; "));
    std::size_t at = first.size();
    for (const char* program : {"mcds ", "printf ", "openssl ", "ss -", "timedatectl", "--servers-from "})
      at = std::min(at, first.find(program));
    CAPTURE(advice);
    CHECK((at == 0 || at == first.size() || first.substr(0, at).ends_with(": ")));
  }
}

TEST_CASE("names with several addresses, leaked connections and crowded tables") {
  Examination seen = healthy();
  seen.snapshots[0].addresses = {"10.0.0.1", "10.0.0.9"};
  ClientConnections client;
  client.connections = 500, client.idle_for_an_hour = 400;
  seen.snapshots[1].clients = {client};
  seen.snapshots[1].after.stats =
      StatisticsReply("curr_items 400000\n" + seen.snapshots[1].after.stats.lines());
  const auto all = found(seen);
  CHECK(named(all, "several_addresses")->servers == std::vector<std::size_t>{0});
  CHECK(named(all, "idle_connections")->servers == std::vector<std::size_t>{1});
  CHECK(named(all, "hash_crowded")->servers == std::vector<std::size_t>{1});
  CHECK(all.size() == 3);
}

TEST_CASE("items in use that were deleted for a page move count as evicted") {
  Examination seen = healthy();
  for (Reading* look : {&seen.snapshots[1].before, &seen.snapshots[1].after})
    add(*look, "slab_reassign_busy_deletes 3");
  const auto all = found(seen);
  REQUIRE(named(all, "evicted_before") != nullptr);
  CHECK(named(all, "evicted_before")->servers == std::vector<std::size_t>{1});
}

TEST_CASE("evicted_time is sticky: it says something only of classes that evict now") {
  Examination seen = healthy();
  const auto evicts = [&](std::uint64_t before, std::uint64_t now, std::uint64_t idle) {
    for (Reading* look : {&seen.snapshots[0].before, &seen.snapshots[0].after}) {
      look->classes[5]["evicted_time"] = idle;
      look->classes[5]["total_pages"] = 10;
    }
    seen.snapshots[0].before.classes[5]["evicted"] = before;
    seen.snapshots[0].after.classes[5]["evicted"] = now;
    return named(found(seen), "evicts_young") != nullptr;
  };
  CHECK_FALSE(evicts(100, 100, 3));
  CHECK(evicts(100, 160, 3));
  CHECK_FALSE(evicts(100, 160, 86400));
}

TEST_CASE("a server that tells nothing makes no finding but is named as unknown") {
  Examination seen = healthy();
  for (Reading* look : {&seen.snapshots[0].before, &seen.snapshots[0].after})
    look->stats = look->settings = StatisticsReply(), look->knows_items = look->knows_slabs = false;
  CHECK(found(seen).empty());
  const auto unknown = unknowns(seen, [](const Check& check) { return check.needs != Needs::slabs; });
  REQUIRE(unknown.size() == 3);
  CHECK(unknown[0].servers == std::vector<std::size_t>{0});
  CHECK(unknown[1].lacks == Needs::settings);
}

TEST_CASE("another program's version says nothing of memcached's faults") {
  Examination seen = healthy();
  seen.snapshots[0].version = "1.2.0";
  CHECK(named(found(seen), "known_fault") != nullptr);
  seen.snapshots[0].before.stats = seen.snapshots[0].after.stats = StatisticsReply("pid 7\nthreads 4\n");
  CHECK(found(seen).empty());
}

}  // namespace mcds::doctor_checks
