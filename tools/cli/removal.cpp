#include "tools/cli/removal.hpp"

#include <unistd.h>

#include "common/base/bytes.hpp"
#include "tools/cli/program.hpp"
#include "tools/cli/session.hpp"

namespace mcds {

void SelectedKeys::check() const {
  if (all) return;
  if (prefix && prefix->empty())
    throw InvalidInput("--prefix is empty, which selects every key; add --all if that is meant");
  if (pattern && takes_everything(*pattern))
    throw InvalidInput("--match '" + *pattern + "' " +
                       (pattern->empty() ? "is empty" : "selects every key or keys of any text") +
                       "; give a pattern that names some, or add --all");
}

KeySelection SelectedKeys::of(Session& session) const {
  return {session.key_prefix(), prefix, pattern};
}

void SelectedKeys::describe(JsonObject& line) const {
  if (prefix) line.bytes("prefix", *prefix);
  if (pattern) line.bytes("match", *pattern);
}

void declare_selected_keys(Verb& verb, SelectedKeys& keys) {
  verb.option("--prefix", "P", "only keys that begin with P", &keys.prefix)
      .option("--match", "GLOB",
              "only keys that match: * any bytes, ? one, [a-z] one of these, [!a-z] or [^a-z] another, [*] a "
              "star",
              &keys.pattern)
      .flag("--all",
            "accept an empty --prefix or a --match that matches everything, which are refused because a "
            "variable may be unset",
            keys.all);
}

std::uint64_t rate_of(std::string text) {
  if (text.ends_with("/s")) text.resize(text.size() - 2);
  const auto rate = parse_u64(text);
  if (!rate || *rate == 0)
    throw InvalidInput("--rate: '" + text + "' is not a number of items a second, at least 1");
  return *rate;
}

RemovalSummary::RemovalSummary(Session& session, const std::optional<std::string>& audit, bool dry_run)
    : session_(session), audit_(audit, "--audit: cannot write", OutputFile::From::end), dry_run_(dry_run) {}

ExitStatus RemovalSummary::around(JsonObject selection, const std::function<ExitStatus()>& work,
                                  const std::function<void()>& report) {
  selection_ = std::move(selection);
  session_.end_by_signals();
  append(JsonObject().boolean("begins", true).object("selection", selection_));
  try {
    return work();
  } catch (...) {
    session_.note_unfinished();
    try {
      report();
    } catch (...) {  // our output has no reader any more, or the disk is full
    }
    throw;
  }
}

void RemovalSummary::finish(JsonObject& line, const Removed& removed) const {
  line.number(dry_run_ ? "would_remove" : "removed", removed.keys);
  line.object("kept", removed.kept).object("selection", selection_);
  session_.add_unfinished(line);
}

void RemovalSummary::print(JsonObject line, const Removed& removed, std::string_view bare) {
  keep(line, removed);
  finish(line, removed);
  session_.output().answer(line, bare);
}

void RemovalSummary::keep(const JsonObject& line, const Removed& removed) {
  JsonObject all = line;
  finish(all, removed);
  append(std::move(all));
}

void RemovalSummary::append(JsonObject all) {
  if (!audit_) return;
  all.time("at", session_.clock().wall()).bytes("user", user_name()).bytes("host", host_name());
  all.number("pid", static_cast<std::uint64_t>(getpid()));
  audit_.write(all.text() + '\n');
}

}  // namespace mcds
