// Shows the progress of a long run on one line of stderr, only if stderr is a terminal and the run takes long
// enough.
//
//   [############............] 51%  512000 lines, 498000/s, 2s left       with a total
//   512000 lines, 498000/s                                                without a total
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tools/cli/child.hpp"

namespace mcds {

class Session;

// Erases the line before other text is written to the terminal. The next step of the run draws it again.
void hide_progress();

class Progress {
 public:
  // `unit` names what is counted. `total` is the expected end of `done`, which may count something else.
  Progress(Clock& clock, std::string unit, std::optional<std::uint64_t> total = std::nullopt);
  ~Progress() { hide_progress(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Adds `count`. `done` is the finished part of the total, if any. Cheap if stderr is not a terminal.
  void advance(std::uint64_t count = 1, std::uint64_t done = 0);
  // Sets the count.
  void reach(std::uint64_t count, std::uint64_t done = 0) { advance(count - count_, done); }
  void expect(std::uint64_t total) { total_ = total; }

  // Returns the text of the line for these values.
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

// Shows one line on a terminal's stderr while a command takes over a second: `waiting for the lock, 12s`.
class Waiting {
 public:
  // `what` describes the wait. It is shown until this object ends.
  Waiting(Session& session, std::string what);
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  Session& session_;
};

// Waits for a time in pieces, which a signal or a closed output ends. If it is more than a second and stderr
// is a terminal, one line shows how much is left: `measuring, 7 s left`.
class Countdown {
 public:
  Countdown(Session& session, Duration length, Pause::Signals signals);
  ~Countdown() { hide_progress(); }
  Countdown(const Countdown&) = delete;
  Countdown& operator=(const Countdown&) = delete;

  // Waits for a part of the time. Returns false when it is time to end.
  bool wait(Duration duration);

 private:
  const Clock& clock_;
  SteadyTime end_;
  bool enabled_;
  Pause pause_;
  std::chrono::seconds left_{-1};  // value shown last
};

}  // namespace mcds
