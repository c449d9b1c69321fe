// The other side of ring diff and ring move: what is not said of it stays as it is.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tools/cli/session.hpp"

namespace mcds {

class Verb;

struct ChangedPool {
  std::optional<std::string> to, to_servers_from, to_pool, as_to;

  // Throws InvalidInput when nothing changes, or the pool is said twice.
  void check() const;
};

// Their options.
void declare_changed_pool(Verb& verb, ChangedPool& pool);

class ChangedSession {
 public:
  ChangedSession(Session& session, const ChangedPool& pool);
  const std::shared_ptr<const Placement>& placement() const { return placement_; }
  // Connections as the other pool wants them.
  std::unique_ptr<Cluster> connect() { return other_.connect_to(placement_); }

 private:
  Session other_;
  std::shared_ptr<const Placement> placement_;
};

}  // namespace mcds
