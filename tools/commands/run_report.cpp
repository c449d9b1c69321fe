#include "tools/commands/run_report.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace mcds {

namespace {

// Of a path that names a stream this process has.
std::optional<int> own_descriptor(std::string_view path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    const auto number = parse_u64(path.substr(folder.size()));
    if (number && *number < 1'000'000) return static_cast<int>(*number);
  }
  return std::nullopt;
}

const char* word_of(const ChildResult& result) {
  if (result.reason == ChildResult::Reason::ended) return result.signal != 0 ? "signaled" : "exited";
  constexpr std::array words{"", "max_run", "lost", "not_executable", "not_found"};
  return words[static_cast<std::size_t>(result.reason)];
}

}  // namespace

Report::Report(const std::optional<std::string>& path, const char* what)
    : what_(what), path_(path.value_or("")) {
  if (!path) return;
  // A stream of our own is written to where it stands: opened anew, a file behind it would be cut and
  // overwritten.
  const auto own = own_descriptor(*path);
  descriptor_ = Descriptor(own ? fcntl(*own, F_DUPFD_CLOEXEC, 0)
                               : open(path->c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (descriptor_ < 0) fail();
}

ExitStatus Report::write_at_the_end(const JsonObject& object, Output& output, ExitStatus status) {
  const auto failure = attempt([&] { write(object); }).failure();
  if (!failure) return status;
  output.error(*failure);
  return status == ExitStatus::ok ? status_of(failure->code()) : status;
}

void Report::fail() const {
  throw Failure(ErrorCode::cannot_write,
                std::string("cannot write the ") + what_ + ' ' + path_ + ": " + std::strerror(errno));
}

ChildResult run_alone(Session& session, const ChildOptions& child) {
  const Guardian guardian;
  const HeldSignals held;
  const ChildTime its_own(session);
  return run_child(child, session.clock(), guardian, held);
}

ExitStatus status_of(const ChildResult& result) {
  if (result.reason == ChildResult::Reason::watch) return ExitStatus::lock_lost;
  if (result.reason == ChildResult::Reason::max_run) return ExitStatus::max_run;
  return static_cast<ExitStatus>(result.exit_code());
}

void add_result(JsonObject& report, const ChildResult& result) {
  report.bytes("result", word_of(result)).number("exit_code", static_cast<std::uint64_t>(status_of(result)));
  if (result.signal != 0) report.number("signal", static_cast<std::uint64_t>(result.signal));
}

void tell_failure(Output& output, const ChildResult& result) {
  if (!result.message.empty()) {
    output.error(Failure(ErrorCode::usage, result.message + "; check the command after --"));
  } else if (result.reason == ChildResult::Reason::watch) {
    output.error(Failure(ErrorCode::lock_lost, "the lock was lost and the command was stopped"));
  } else if (result.reason == ChildResult::Reason::max_run) {
    output.error(Failure(ErrorCode::try_again, "the command ran longer than --max-run and was stopped"));
  }
}

}  // namespace mcds
