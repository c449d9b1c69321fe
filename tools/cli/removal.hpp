// Parts that all commands that remove keys share: the selecting words, and the last line with what was
// removed.
#pragma once

#include "common/base/json.hpp"
#include "common/cluster/keys/live.hpp"
#include "tools/cli/exit_status.hpp"
#include "tools/cli/output.hpp"

namespace mcds {

class Session;
class Verb;

// The words --prefix P, --match GLOB, --all.
struct SelectedKeys {
  std::optional<std::string> prefix, pattern;
  bool all = false;

  bool any() const { return prefix || pattern; }
  // Throws InvalidInput if all keys are selected without --all: a script's variable may be empty.
  void check() const;
  KeySelection of(Session& session) const;
  // Adds the given words to the line.
  void describe(JsonObject& line) const;
};
void declare_selected_keys(Verb& verb, SelectedKeys& keys);

// Parses `N` or `N/s` of --rate. Throws InvalidInput.
std::uint64_t rate_of(std::string text);

class RemovalSummary {
 public:
  // Opens the --audit file for appending; create this before removing. Throws Failure(cannot_write).
  RemovalSummary(Session& session, const std::optional<std::string>& audit, bool dry_run);

  struct Removed {
    std::uint64_t keys = 0;  // keys removed; with dry_run: keys that would be
    JsonObject kept = {};    // number of keys kept, by reason
  };
  // Runs `work`, which a signal ends like a deadline. Writes a line to the audit file before `work` begins.
  // If `work` throws, calls `report`, whose output is then marked `unfinished`, and rethrows.
  ExitStatus around(JsonObject selection, const std::function<ExitStatus()>& work,
                    const std::function<void()>& report);
  // Prints `line` followed by what was removed, and adds it to the audit file with the time and the user.
  void print(JsonObject line, const Removed& removed, std::string_view bare);
  // Adds the line to the audit file only.
  void keep(const JsonObject& line, const Removed& removed);

 private:
  void finish(JsonObject& line, const Removed& removed) const;
  void append(JsonObject line);

  Session& session_;
  OutputFile audit_;
  const bool dry_run_;
  JsonObject selection_;
};

}  // namespace mcds
