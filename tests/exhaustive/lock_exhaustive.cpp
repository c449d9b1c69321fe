// Locks: never two leases before their deadlines, and fences that grow from holder to holder.
#include "common/structures/lock/lock.hpp"
#include "tests/exhaustive/pairs.hpp"
#include "tests/exhaustive/tenures.hpp"
#include "tests/support/cluster_doubles.hpp"
#include "tests/support/mistakes.hpp"

namespace mcds::lock_exhaustive {

namespace {

using namespace std::chrono_literals;

constexpr Duration ttl = 1s;
// Longer than a lease plus the extra lifetime of its key.
constexpr Duration lapse = 4s;
// For locks with copies: a server votes only after it has run for this long.
constexpr Duration max_ttl = 2s;
constexpr Duration old_enough = 10s;

// Tenures: a client holds the lock from the answer until it began to release it, or until its deadline.
using exhaustive::Tenures;

std::optional<std::string> violation_of_holders(const Tenures& tenures) {
  return tenures.two_at_a_time() ? std::optional<std::string>("two holders") : std::nullopt;
}

std::optional<std::string> violation(const Tenures& tenures, bool exclusive) {
  if (exclusive && tenures.two_at_a_time()) return "two holders";
  if (exclusive ? !tenures.fences_grow() : !tenures.fences_grow_apart(1s)) return "the fence did not grow";
  return std::nullopt;
}

// Runs one client's operations on the lock, as letters: a acquire, w acquire waiting, r renew, t renew by
// token, f release, F release by token, x release by force.
class Holder {
 public:
  Holder(const Context& context, ExploredClient& client, Tenures& tenures)
      : lock_(context, "l", max_ttl), client_(client), tenures_(tenures) {}

  void live(const std::string& letters) {
    for (const char letter : letters) act(letter);
  }

 private:
  void act(char letter) {
    switch (letter) {
      case 'a': return acquire(0s);
      case 'w': return acquire(150ms);
      case 'r':
      case 't': return renew(letter == 't');
      case 'x':
        client_.operation("force", [&] { return reported(lock_.force_release().result); });
        // A holder whose lock is released by force learns this only at its next renewal.
        tenures_.end_all(client_.begun());
        return;
      default: return release(letter == 'F');
    }
  }

  static std::string reported(Lock::Freed::Result result) {
    return result == Lock::Freed::Result::released ? "released" : "not released";
  }

  void claim(std::uint64_t fence) { tenures_.begin(client_, lease_->deadline - client_.steady(), fence); }

  void acquire(Duration wait) {
    lease_.reset();
    client_.operation("acquire", [&]() -> std::string {
      lease_ = lock_.acquire({.ttl = ttl, .holder = {}, .fence = true, .wait = wait}).lease;
      if (!lease_) return "busy";
      claim(*lease_->fence);
      return "acquired, fence " + std::to_string(*lease_->fence);
    });
  }

  void renew(bool by_token) {
    if (!lease_) return;
    client_.operation("renew", [&]() -> std::string {
      Lock::Renewal renewal{};
      if (by_token) {
        auto reported = lock_.renew(lease_->token, ttl);
        renewal = reported.renewal;
        if (renewal == Lock::Renewal::renewed) lease_->deadline = reported.lease.deadline;
      } else {
        renewal = lock_.renew(*lease_, ttl);
      }
      if (renewal != Lock::Renewal::renewed) return "lost";
      claim(*lease_->fence);
      return "renewed, fence " + std::to_string(*lease_->fence);
    });
  }

  void release(bool by_token) {
    if (!lease_) return;
    // Ends the tenure even if the client dies meanwhile.
    struct End {
      Holder& holder;
      ~End() { holder.tenures_.end(holder.client_, holder.client_.begun()); }
    } const end{*this};
    client_.operation("release", [&] {
      return reported((by_token ? lock_.release(lease_->token) : lock_.release(*lease_)).result);
    });
  }

