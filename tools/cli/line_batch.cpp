#include "tools/cli/line_batch.hpp"

#include <malloc.h>
#include <unistd.h>

#include "tools/cli/session.hpp"

namespace mcds {

namespace {

// Each window takes and frees the same few MiB: given back to the system in between, they come back page by page.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  mallopt(M_TRIM_THRESHOLD, 32 << 20);
}

}  // namespace

LineBatch::LineBatch(Session& session, bool fail_fast, Answers answers, const std::string& file)
    : session_(session),
      fail_fast_(fail_fast),
      lines_(file, session.options().null ? '\0' : '\n'),
      started_(session.clock().steady()) {
  keep_freed_memory();
  session.hold_for_the_sick();
  lines_.stop_at(session.clock(), session.deadline());
  const bool shown = answers == Answers::each_line && isatty(STDOUT_FILENO) != 0;
  if (!shown) progress_.emplace(session.clock(), "lines", lines_.size());
}

ExitStatus LineBatch::run() {
  session_.output().buffered(true);
  try {
    read();
  } catch (const Failure& failure) {
    if (failure.code() != ErrorCode::output_failed) finish();
    throw;
  }
  finish();
  if (progress_) progress_->hide();
  return worst_;
}

void LineBatch::finish() {
  send();
  session_.output().flush();
  session_.output().buffered(false);
  if (progress_) progress_->hide();
  session_.output().tell_errors();
  if (isatty(STDERR_FILENO) != 0) session_.output().note(summary());
}

void LineBatch::read() {
  std::uint64_t bytes = 0;
  while (auto line = lines_.next()) {
    bytes += line->size() + 1;
    take_or_fail(std::move(*line));
    if (progress_) progress_->advance(1, bytes);
    if (!lines_.ready()) {
      send();
      session_.output().flush();
      if (failed_ > 0) {
        if (progress_) progress_->hide();
        session_.output().tell_new_errors();
      }
    }
    if (fail_fast_ && worst_ > ExitStatus::no) return;
  }
}

std::string LineBatch::summary() const {
  const double seconds = std::chrono::duration<double>(session_.clock().steady() - started_).count();
  std::string text = "mcds: " + std::to_string(lines_.number()) + " lines";
  if (failed_ > 0) text += ", " + std::to_string(failed_) + " failed";
  text += ", " + std::to_string(static_cast<std::uint64_t>(seconds * 10) / 10) + '.' +
          std::to_string(static_cast<std::uint64_t>(seconds * 10) % 10) + " s";
  if (seconds > 0) {
    text += ", " +
            std::to_string(static_cast<std::uint64_t>(static_cast<double>(lines_.number()) / seconds)) +
            " lines/s";
  }
  return text;
}

void LineBatch::take_or_fail(std::string line) {
  try {
    take(std::move(line));
  } catch (const Failure& failure) {
    if (failure.code() == ErrorCode::usage || failure.code() == ErrorCode::output_failed) throw;
    fail(failure, lines_.number());
  }
}

void LineBatch::fail(const Failure& failure, std::size_t line) {
  session_.output().failed_lines(failure, line);
  ++failed_;
  note(status_of(failure.code()));
}

void LineBatch::fail_together(const Failure& failure, std::size_t line, std::size_t count) {
  session_.output().failed_lines(failure, line, count);
  failed_ += count;
  note(status_of(failure.code()));
}

}  // namespace mcds
