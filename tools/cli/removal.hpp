// What every command that removes keys has in common: the words that select, and the last line, which says
// what went.
#pragma once

#include "common/base/json.hpp"
#include "common/cluster/keys/live.hpp"
#include "tools/cli/exit_status.hpp"
#include "tools/cli/output.hpp"

namespace mcds {

class Session;
class Verb;

// --prefix P, --match GLOB, --all.
struct SelectedKeys {
  std::optional<std::string> prefix, pattern;
  bool all = false;

  bool any() const { return prefix || pattern; }
  // Throws InvalidInput for words that leave nothing out, unless --all is given: a script's variable may be
  // empty.
  void check() const;
  KeySelection of(Session& session) const;
  // Adds what was given.
  void describe(JsonObject& line) const;
};
void declare_selected_keys(Verb& verb, SelectedKeys& keys);

// `N` or `N/s` of --rate. Throws InvalidInput.
std::uint64_t rate_of(std::string text);

class RemovalSummary {
 public:
  // `audit`: the file of --audit, which is appended to. Throws Failure(cannot_write): call it before anything
  // is removed.
  RemovalSummary(Session& session, const std::optional<std::string>& audit, bool dry_run);

  struct Removed {
    std::uint64_t keys = 0;  // with dry_run: that would be
    JsonObject kept = {};    // how many were kept, by reason
  };
  // Does `work`, which a signal ends as a deadline does. The audit file is told when that begins, of whatever
  // ends it; if it fails, `tell` is called all the same, and what it prints and keeps says `unfinished`.
  // Throws what `work` throws.
  ExitStatus around(JsonObject selection, const std::function<ExitStatus()>& work,
                    const std::function<void()>& tell);
  // Prints `line` with what was removed as its end, and adds it to the audit file with the time and the user.
  void print(JsonObject line, const Removed& removed, std::string_view bare);
  // Only into the audit file.
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
