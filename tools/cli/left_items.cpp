#include "tools/cli/left_items.hpp"

#include <utility>

namespace mcds {

namespace {

constexpr std::uint64_t shown_lines = 20;

}  // namespace

LeftItems::LeftItems(Clock& clock, std::string unit, std::uint64_t total, bool all, Print print)
    : progress_(clock, std::move(unit), total), all_(all), print_(std::move(print)) {}

Move::Watch LeftItems::watch() {
  return {[this](const LeftItem& item) { take(item); },
          [this](std::uint64_t done) { progress_.reach(done, done); }};
}

void LeftItems::take(const LeftItem& item) {
  if (++count_ > shown_lines && !all_) return;
  progress_.hide();
  print_(item);
}

}  // namespace mcds
