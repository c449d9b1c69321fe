// What is reported about a child that was run: exit status, messages and the file of --report.
#pragma once

#include "tools/cli/child.hpp"
#include "tools/cli/output.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

// --report: opened before anything runs, so that an unwritable one is found early.
OutputFile report_in(const std::optional<std::string>& path);
// After a command has run: what it throws is only reported. `status`, or that it could not be written if that
// is ok: the command's own code matters more.
ExitStatus write_report(const OutputFile& file, const JsonObject& object, Output& output, ExitStatus status);

// Runs it with nothing beside it; its time does not count.
ChildResult run_alone(Session& session, const ChildOptions& child);
// 79 and 124 when we stopped it, else its own.
ExitStatus status_of(const ChildResult& result);

// `result`, `exit_code` and, if one ended it, `signal`.
void add_result(JsonObject& report, const ChildResult& result);

// One line of error if it could not be run, or was stopped by us.
void tell_failure(Output& output, const ChildResult& result);

}  // namespace mcds
