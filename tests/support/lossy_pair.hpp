// Two servers and a way to them that loses requests and replies, for tests of many processes.
#pragma once

#include <atomic>

#include "tests/support/children.hpp"
#include "tests/support/fault_proxy.hpp"
#include "tests/support/memcached_process.hpp"
#include "tests/support/real_client.hpp"

namespace mcds::test {

constexpr std::size_t processes = 64;

struct LossyPair {
  explicit LossyPair(double probability) {
    for (FaultProxy* proxy : {&first_proxy, &second_proxy})
      proxy->randomly(probability, {Fault::lose_reply, Fault::lose_request, Fault::hang_up});
  }
  Pool lossy() const { return pool_of({first_proxy.server(), second_proxy.server()}); }
  Pool honest() const { return pool_of({first.server(), second.server()}); }
  std::size_t faults() const { return first_proxy.faults() + second_proxy.faults(); }

  // memcached deletes items that are in use for long when it moves a page (slab_reassign_busy_deletes).
  MemcachedProcess first{{"-m", "512", "-o", "slab_automove=0"}};
  MemcachedProcess second{{"-m", "512", "-o", "slab_automove=0"}};
  FaultProxy first_proxy{first.server(), 1}, second_proxy{second.server(), 2};
};

// Counts of the outcomes of all processes' changes.
struct Tally {
  // Makes one change and counts its outcome. Returns true if it was acknowledged.
  template <typename Change>
  bool count(const Change& change) {
    try {
      change();
      return ++acknowledged != 0;
    } catch (const UnknownOutcome&) {
      ++unknown;
    } catch (const Failure&) {
      ++refused;
    }
    return false;
  }

  std::atomic<std::uint64_t> acknowledged, unknown, refused;
};

}  // namespace mcds::test
