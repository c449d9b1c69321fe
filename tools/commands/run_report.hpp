// What is reported about a child that was run: exit status, messages and the file of --report.
#pragma once

#include "tools/cli/child.hpp"
#include "tools/cli/output_file.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

// Opened before anything runs, so that an unwritable report is found early.
class Report {
 public:
  // Throws Failure(cannot_write), as write does; nothing is written without a path. `what` it is.
  explicit Report(const std::optional<std::string>& path, const char* what = "report");

  void write(std::string_view bytes) { file_.write(bytes); }
  void write(const JsonObject& object) { write(object.text() + '\n'); }
  // After a command has run: what it throws is only reported. `status`, or that it could not be written if
  // that is ok: the command's own code matters more.
  ExitStatus write_at_the_end(const JsonObject& object, Output& output, ExitStatus status);

 private:
  OutputFile file_;
};

// Runs it with nothing beside it; its time does not count.
ChildResult run_alone(Session& session, const ChildOptions& child);
// 79 and 124 when we stopped it, else its own.
ExitStatus status_of(const ChildResult& result);

// `result`, `exit_code` and, if one ended it, `signal`.
void add_result(JsonObject& report, const ChildResult& result);

// One line of error if it could not be run, or was stopped by us.
void tell_failure(Output& output, const ChildResult& result);

}  // namespace mcds
