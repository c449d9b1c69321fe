// One line on stderr with the progress of a long run; only if stderr is a terminal and the run takes long
// enough.
//
//   [############............] 51%  512000 lines, 498000/s, 2s left       with a total
//   512000 lines, 498000/s                                       without one
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/base/clock.hpp"

namespace mcds {

// Removes the line before anything else is written to the terminal; the next step of the run draws it again.
void hide_progress();

class Progress {
 public:
  // `unit` is what is counted; `total` what it will amount to, in a measure of its own (bytes, elements).
  Progress(Clock& clock, std::string unit, std::optional<std::uint64_t> total = std::nullopt);
  ~Progress() { hide_progress(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `done` of the total, if there is one. Cheap where stderr is not a terminal.
  void advance(std::uint64_t count = 1, std::uint64_t done = 0);
  // So many in all.
  void reach(std::uint64_t count, std::uint64_t done = 0) { advance(count - count_, done); }
  void expect(std::uint64_t total) { total_ = total; }

  // The line's text for these figures.
  static std::string line(const std::string& unit, std::uint64_t count, std::uint64_t done,
                          std::optional<std::uint64_t> total, Duration elapsed);

 private:
  Clock& clock_;
  std::string unit_;
  std::optional<std::uint64_t> total_;
  bool enabled_;
  std::uint64_t count_ = 0;
  SteadyTime started_;
  SteadyTime next_draw_;
};

// One line on stderr for a wait of more than a second, if stderr is a terminal: `measuring, 7 s left`.
class Countdown {
 public:
  Countdown(const Clock& clock, Duration length);
  ~Countdown() { hide_progress(); }
  Countdown(const Countdown&) = delete;
  Countdown& operator=(const Countdown&) = delete;

  // Waits for so long as `wait` does, which is called at least once and a second at a time. Returns false as
  // soon as it does.
  bool wait(Duration duration, const std::function<bool(Duration)>& wait);

 private:
  const Clock& clock_;
  SteadyTime end_;
  bool enabled_;
  std::chrono::seconds left_{-1};  // shown last
};

}  // namespace mcds
