#include "tools/cli/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/base/units.hpp"

namespace mcds {

namespace {

constexpr auto first_after = std::chrono::milliseconds(500);
constexpr auto redraw_every = std::chrono::milliseconds(100);
constexpr std::uint64_t calls_per_look = 1000;
constexpr std::uint64_t bar_width = 24;

void write_terminal(const std::string& text) {
  // If the terminal fails, the error cannot be reported.
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

}  // namespace

Progress::Progress(Clock& clock, std::string unit, std::optional<std::uint64_t> total)
    : clock_(clock),
      unit_(std::move(unit)),
      total_(total),
      enabled_(isatty(STDERR_FILENO) != 0),
      started_(clock.steady()),
      next_draw_(started_ + first_after) {}

void Progress::advance(std::uint64_t count, std::uint64_t done) {
  count_ += count;
  done_ = done;
  if (!enabled_ || count_ < next_look_) return;
  next_look_ = count_ + calls_per_look;
  if (clock_.steady() >= next_draw_) draw();
}

void Progress::hide() {
  if (std::exchange(shown_, false)) write_terminal("\r\033[K");
}

void Progress::draw() {
  const SteadyTime now = clock_.steady();
  next_draw_ = now + redraw_every;
  shown_ = true;
  write_terminal("\r" + line(unit_, count_, done_, total_, now - started_) + "\033[K");
}

std::string Progress::line(const std::string& unit, std::uint64_t count, std::uint64_t done,
                           std::optional<std::uint64_t> total, Duration elapsed) {
  std::string text;
  if (total && *total > 0) {
    const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(*total));
    const auto filled = static_cast<std::size_t>(share * static_cast<double>(bar_width));
    text = '[' + std::string(filled, '#') + std::string(bar_width - filled, '.') + "] ";
    text += std::to_string(static_cast<int>(share * 100)) + "%  ";
  }
  text += std::to_string(count) + ' ' + unit;
  const double seconds = std::chrono::duration<double>(elapsed).count();
  if (seconds > 0) {
    text += ", " + std::to_string(static_cast<std::uint64_t>(static_cast<double>(count) / seconds)) + "/s";
  }
  // From less than one in a hundred nothing can be told.
  if (total && done >= *total / 100 && done > 0 && done < *total && seconds >= 1) {
    const double left = seconds * static_cast<double>(*total - done) / static_cast<double>(done);
    text += ", " + format_duration(std::chrono::seconds(static_cast<std::int64_t>(left) + 1)) + " left";
  }
  return text;
}

Countdown::Countdown(const Clock& clock, Duration length)
    : clock_(clock),
      end_(clock.steady() + length),
      enabled_(length > std::chrono::seconds(1) && isatty(STDERR_FILENO) != 0) {}

Countdown::~Countdown() {
  if (shown_) write_terminal("\r\033[K");
}

bool Countdown::wait(Duration duration, const std::function<bool(Duration)>& wait) {
  if (!enabled_) return wait(duration);
  const SteadyTime until = clock_.steady() + duration;
  for (SteadyTime now = clock_.steady(); now < until; now = clock_.steady()) {
    const auto left =
        std::chrono::ceil<std::chrono::seconds>(std::max<Duration>(end_ - now, Duration::zero()));
    write_terminal("\rmeasuring, " + std::to_string(left.count()) + " s left\033[K");
    shown_ = true;
    if (!wait(std::min<Duration>(until - now, std::chrono::seconds(1)))) return false;
  }
  return true;
}

}  // namespace mcds
