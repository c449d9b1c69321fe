// mcds item remove by selection: what is removed, and how, stands in common/operations/removal.hpp.
#include <unistd.h>

#include <cstdio>

#include "common/operations/removal.hpp"
#include "tools/cli/left_items.hpp"
#include "tools/cli/live_dump.hpp"
#include "tools/cli/removal.hpp"
#include "tools/commands/item/options.hpp"

namespace mcds {

namespace {

constexpr std::uint64_t usual_rate = 20'000;

class SelectionRemover {
 public:
  SelectionRemover(Session& session, const ItemOptions& options)
      : session_(session),
        options_(options),
        summary_(session, options.audit, options.dry_run),
        progress_(session.clock(), "keys"),
        removal_(Context{session.cluster(), session.clock(), session.random(), session.key_prefix(), 1},
                 {.selection = options.selected.of(session),
                  .older_than = options.older_than,
                  .rate = options.rate      ? std::optional(rate_of(*options.rate))
                          : options.dry_run ? std::nullopt
                                            : std::optional(usual_rate),
                  .dry_run = options.dry_run},
                 watch()) {}

  ExitStatus run() {
    session_.output().buffered(true);
    return summary_.around(
        selection(), [this] { return remove(); }, [this] { print(removal_.report()); });
  }

 private:
  ExitStatus remove() {
    const auto take = [this](const LiveKey& key) {
      session_.expect_time();
      removal_.take(key);
      return true;
    };
    const auto results = list_keys_on(session_, server_of(session_, options_), take, false);
    status_ = worse(status_, report_unlisted(session_, session_.placement()->pool(), results));
    removal_.finish();
    const RemovalReport& report = removal_.report();
    if (report.failed > 0) session_.expect_time();
    progress_.hide();
    session_.output().tell_errors();
    if (report.changed > 0) status_ = worse(status_, ExitStatus::no);
    print(report);
    return status_;
  }

  SelectedRemoval::Watch watch() {
    return {[this](const std::string& key, std::size_t server, const char* kept) { show(key, server, kept); },
            [this](const std::string& key, const Failure& failure) {
              status_ = worse(status_, session_.output().failed(key, failure));
            },
            [this](std::uint64_t done) { progress_.reach(done); }};
  }

  void show(const std::string& key, std::size_t server, const char* kept) {
    if (session_.output().mode() == OutputMode::value || (kept != nullptr && ++kept_ > shown_lines)) return;
    progress_.hide();
    JsonObject line("key", key.substr(session_.key_prefix().size()));
    line.boolean(options_.dry_run ? "would_remove" : "removed", kept == nullptr);
    if (kept != nullptr) line.bytes("reason", kept);
    session_.output().answer(line.bytes("server", session_.server_address(server)), {});
  }

  JsonObject selection() const {
    JsonObject selection;
    options_.selected.describe(selection);
    if (!session_.key_prefix().empty()) selection.bytes("namespace", session_.key_prefix());
    if (options_.older_than)
      selection.real("older_than_s", std::chrono::duration<double>(*options_.older_than).count());
    if (options_.on) selection.bytes("server", *options_.on);
    return selection;
  }

  void print(const RemovalReport& report) {
    RemovalSummary::Removed removed{report.removed};
    removed.kept.number("changed", report.changed).number("held", report.held);
    if (options_.older_than) removed.kept.number("used", report.used);
    removed.kept.number("gone", report.gone).number("failed", report.failed);
    JsonObject line = JsonObject().number("keys", report.listed).number("size_bytes", report.bytes);
    summary_.print(line, removed, std::to_string(report.removed));
  }

  Session& session_;
  const ItemOptions& options_;
  RemovalSummary summary_;
  Progress progress_;
  std::uint64_t kept_ = 0;
  ExitStatus status_ = ExitStatus::ok;
  SelectedRemoval removal_;
};

void check_selection(const ItemOptions& options) {
  options.selected.check();
  if (!options.keys.empty())
    throw InvalidInput("give either KEY or a selection (--prefix, --match, --older-than), not both");
  if (options.everywhere) throw InvalidInput("a selection is removed everywhere; omit --everywhere");
  if (options.older_than && *options.older_than <= Duration::zero())
    throw InvalidInput("--older-than must be longer than 0");
}

// A person at a terminal is asked; a script says it itself.
bool confirmed(const ItemOptions& options) {
  if (options.yes || options.dry_run) return true;
  if (isatty(STDIN_FILENO) == 0 || isatty(STDERR_FILENO) == 0)
    throw InvalidInput("add --dry-run to see what would be removed, or --yes to remove it");
  std::fputs("Remove all keys of this selection from the servers? [y/N] ", stderr);
  const std::string answer = LineReader().next().value_or("");
  return answer == "y" || answer == "yes";
}

}  // namespace

ExitStatus item_remove_selected(Session& session, const ItemOptions& options) {
  check_selection(options);
  if (!confirmed(options)) return ExitStatus::no;
  return SelectionRemover(session, options).run();
}

}  // namespace mcds
