// What is reported about a child that was run: exit status, messages and the file of --report.
#pragma once

#include <optional>
#include <string>

#include "common/base/json.hpp"
#include "tools/cli/child.hpp"
#include "tools/cli/exit_status.hpp"
#include "tools/cli/output.hpp"

namespace mcds {

// Opened before anything runs, so that an unwritable report is found early.
class Report {
 public:
  // Throws Failure(cannot_write), as write does; nothing is written without a path.
  explicit Report(const std::optional<std::string>& path);
  ~Report();
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  void write(const JsonObject& object);

 private:
  [[noreturn]] void fail() const;
  std::string path_;
  int descriptor_ = -1;
};

// 79 and 124 when we stopped it, else its own.
ExitStatus status_of(const ChildResult& result);

// `result`, `exit_code` and, if one ended it, `signal`.
void add_result(JsonObject& report, const ChildResult& result);

// One line of error if it could not be run, or was stopped by us.
void tell_failure(Output& output, const ChildResult& result);

}  // namespace mcds
