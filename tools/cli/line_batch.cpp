#include "tools/cli/line_batch.hpp"

#include <unistd.h>

#include "tools/cli/session.hpp"

namespace mcds {

LineBatch::LineBatch(Session& session, bool fail_fast, Answers answers, const std::string& file)
    : session_(session), fail_fast_(fail_fast), lines_(file) {
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
    }
    if (fail_fast_ && worst_ > ExitStatus::no) return;
  }
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
  if (progress_) progress_->hide();
  session_.output().error(failure, line);
  ++failed_;
  note(status_of(failure.code()));
}

void LineBatch::fail_together(const Failure& failure, std::size_t line, std::size_t count) {
  const std::string others = count == 1 ? "" : " (this line and " + std::to_string(count - 1) + " after it)";
  fail(Failure(failure.code(), failure.what() + others, failure.server()), line);
  failed_ += count - 1;
}

}  // namespace mcds
