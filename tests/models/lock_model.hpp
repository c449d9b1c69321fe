// Locks: never more holders than slots before their deadlines, and fences of a slot that grow from holder to
// holder.
#pragma once

#include "common/structures/lock/slots.hpp"
#include "tests/models/tenures.hpp"
#include "tests/support/cluster_doubles.hpp"
#include "tests/support/mistakes.hpp"

namespace mcds::lock_model {

using namespace std::chrono_literals;

constexpr Duration ttl = 1s;
// Tenures: a client holds the lock from the answer until it began to release it, or until its deadline.
using models::Tenures;

struct Setting {
  test::Spoiled::Spoil spoil = nullptr;
  bool exclusive = true;
  std::size_t copies = 1;
  bool held = false;  // with several copies: by another client, which did not reach the last server
  std::vector<std::size_t> numbers = {};  // the clients' copy counts, where they differ
  std::size_t slots = 1;
  bool agreed = true;     // on the number of slots; else clients use fewer
  Duration max_ttl = 2s;  // for locks with copies: a server votes only after five times as long
  bool random = false;    // ttls, and waits of up to six seconds; what acquire took is no part of a tenure

  std::optional<std::string> violation(const Tenures& tenures) const {
    if (held && tenures.any()) return "two holders";
    if (exclusive && tenures.more_at_a_time(slots))
      return slots == 1 ? "two holders" : "more holders than slots";
    // Each copy count has fences of its own.
    if (!numbers.empty()) return std::nullopt;
    if (exclusive ? !tenures.fences_grow() : !tenures.fences_grow_apart(1s)) return "the fence did not grow";
    return std::nullopt;
  }
};

// Runs one client's operations on the lock, as letters: a acquire, w acquire waiting, r renew, t renew by
// token, f release, F release by token, x release by force.
class Holder {
 public:
  Holder(const Context& context, Actor& client, Tenures& tenures, const Setting& setting)
      : setting_(setting),
        random_(context.random),
        slots_(context, "l", setting.agreed ? setting.slots : 1 + context.random.below(setting.slots),
               setting.max_ttl),
        client_(client),
        tenures_(tenures) {
    if (setting.random) ttl_ = 500ms + 1500ms * random_.below(3);
  }

  void live(const std::string& letters) {
    for (const char letter : letters) act(letter);
  }

 private:
  void act(char letter) {
    switch (letter) {
      case 'a': return acquire(0s);
      case 'w': return acquire(setting_.random ? std::chrono::milliseconds(random_.below(6000)) : 150ms);
      case 'r':
      case 't': return renew(letter == 't');
      case 'x':
        client_.operation("force", [&] { return reported(lock().force_release().result); });
        // A holder whose lock is released by force learns this only at its next renewal.
        tenures_.end_all(client_.begun());
        return;
      default: return release(letter == 'F');
    }
  }

  static std::string reported(Lock::Freed::Result result) {
    return result == Lock::Freed::Result::released ? "released" : "not released";
  }

  Lock& lock() { return slots_.at(slot_); }

  void claim(bool renewed) {
    tenures_.begin(client_, lease_->deadline - client_.steady(), *lease_->fence, slot_,
                   setting_.random ? std::optional(asked_) : std::nullopt, renewed);
  }

  void acquire(Duration wait) {
    lease_.reset();
    client_.operation("acquire", [&]() -> std::string {
      asked_ = client_.run().time().elapsed();
      auto answer = slots_.acquire({.ttl = ttl_, .holder = {}, .fence = true, .wait = wait});
      lease_ = answer.lock.lease;
      if (!lease_) return "busy";
      slot_ = answer.slot;
      claim(false);
      return "acquired, fence " + std::to_string(*lease_->fence);
    });
  }

  void renew(bool by_token) {
    if (!lease_) return;
    client_.operation("renew", [&]() -> std::string {
      Lock::Renewal renewal{};
      if (by_token) {
        auto reported = lock().renew(lease_->token, ttl_);
        renewal = reported.renewal;
        if (renewal == Lock::Renewal::renewed) lease_->deadline = reported.lease.deadline;
      } else {
        renewal = lock().renew(*lease_, ttl_);
      }
      if (renewal != Lock::Renewal::renewed) return "lost";
      claim(true);
      return "renewed, fence " + std::to_string(*lease_->fence);
    });
  }

  void release(bool by_token) {
    if (!lease_) return;
    // Ends the tenure even if the client dies meanwhile.
    struct End {
      Holder& holder;
      ~End() { holder.tenures_.end(holder.client_, holder.client_.begun(), holder.slot_); }
    } const end{*this};
    client_.operation("release", [&] {
      return reported((by_token ? lock().release(lease_->token) : lock().release(*lease_)).result);
    });
  }

  const Setting& setting_;
  Random& random_;
  LockSlots slots_;
  Actor& client_;
  Tenures& tenures_;
  Duration ttl_ = ttl;
  Duration asked_{0};
  std::size_t slot_ = 0;
  std::optional<Lease> lease_;
};

inline Scenario incarnations(std::vector<std::string> letters, Setting setting = {}) {
  return [letters = std::move(letters), setting](Trial& run) {
    auto tenures = std::make_shared<Tenures>();
    if (setting.copies > 1) {
      // The servers record that they may vote.
      run.time().advance(5 * setting.max_ttl);
      Lock before(in_copies(run.observer(), setting.copies), "before", setting.max_ttl);
      before.release(*before.acquire({.ttl = ttl, .holder = {}}).lease);
    }
    if (setting.held) {
      Lock(in_copies(run.observer(), setting.copies), "l", setting.max_ttl)
          .acquire({.ttl = setting.max_ttl, .holder = {}});
      run.servers()
          .server(copy_servers(run.servers().placement(), setting.copies, "lock:l").back())
          .evict("lock:l");
    }
    for (const std::string& incarnation : letters) {
      run.client([&incarnation, tenures, &setting](Context& honest, Actor& client) {
        test::Spoiled spoiled(honest.cluster, setting.spoil);
        const std::size_t copies = setting.numbers.empty()
                                       ? setting.copies
                                       : setting.numbers[client.index() % setting.numbers.size()];
        Context context{spoiled, honest.clock, honest.random, honest.key_prefix, copies};
        Holder(context, client, *tenures, setting).live(incarnation);
      });
    }
    run.check(
        [tenures, &setting](Context&) -> std::optional<std::string> { return setting.violation(*tenures); });
  };
}

// Breaks the rule about uptimes.
inline void believe_every_server(Request& request) {
  if (request.op == Op::add && request.key.starts_with("lockserver:")) request.value[1] = '1';
}

}  // namespace mcds::lock_model
