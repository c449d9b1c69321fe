// Implements mcds where --prune --live --moved-from: finds old copies after a move.
#include "common/operations/move/move.hpp"
#include "tools/cli/changed_pool.hpp"
#include "tools/cli/live_dump.hpp"
#include "tools/commands/where/options.hpp"

namespace mcds {

namespace {

class OldPlacePruner {
 public:
  OldPlacePruner(Session& session, const WhereOptions& options)
      : session_(session),
        options_(options),
        before_(session, ChangedPool{options.moved_from, {}, {}, options.as_from}),
        from_(before_.connect()),
        places_(session.context_on(*from_), session.cluster(), options_of(session, options)),
        summary_(session, options.audit, options.dry_run) {}

  ExitStatus run() {
    session_.output().buffered(true);
    const OldPlaces::Report& report = places_.list(
        [&](const Pool& pool, const TakeLiveKey& take) { return list_keys(session_, pool, take); });
    status_ = report_unlisted(session_, places_.pool(), report.dumps);
    const bool explained = (report.keys - report.misplaced) * 100 >= report.keys * 95;
    if (!explained) {
      // Prints no numbers of keys, because they would look like an answer although nothing is removed.
      session_.output().error(
          Failure(ErrorCode::bad_data,
                  "nothing is removed: only " + std::to_string(report.keys - report.misplaced) + " of " +
                      std::to_string(report.keys) +
                      " keys are where the old or the new list places them, and 95% are required; check "
                      "--moved-from, --as and --as-from, and select the keys of this move with --prefix, "
                      "--match or -n"));
      return worse(status_, ExitStatus::bad_data);
    }
    summary_.around(
        selection(),
        [&] {
          remove(report.on_old);
          return status_;
        },
        [&] { print(report); });
    if (report.only_there + report.differs + report.failed > 0) status_ = worse(status_, ExitStatus::problem);
    print(report);
    return status_;
  }

 private:
  static MoveOptions options_of(Session& session, const WhereOptions& options) {
    MoveOptions result;
    result.selection = options.selected.of(session);
    result.journal = options.journal.value_or("");
    result.dry_run = options.dry_run;
    result.without_cas = options.without_cas;
    return result;
  }

  void remove(std::uint64_t keys) {
    LeftItems left(session_, "keys", keys, options_.list, [this](const KeptItem& item) { print_left(item); });
    places_.remove(options_.even_last, left.watch());
  }

  void print_left(const KeptItem& item) {
    JsonObject line = JsonObject("key", item.key).bytes("left", item.reason);
    line.bytes("server", places_.pool()[item.from].address());
    line.bytes("to", session_.server_address(item.to)).bytes("message", item.message);
    session_.output().answer_name(line, item.key);
  }

  JsonObject selection() const {
    JsonObject selection("moved_from", *options_.moved_from);
    options_.selected.describe(selection);
    return selection;
  }

  void print(const OldPlaces::Report& report) {
    JsonObject line =
        JsonObject().number("keys", report.keys).bytes("profile", session_.placement()->profile());
    line.bytes("profile_before", before_.placement()->profile());
    line.number("astray", report.misplaced)
        .number("locks", report.locks)
        .number("on_old_places", report.on_old);
    line.number("only_there", report.only_there).number("differs", report.differs);
    line.number("changed", report.changed).number("failed", report.failed);
    RemovalSummary::Removed removed{report.removed};
    removed.kept.number("only_there", report.only_there).number("differs", report.differs);
    removed.kept.number("failed", report.failed).number("locks", report.locks);
    summary_.print(line, removed, status_ == ExitStatus::ok ? "ok" : "problem");
  }

  Session& session_;
  const WhereOptions& options_;
  ChangedSession before_;
  std::unique_ptr<Cluster> from_;
  OldPlaces places_;
  RemovalSummary summary_;
  ExitStatus status_ = ExitStatus::ok;
};

}  // namespace

ExitStatus where_moved(Session& session, const WhereOptions& options) {
  if (!options.prune || !options.live) throw InvalidInput("--moved-from needs --prune --live");
  if (options.yes == options.dry_run) {
    throw InvalidInput("--prune removes copies; add --dry-run to see which, or --yes to remove them");
  }
  if (options.operation) throw InvalidInput("--moved-from cannot be combined with --operation");
  return OldPlacePruner(session, options).run();
}

}  // namespace mcds
