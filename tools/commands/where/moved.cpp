// Implements mcds where --prune --live --moved-from: finds old copies after a move.
#include "common/operations/move/move.hpp"
#include "tools/cli/changed_pool.hpp"
#include "tools/commands/where/options.hpp"

namespace mcds {

namespace {

MoveOptions options_of(Session& session, const WhereOptions& options) {
  MoveOptions result;
  result.selection = options.selected.of(session);
  result.journal = options.journal.value_or("");
  result.dry_run = options.dry_run;
  result.without_cas = options.without_cas;
  return result;
}

JsonObject describe(const OldPlaces::Report& report, std::string_view profile, std::string_view before) {
  JsonObject line = JsonObject().number("keys", report.keys).bytes("profile", profile);
  line.bytes("profile_before", before).number("astray", report.misplaced).number("locks", report.locks);
  line.number("on_old_places", report.on_old).number("only_there", report.only_there);
  line.number("differs", report.differs).number("changed", report.changed);
  return line.number("failed", report.failed);
}

ExitStatus prune_old_places(Session& session, const WhereOptions& options) {
  ChangedSession before(session, ChangedPool{options.moved_from, {}, {}, options.as_from});
  const std::unique_ptr<Cluster> from = before.connect(), from_statistics = before.connect();
  const std::unique_ptr<Cluster> to_statistics = session.connect_to(session.placement());
  OldPlaces places(session.context_on(*from), session.cluster(), options_of(session, options),
                   from_statistics.get(), to_statistics.get());
  RemovalSummary summary(session, options.audit, options.dry_run);
  session.output().buffered(true);
  const OldPlaces::Report& report =
      places.list([&](const Pool& pool, const TakeLiveKey& take) { return list_keys(session, pool, take); });
  ExitStatus status = report_unlisted(session, places.pool(), report.dumps);
  const bool explained = (report.keys - report.misplaced) * 100 >= report.keys * 95;
  if (!explained) {
    // Prints no numbers of keys, because they would look like an answer although nothing is removed.
    session.output().error(
        Failure(ErrorCode::bad_data,
                "nothing is removed: only " + std::to_string(report.keys - report.misplaced) + " of " +
                    std::to_string(report.keys) +
                    " keys are where the old or the new list places them, and 95% are required; check "
                    "--moved-from, --as and --as-from, and select the keys of this move with --prefix, "
                    "--match or -n"));
    return worse(status, ExitStatus::bad_data);
  }
  const auto print_left = [&](const KeptItem& item) {
    JsonObject line = JsonObject("key", item.key).bytes("left", item.reason);
    line.bytes("server", places.pool()[item.from].address());
    line.bytes("to", session.server_address(item.to)).bytes("message", item.message);
    session.output().answer_name(line, item.key);
  };
  const auto remove = [&] {
    LeftItems left(session, "keys", report.on_old, options.list, print_left);
    places.remove(options.even_last, left.watch());
    return status;
  };
  const auto print = [&] {
    RemovalSummary::Removed removed{report.removed};
    removed.kept.number("only_there", report.only_there).number("differs", report.differs);
    removed.kept.number("changed", report.changed)
        .number("failed", report.failed)
        .number("locks", report.locks);
    summary.print(describe(report, session.placement()->profile(), before.placement()->profile()), removed,
                  status == ExitStatus::ok ? "ok" : "problem");
  };
  JsonObject selection("moved_from", *options.moved_from);
  options.selected.describe(selection);
  summary.around(std::move(selection), remove, print);
  if (report.only_there + report.differs + report.changed + report.failed > 0)
    status = worse(status, ExitStatus::problem);
  print();
  return status;
}

}  // namespace

ExitStatus where_moved(Session& session, const WhereOptions& options) {
  if (!options.prune || !options.live) throw InvalidInput("--moved-from needs --prune --live");
  if (options.yes == options.dry_run) {
    throw InvalidInput("--prune removes copies; add --dry-run to see which, or --yes to remove them");
  }
  if (options.operation) throw InvalidInput("--moved-from cannot be combined with --operation");
  return prune_old_places(session, options);
}

}  // namespace mcds