  Lock lock_;
  ExploredClient& client_;
  Tenures& tenures_;
  std::optional<Lease> lease_;
};

struct Setting {
  test::Spoiled::Spoil spoil = nullptr;
  bool exclusive = true;
  std::size_t copies = 1;
  bool held = false;  // with several copies: by another client, which did not reach the last server
  std::vector<std::size_t> numbers = {};  // the clients' copy counts, where they differ
};

Scenario incarnations(std::vector<std::string> letters, Setting setting = {}) {
  return [letters = std::move(letters), setting](Exploration& run) {
    auto tenures = std::make_shared<Tenures>();
    if (setting.copies > 1) {
      // The servers record that they may vote.
      run.time().advance(old_enough);
      Lock before(exhaustive::in_copies(run.observer(), setting.copies), "before", max_ttl);
      before.release(*before.acquire({.ttl = ttl, .holder = {}}).lease);
    }
    if (setting.held) {
      Lock(exhaustive::in_copies(run.observer(), setting.copies), "l", max_ttl)
          .acquire({.ttl = max_ttl, .holder = {}});
      run.servers()
          .server(copy_servers(run.servers().placement(), setting.copies, "lock:l").back())
          .evict("lock:l");
    }
    for (const std::string& incarnation : letters) {
      run.client([&incarnation, tenures, &setting](Context& honest, ExploredClient& client) {
        test::Spoiled spoiled(honest.cluster, setting.spoil);
        const std::size_t copies = setting.numbers.empty()
                                       ? setting.copies
                                       : setting.numbers[client.index() % setting.numbers.size()];
        Context context{spoiled, honest.clock, honest.random, honest.key_prefix, copies};
        Holder(context, client, *tenures).live(incarnation);
      });
    }
    run.check([tenures, &setting](Context&) -> std::optional<std::string> {
      if (setting.held && tenures->any()) return "two holders";
      // Each copy count has fences of its own.
      if (!setting.numbers.empty()) return violation_of_holders(*tenures);
      return violation(*tenures, setting.exclusive);
    });
  };
}

// Breaks the rule about uptimes.
void believe_every_server(Request& request) {
  if (request.op == Op::add && request.key.starts_with("lockserver:")) request.value[1] = '1';
}

// Returns a server whose clock ticks just before the clients' second ends.
MemoryServerOptions ticking_late() {
  return {.tick_phase = 999ms};
}

}  // namespace

TEST_CASE("exhaustive lock: acquire, renew, release against each other") {
  using exhaustive::holds;
  const Bounds bounds{.faults = 1, .pauses = {lapse}, .max_pauses = 1};
  holds("lock: acquire release | acquire release", incarnations({"af", "af"}), bounds);
  holds("lock: acquire renew release | acquire release", incarnations({"arf", "af"}), bounds);
  holds("lock: acquire | acquire renew by token", incarnations({"a", "at"}), bounds);
  holds("lock: acquire release by token | acquire renew", incarnations({"aF", "ar"}), bounds);
  holds("lock: acquire waiting | acquire release", incarnations({"wf", "af"}), {.faults = 1});
  holds("lock: force | acquire renew release", incarnations({"x", "arf"}), bounds);
}

TEST_CASE("exhaustive lock: three clients") {
  using exhaustive::holds_in_full;
  for (const std::vector<std::string>& three :
       {std::vector<std::string>{"a", "a", "a"}, {"af", "af", "a"}, {"ar", "a", "a"}, {"aF", "at", "a"}}) {
    const std::string name = "lock: " + three[0] + " | " + three[1] + " | " + three[2];
    holds_in_full(name, incarnations(three), {.faults = 1});
    holds_in_full(name + ", a lapse anywhere", incarnations(three), {.pauses = {lapse}, .max_pauses = 1});
  }
}

TEST_CASE("exhaustive lock: a lease that lapsed, between two others") {
  using exhaustive::holds;
  // The request arrives long after its client got another answer.
  Bounds delayed{.faults = 1, .kinds = Happenings::none(), .pauses = {lapse}, .max_pauses = 2};
  delayed.kinds.delayed = true;
  holds("lock: acquire renew | acquire, twice a lapse", incarnations({"ar", "a"}), delayed);
  holds("lock: acquire renew by token | acquire, twice a lapse", incarnations({"at", "a"}), delayed);
  holds("lock: acquire renew release | acquire release, standing still", incarnations({"atF", "af"}),
        {.pauses = {lapse}, .max_pauses = 2, .stalls = true});
  holds("lock: acquire release | acquire, around the deadline and the tick", incarnations({"af", "a"}),
        {.pauses = {1ms, 998ms, 1s}, .max_pauses = 3, .server = ticking_late()});
}

// Two clients may then hold it. The fence distinguishes them if a second lies between.
TEST_CASE("exhaustive lock: fences grow although data is lost") {
  using exhaustive::holds;
  Bounds losing{.faults = 1, .kinds = Happenings::none(), .pauses = {lapse}, .max_pauses = 1};
  losing.kinds.evictions = losing.kinds.restarts = true;
  holds("lock, data lost: acquire release | acquire release",
        incarnations({"af", "af"}, {.exclusive = false}), losing);
  holds("lock, data lost: acquire renew | acquire", incarnations({"ar", "a"}, {.exclusive = false}), losing);
}

// A client that loses a vote releases its copies and retries, up to eight times, after a back-off.
TEST_CASE("exhaustive lock: two copies") {
  using exhaustive::holds;
  const auto pair = [](const std::string& one, const std::string& other, int faults, int hasty) {
    holds("lock, 2 copies: " + one + " | " + other, incarnations({one, other}, {.copies = 2}),
          {.faults = faults, .hasty_attempts = hasty, .servers = 2});
  };
  pair("a", "a", 1, 0);
  pair("a", "x", 1, 0);
  pair("af", "a", 1, 0);
  pair("ar", "a", 1, 0);
  for (const char* one : {"a", "af", "ar", "aF", "at"}) pair(one, "a", 0, 1);
  // A server that restarts after its vote, and then gets another request for the lock, has lost the holder.
  Bounds restarting{.faults = 1, .kinds = Happenings::none(), .servers = 3};
  restarting.kinds.restarts = true;
  for (const char* one : {"a", "aa", "w"})
    holds(std::string("lock, 3 copies, held on two, a server restarts: ") + one,
          incarnations({one}, {.copies = 3, .held = true}), restarting, 0);  // with two, no majority knows it
}

// A client that finds a holder with another copy count is refused. No cut hides the holder here (lock.hpp).
TEST_CASE("exhaustive lock: two clients that give different numbers of copies") {
  for (const std::vector<std::size_t>& numbers :
       std::vector<std::vector<std::size_t>>{{1, 2}, {1, 3}, {2, 3}}) {
    for (const std::vector<std::string>& both :
         std::vector<std::vector<std::string>>{{"a", "a"}, {"af", "a"}, {"ar", "af"}}) {
      exhaustive::holds("lock, " + std::to_string(numbers[0]) + " and " + std::to_string(numbers[1]) +
                            " copies: " + both[0] + " | " + both[1],
                        incarnations(both, {.copies = 3, .numbers = numbers}),
                        {.hasty_attempts = 0, .servers = 3}, 0);
    }
  }
}

TEST_CASE("exhaustive lock: caught when broken") {
  using exhaustive::caught;
  const Bounds two_lapses{.pauses = {lapse}, .max_pauses = 2, .stalls = true};
  caught("lock, broken: the key expires with the ttl",
         incarnations({"a", "a"}, {.spoil = test::expire_with_the_ttl}),
         {.pauses = {1ms, 998ms}, .max_pauses = 2, .server = ticking_late()});
  Bounds restarting{.faults = 1, .kinds = Happenings::none()};
  restarting.kinds.restarts = true;
  caught("lock, one copy, on a server that restarts", incarnations({"a", "a"}), restarting);
  Bounds twice = restarting;
  twice.faults = twice.servers = 2;
  twice.hasty_attempts = 0;
  caught("lock, 2 copies, broken: servers vote that may have forgotten",
         incarnations({"a", "a"}, {.spoil = believe_every_server, .copies = 2}), twice);
  caught("lock, broken: release without comparing",
         incarnations({"aF", "a", "a"}, {.spoil = test::release_without_comparing}), two_lapses);
  caught("lock, broken: renew without comparing",
         incarnations({"at", "a"}, {.spoil = test::renew_without_comparing}), two_lapses);
}

}  // namespace mcds::lock_exhaustive
