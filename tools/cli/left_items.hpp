// What a move or a prune leaves: the progress line, and a line of output for each of the first items, or for
// all.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/operations/move/move.hpp"
#include "tools/cli/progress.hpp"
#include "tools/cli/session.hpp"

namespace mcds {

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
    progress_.hide();
    print_(item);
  }

  Session& session_;
  Progress progress_;
  bool all_;
  Print print_;
  std::uint64_t count_ = 0;
};

}  // namespace mcds
