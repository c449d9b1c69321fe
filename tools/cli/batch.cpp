#include "tools/cli/batch.hpp"

#include <unistd.h>

#include "common/base/bytes.hpp"
#include "tools/cli/where_keys.hpp"

namespace mcds {

ExitStatus for_names(Session& session, const std::vector<std::string>& names, const CheckName& check,
                     const AnswerNames& answer) {
  Batch<std::string> batch;
  batch.parse = [&](std::string line) -> std::optional<std::string> {
    if (line.empty()) return std::nullopt;
    check(line);
    return line;
  };
  batch.run = answer;
  batch.max_items = 2048;
  if (names == std::vector<std::string>{"-"}) return batch.of_lines(session, {}).worst;
  if (std::ranges::find(names, "-") != names.end())
    throw InvalidInput("- reads all names from standard input; give no other names");
  return batch.of_words(session, names, names);
}

ExitStatus where_names(Session& session, const std::vector<std::string>& names, const KeysOfName& keys_of) {
  return for_names(session, names, keys_of, [&](const Window<std::string>& window) {
    for (std::size_t i = 0; i < window.items.size(); ++i)
      window.done(i, print_where(session, keys_of(window.items[i])));
  });
}

NamedNumber name_and_number(std::string line, std::uint64_t otherwise, const char* form) {
  const std::size_t end = line.find_first_of(" \t");
  if (end == std::string::npos) return {std::move(line), otherwise};
  const std::size_t begin = std::min(line.find_first_not_of(" \t", end), line.size());
  const auto number = parse_u64(std::string_view(line).substr(begin));
  if (!number)
    throw Failure(ErrorCode::bad_data,
                  std::string("the text after the name is not a whole number; write ") + form);
  line.resize(end);
  return {std::move(line), *number};
}

BatchLines::BatchLines(Session& session, LineOptions options)
    : session_(session),
      options_(std::move(options)),
      lines_(options_.file, session.options().null ? '\0' : '\n'),
      started_(session.clock().steady()) {
  session.hold_for_unhealthy();
  session.end_by_signals();
  const bool shown = options_.answers_each && isatty(STDOUT_FILENO) != 0;
  if (!shown) progress_.emplace(session.clock(), "lines", lines_.size());
}

LinesDone BatchLines::each(const std::function<void(std::string&&)>& take,
                           const std::function<void()>& send) {
  session_.output().batched(true);
  try {
    read(take, send);
  } catch (const Failure& failure) {
    if (failure.code() != ErrorCode::output_failed) finish(send);
    if (failure.code() != ErrorCode::try_again) throw;  // the deadline, while input was read
    session_.output().error(failure);
    session_.note_unfinished();
    note(ExitStatus::try_again);
    return {worst_, lines_.number(), failed_};
  }
  finish(send);
  return {worst_, lines_.number(), failed_};
}

void BatchLines::read(const std::function<void(std::string&&)>& take, const std::function<void()>& send) {
  std::uint64_t bytes = 0;
  for (bool reading = true;; reading = true) {
    try {
      auto line = lines_.next();
      if (!line) return;
      bytes += line->size() + 1;
      reading = false;
      take(std::move(*line));
    } catch (const Failure& failure) {
      // A failure of the input itself ends the batch, unless only one line is bad.
      if (reading && failure.code() != ErrorCode::bad_data) throw;
      if (failure.code() == ErrorCode::usage || failure.code() == ErrorCode::output_failed) throw;
      fail(failure, lines_.number());
    }
    if (progress_) progress_->advance(1, bytes);
    if (!lines_.ready()) {
      send();
      pause();
    }
    if (options_.all_or_none && worst_ > ExitStatus::no) return;
  }
}

// Shows the results so far before more input is waited for.
void BatchLines::pause() {
  if (session_.output().drain()) answered_.clear();
  if (failed_ == 0) return;
  session_.output().report_new_errors();
}

void BatchLines::finish(const std::function<void()>& send) {
  send();
  if (!session_.output().drain()) {
    session_.output().give_up();
    forget_written();
    for (const auto& [line, end] : answered_) fail(session_.output().unread(), line);
  }
  session_.output().batched(false);
  session_.output().report_errors();
  if (isatty(STDERR_FILENO) != 0) session_.output().note(summary());
}

std::string BatchLines::summary() const {
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

void BatchLines::fail(const Failure& failure, std::size_t line) {
  if (failure.code() == ErrorCode::usage)  // of a line, not of the command
    return fail(Failure(ErrorCode::bad_data, failure.what(), failure.server()), line);
  session_.output().failed_lines(failure, line);
  ++failed_;
  // Items that were not sent in time are to be retried; items that may have been applied are not.
  const bool over = session_.is_too_late();
  if (over) session_.note_unfinished();
  const bool late = failure.code() == ErrorCode::unavailable && over;
  note(late ? ExitStatus::try_again : status_of(failure.code()));
}

}  // namespace mcds
