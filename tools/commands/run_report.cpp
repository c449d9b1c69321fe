#include "tools/commands/run_report.hpp"

#include <array>

namespace mcds {

namespace {

const char* word_of(const ChildResult& result) {
  if (result.reason == ChildResult::Reason::ended) return result.signal != 0 ? "signaled" : "exited";
  constexpr std::array words{"", "max_run", "lost", "not_executable", "not_found", "unknown"};
  return words[static_cast<std::size_t>(result.reason)];
}

}  // namespace

OutputFile report_in(const std::optional<std::string>& path) {
  return {path, "cannot write the report", OutputFile::From::start};
}

ExitStatus write_report(const OutputFile& file, const JsonObject& object, Output& output, ExitStatus status) {
  const auto failure = attempt([&] { file.write(object.text() + '\n'); }).failure();
  if (!failure) return status;
  output.error(*failure);
  return status == ExitStatus::ok ? status_of(failure->code()) : status;
}

ChildResult run_alone(Session& session, const ChildOptions& child, const HeldSignals& held) {
  const CleanupProcess cleanup;
  const ChildTime its_own(session);
  return run_child(child, session.clock(), cleanup, held);
}

ChildResult run_alone(Session& session, const ChildOptions& child) {
  const HeldSignals held;
  return run_alone(session, child, held);
}

void add_result(JsonObject& report, const ChildResult& result) {
  report.bytes("result", word_of(result)).number("exit_code", static_cast<std::uint64_t>(result.exit_code()));
  if (result.signal != 0) report.number("signal", static_cast<std::uint64_t>(result.signal));
}

void report_failure(Output& output, const ChildResult& result) {
  if (result.reason == ChildResult::Reason::unknown) {
    output.error(Failure(ErrorCode::system, result.message));
  } else if (!result.message.empty()) {
    output.error(Failure(ErrorCode::usage, result.message + "; check the command after --"));
  } else if (result.reason == ChildResult::Reason::watch) {
    output.error(Failure(ErrorCode::lock_lost, "the lock was lost and the command was stopped"));
  } else if (result.reason == ChildResult::Reason::max_run) {
    output.error(Failure(ErrorCode::try_again, "the command ran longer than --max-run and was stopped"));
  }
}

}  // namespace mcds
