// Real servers, killed and restarted empty one at a time under many clients, with a healing read between
// kills.
// MCDS_COPIES_SECONDS sets how many seconds it runs, MCDS_COPIES_CLIENTS how many there are.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <memory>
#include <set>

#include "common/structures/counter/counter.hpp"
#include "common/structures/elements/hash.hpp"
#include "common/structures/lock/lock.hpp"
#include "tests/support/children.hpp"
#include "tests/support/memcached_process.hpp"
#include "tests/support/real_client.hpp"

namespace mcds::copies_test {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t max_clients = 32;
constexpr std::size_t max_rounds = 4096;
constexpr auto max_ttl = 1s;
// What became of one write.
enum class Outcome : std::uint8_t { none, acknowledged, unknown };

struct Record {
  std::atomic<Outcome> field[max_clients][max_rounds];
  std::atomic<std::uint64_t> rounds[max_clients];
  std::atomic<std::uint64_t> exact, exact_unknown, failures;
  std::atomic<std::int64_t> held_until;  // steady nanoseconds
  std::atomic<std::uint64_t> acquired, doubled;
  std::atomic<bool> stop;
};

std::vector<Server> servers_of(const std::vector<std::unique_ptr<test::MemcachedProcess>>& processes) {
  std::vector<Server> servers;
  for (const auto& process : processes) servers.push_back(process->server());
  return servers;
}

struct CopiesClient {
  explicit CopiesClient(const std::vector<Server>& servers)
      : client(test::pool_of(servers), ConnectOptions::Protocol::automatic, 1s),
        context(client.context()),
        locked(context) {
    context.copies = 2;
    locked.copies = 3;
  }
  test::RealClient client;
  Context context;
  Context locked;
};

// Runs a write and says what became of it.
template <typename Write>
Outcome outcome_of(Record& record, Write write) {
  try {
    write();
    return Outcome::acknowledged;
  } catch (const UnknownOutcome&) {
    return Outcome::unknown;
  } catch (const Failure& failure) {
    ++record.failures;
    return failure.code() == ErrorCode::unknown_outcome ? Outcome::unknown : Outcome::none;
  }
}

void take_lock(CopiesClient& client, Record& record) {
  Lock lock(client.locked, "l", max_ttl);
  try {
    auto answer = lock.acquire({.ttl = 500ms, .holder = {}, .fence = true});
    if (!answer.lease) return;
    const Clock& clock = client.context.clock;
    if (record.held_until.exchange(answer.lease->deadline.time_since_epoch().count()) >
        clock.steady().time_since_epoch().count())
      ++record.doubled;
    ++record.acquired;
    client.context.clock.sleep_for(5ms);
    if (clock.steady() < answer.lease->deadline) record.held_until = 0;
    lock.release(*answer.lease);
  } catch (const Failure&) {
    ++record.failures;
  }
}

void run_client(const std::vector<Server>& servers, std::size_t index, Record& record) {
  CopiesClient client(servers);
  Counter counter(client.context);
  Hash hash(client.context, "h");
  for (std::size_t round = 0; round < max_rounds && !record.stop; ++round) {
    const std::string name = std::to_string(index) + '.' + std::to_string(round);
    const Outcome exact = outcome_of(record, [&] { counter.incr("e", 1); });
    if (exact == Outcome::acknowledged) ++record.exact;
    if (exact == Outcome::unknown) ++record.exact_unknown;
    record.field[index][round] = outcome_of(record, [&] {
      const auto result = hash.set(std::vector<Element>{{name, "v" + name}}).front();
      if (result.failure) throw Failure(*result.failure);
    });
    take_lock(client, record);
    ++record.rounds[index];
    client.context.clock.sleep_for(std::chrono::milliseconds(20 + client.context.random.below(40)));
  }
}

struct Found {
  std::set<std::string> fields;
  std::uint64_t exact = 0;
  bool hash_complete = true;
  bool hash_whole = true;  // in every copy
};

// Reads everything, which makes lost copies whole.
Found read_all(CopiesClient& client) {
  Found found;
  const std::vector<std::string> names{"e"};
  const auto readings = Counter(client.context).get(names);
  for (const auto& reading : readings) {
    if (reading.failure) throw Failure(*reading.failure);
  }
  found.exact = readings[0].value;
  Hash hash(client.context, "h");
  const auto listing = hash.fetch([&](Elements::Found& one) {
    if (one.value == "v" + one.name) found.fields.insert(one.name);
  });
  found.hash_complete = listing.complete();
  found.hash_whole = listing.copies_whole;
  return found;
}

void expect_all_answer(CopiesClient& client) {
  for (std::size_t server = 0; server < client.context.cluster.placement().pool().size(); ++server)
    expect_read(client.context.cluster, client.context.cluster.execute(Request::get("x").on(server)));
}

// Until all copies answer. On a busy machine, or right behind a restart, a server may not answer in time: of
// two copies a read then rests on the other alone, makes nothing whole, and calls an element of which neither
// copy answers unreachable, which is not complete though nothing is lost.
Found repair(CopiesClient& client) {
  for (int attempt = 0;; ++attempt) {
    try {
      expect_all_answer(client);
      Found found = read_all(client);
      if (found.hash_whole || attempt == 20) return found;
    } catch (const Failure&) {
      if (attempt == 20) throw;
    }
    client.context.clock.sleep_for(10ms);
  }
}

std::size_t missing(const std::atomic<Outcome> (&outcomes)[max_clients][max_rounds],
                    const std::set<std::string>& found) {
  std::size_t count = 0;
  for (std::size_t client = 0; client < max_clients; ++client) {
    for (std::size_t round = 0; round < max_rounds; ++round) {
      if (outcomes[client][round] == Outcome::acknowledged &&
          !found.contains(std::to_string(client) + '.' + std::to_string(round)))
        ++count;
    }
  }
  return count;
}

// Until every client has met the servers as they are now.
void let_all_notice(const Clock& clock, Record& record, std::size_t clients, CopiesClient& client) {
  std::array<std::uint64_t, max_clients> seen{};
  for (std::size_t i = 0; i < clients; ++i) seen[i] = record.rounds[i];
  const SteadyTime until = clock.steady() + 30s;
  for (std::size_t i = 0; i < clients; ++i) {
    while (record.rounds[i] < seen[i] + 2 && clock.steady() < until) client.context.clock.sleep_for(5ms);
  }
}

}  // namespace

