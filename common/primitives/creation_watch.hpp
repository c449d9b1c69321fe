// Notices that something of this client was lost or dropped under its hands, at the cost of no trip.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "common/cluster/decorators.hpp"

namespace mcds {

// A journal, a part of a log or a counter that this client has created or appended to is there until it is
// lost or dropped. So if the server says of a later request that it created it, what was acknowledged before
// is gone. Not judged: counters that expire, fences of locks, and what has several copies, which heal.
class CreationWatch final : public Decorator {
 public:
  // Both outlive it. `key_prefix`: of the structures.
  CreationWatch(Cluster& inner, const std::string& key_prefix) : Decorator(inner), key_prefix_(key_prefix) {}
  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override;
  std::unique_ptr<Pending> begin(std::vector<Request> batch) override;

  // The keys that were created a second time.
  const std::set<std::string>& lost() const { return lost_; }

 private:
  void note(std::span<const Request> batch, std::span<const Reply> replies);
  bool is_counter(const Request& request) const;
  bool is_judged(const Request& request) const;

  // What a batch touches first is remembered, about 4 MB of hashes; beyond that, losses go unnoticed.
  static constexpr std::size_t most_known = 100'000;

  const std::string& key_prefix_;
  std::unordered_set<std::size_t> known_;
  std::set<std::string> lost_;
};

}  // namespace mcds
