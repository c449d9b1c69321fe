#include "tools/cli/progress.hpp"

#include <unistd.h>

#include "common/base/units.hpp"
#include "tools/cli/session.hpp"

namespace mcds {

namespace {

constexpr auto first_after = std::chrono::milliseconds(500);
constexpr auto redraw_every = std::chrono::milliseconds(100);
constexpr std::uint64_t bar_width = 24;

bool progress_is_shown = false;

void show_progress(const std::string& line) {
  const std::string text = '\r' + line + "\033[K";
  // If the terminal fails, the error cannot be reported.
  progress_is_shown = write(STDERR_FILENO, text.data(), text.size()) > 0;
}

}  // namespace

void hide_progress() {
  if (!progress_is_shown) return;
  show_progress("");
  progress_is_shown = false;
}

Progress::Progress(Clock& clock, std::string unit, std::optional<std::uint64_t> total)
    : clock_(clock),
      unit_(std::move(unit)),
      total_(total),
      enabled_(isatty(STDERR_FILENO) != 0),
      started_(clock.steady()),
      next_draw_(started_ + first_after) {}

void Progress::advance(std::uint64_t count, std::uint64_t done) {
  count_ += count;
  if (!enabled_) return;
  const SteadyTime now = clock_.steady();
  if (now < next_draw_) return;
  next_draw_ = now + redraw_every;
  show_progress(line(unit_, count_, done, total_, now - started_));
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
  // Less than one percent is too little for an estimate.
  if (total && done >= *total / 100 && done > 0 && done < *total && seconds >= 1) {
    const double left = seconds * static_cast<double>(*total - done) / static_cast<double>(done);
    text += ", " + format_duration(std::chrono::seconds(static_cast<std::int64_t>(left) + 1)) + " left";
  }
  return text;
}

Waiting::Waiting(Session& session, std::string what) : session_(session) {
  if (isatty(STDERR_FILENO) == 0) return;
  const SteadyTime start = session.clock().steady();
  session.observe([what = std::move(what), start, shown = std::chrono::seconds(0)](SteadyTime now) mutable {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(now - start);
    if (std::exchange(shown, seconds) == seconds) return;
    show_progress(what + ", " + format_duration(seconds));
  });
}

Waiting::~Waiting() {
  session_.observe({});
  hide_progress();
}

Countdown::Countdown(Session& session, Duration length, Pause::Signals signals)
    : clock_(session.clock()),
      end_(clock_.steady() + length),
      enabled_(length > std::chrono::seconds(1) && isatty(STDERR_FILENO) != 0),
      pause_(session, signals) {}

bool Countdown::wait(Duration duration) {
  if (!enabled_) return pause_.wait(duration);
  const SteadyTime until = clock_.steady() + duration;
  SteadyTime now = until - duration;
  do {
    const auto left =
        std::chrono::ceil<std::chrono::seconds>(std::max<Duration>(end_ - now, Duration::zero()));
    if (std::exchange(left_, left) != left)
      show_progress("measuring, " + std::to_string(left.count()) + " s left");
    if (!pause_.wait(std::min<Duration>(until - now, std::chrono::seconds(1)))) return false;
    now = clock_.steady();
  } while (now < until);
  return true;
}

}  // namespace mcds