TEST_CASE("copies: servers killed one at a time lose no acknowledged write and double no lock") {
  const std::size_t clients = std::min(test::amount("MCDS_COPIES_CLIENTS", 8), max_clients);
  const auto length = std::chrono::seconds(test::amount("MCDS_COPIES_SECONDS", 3));
  std::vector<std::unique_ptr<test::MemcachedProcess>> processes;
  for (int i = 0; i < 4; ++i) processes.push_back(std::make_unique<test::MemcachedProcess>());
  const auto servers = servers_of(processes);
  test::Shared<Record> record;
  test::Children children;
  for (std::size_t i = 0; i < clients; ++i) children.spawn([&, i] { run_client(servers, i, *record); });
  CopiesClient client(servers);
  const Clock& clock = client.context.clock;
  const SteadyTime end = clock.steady() + length;
  std::size_t kills = 0;
  do {
    // Long enough between kills for servers to be old enough to vote, when there is the time.
    client.context.clock.sleep_for(length > 20s && kills % 2 == 0 ? Duration(9s) : Duration(100ms));
    const std::size_t victim = kills++ % processes.size();
    processes[victim]->kill();
    client.context.clock.sleep_for(std::chrono::milliseconds(client.context.random.below(100)));
    processes[victim]->restart();
    let_all_notice(clock, *record, clients, client);
    repair(client);
  } while (clock.steady() < end);
  record->stop = true;
  CHECK(children.wait_all() == 0);
  const Found found = repair(client);
  const std::size_t fields = missing(record->field, found.fields);
  MESSAGE(kills, " kills; exact ", found.exact, " of ", record->exact.load(), " + ",
          record->exact_unknown.load(), " unknown; fields ", found.fields.size(), " lost ", fields,
          "; locks ", record->acquired.load(), " doubled ", record->doubled.load(), "; not applied ",
          record->failures.load());
  CHECK(found.exact >= record->exact);
  CHECK(found.exact <= record->exact + record->exact_unknown);
  CHECK(fields == 0);
  CHECK(found.hash_complete);
  CHECK(record->doubled == 0);
}

}  // namespace mcds::copies_test
