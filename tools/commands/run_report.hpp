// Reports on a child that was run: exit status, messages and the --report file.
#pragma once

#include "tools/commands/commands.hpp"

namespace mcds {

// Opens the --report file. Must be called before anything runs, so that an unwritable file is found early.
OutputFile report_in(const std::optional<std::string>& path);
// Writes the report after a command has run; a failure is only reported as an error. Returns `status`, or the
// failure's status if `status` is ok, because the command's own code matters more.
ExitStatus write_report(const OutputFile& file, const JsonObject& object, Output& output, ExitStatus status);

// Runs the child without a watch. Its time does not count against the deadline. Without `held`, signals are
// held only until it has ended.
ChildResult run_alone(Session& session, const ChildOptions& child, const HeldSignals& held);
ChildResult run_alone(Session& session, const ChildOptions& child);

// Adds `result`, `exit_code` and, if a signal ended it, `signal`.
void add_result(JsonObject& report, const ChildResult& result);

// Prints one line of error if the child could not be run, or if we stopped it.
void report_failure(Output& output, const ChildResult& result);

}  // namespace mcds
