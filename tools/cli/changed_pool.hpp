// The second pool of ring diff and ring move. Settings that are not given for it are those of the session.
#pragma once

#include "common/operations/move/move.hpp"
#include "tools/cli/progress.hpp"
#include "tools/cli/session.hpp"

namespace mcds {

class Verb;

struct ChangedPool {
  std::optional<std::string> to, to_servers_from, to_pool, as_to;

  // Throws InvalidInput if nothing changes, or if the pool is named twice.
  void check() const;
};

// Declares the options of the second pool.
void declare_changed_pool(Verb& verb, ChangedPool& pool);

class ChangedSession {
 public:
  ChangedSession(Session& session, const ChangedPool& pool);
  const std::shared_ptr<const Placement>& placement() const { return placement_; }
  // Returns new connections to the second pool.
  std::unique_ptr<Cluster> connect() { return other_.connect_to(placement_); }

 private:
  Session other_;
  std::shared_ptr<const Placement> placement_;
};

// The items that a move or a prune leaves: the progress line, and an output line for the first or all items.

// The number of lines that are printed without --list.
constexpr std::uint64_t shown_lines = 20;

class LeftItems {
 public:
  using Print = std::function<void(const KeptItem&)>;
  // `unit` and `total` are those of the progress line. `all`: print every item (--list), not only the first
  // 20.
  LeftItems(Session& session, std::string unit, std::uint64_t total, bool all, Print print)
      : session_(session),
        progress_(session.clock(), std::move(unit), total),
        all_(all),
        print_(std::move(print)) {}

  // Returns callbacks valid as long as this object. They throw Failure(try_again) when the run is over.
  Move::Watch watch() {
    return {[this](const KeptItem& item) { take(item); },
            [this](std::uint64_t done) {
              progress_.reach(done, done);
              session_.expect_time();
            }};
  }
  std::uint64_t count() const { return count_; }

 private:
  void take(const KeptItem& item) {
    if (++count_ > shown_lines && !all_) return;
    print_(item);
  }

  Session& session_;
  Progress progress_;
  bool all_;
  Print print_;
  std::uint64_t count_ = 0;
};

}  // namespace mcds
