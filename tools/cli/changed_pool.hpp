// The other side of ring diff and ring move: what is not said of it stays as it is.
#pragma once

#include "common/operations/move/move.hpp"
#include "tools/cli/progress.hpp"
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

// What a move or a prune leaves: the progress line, and a line of output for each of the first items, or for
// all.

// Of what is left, where not all is asked for.
constexpr std::uint64_t shown_lines = 20;

class LeftItems {
 public:
  using Print = std::function<void(const LeftItem&)>;
  // `unit` and `total` are the progress line's. `all`: --list was given; else the first 20 are printed.
  LeftItems(Session& session, std::string unit, std::uint64_t total, bool all, Print print)
      : session_(session),
        progress_(session.clock(), std::move(unit), total),
        all_(all),
        print_(std::move(print)) {}

  // Valid as long as this object. Throws Failure(try_again) between two batches when the run is over.
  Move::Watch watch() {
    return {[this](const LeftItem& item) { take(item); },
            [this](std::uint64_t done) {
              progress_.reach(done, done);
              session_.expect_time();
            }};
  }
  std::uint64_t count() const { return count_; }

 private:
  void take(const LeftItem& item) {
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
