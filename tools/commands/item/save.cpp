// Implements mcds item save: parsing and printing. The algorithm is in common/operations/save.hpp.
#include <unistd.h>

#include "tools/commands/item/saving.hpp"

namespace mcds {

namespace {

// Checks that all memory in use would fit into the file. The size of a selection is unknown.
void check_room(Session& session, const ItemOptions& options, const SavingFile& file) {
  if (options.selected.any()) return;
  std::uint64_t items = 0, bytes = 0;
  for (const Reply& reply : session.cluster().execute(requests_for_stats(session, options))) {
    if (reply.failed()) continue;
    items += statistic_number(reply.value, "curr_items").value_or(0);
    bytes += statistic_number(reply.value, "bytes").value_or(0);
  }
  if (bytes <= file.room()) return;
  throw Failure(ErrorCode::cannot_write, "no room for " + file.path() + ": the servers have " +
                                             std::to_string(items) + " items of " + std::to_string(bytes) +
                                             " bytes, and " + std::to_string(file.room()) +
                                             " bytes are free; give another folder, or a --prefix");
}

// `file` is empty if none was written.
void print(Session& session, const SaveDone& done, const std::string& file) {
  // If the file is standard output, the answer goes to stderr.
  const auto answer = [&](const JsonObject& line, std::string_view bare) {
    file == "-" ? session.output().note(line.text()) : session.output().answer(line, bare);
  };
  const auto add = [](JsonObject& line, const SavedServer& server) -> JsonObject& {
    line.number("keys", server.keys).number("saved", server.saved).number("expired", server.expired);
    return line.number("vanished", server.vanished).number("failed", server.failed);
  };
  const SaveReport& report = done.report;
  const bool in_detail = session.output().mode() != OutputMode::value;
  for (std::size_t i = 0; in_detail && i < report.servers.size(); ++i) {
    JsonObject line("server", session.server_address(i));
    answer(add(line, report.servers[i]).boolean("complete", report.dumps[i].complete), {});
  }
  for (std::size_t i = 0; in_detail && i < report.torn.size(); ++i) {
    JsonObject line("structure", report.torn[i]);
    answer(line.boolean("saved", false).bytes("reason", "changed"), {});
  }
  const SavedServer all = report.sum();
  JsonObject line;
  file.empty() ? line.raw("file", "null") : line.bytes("file", file);
  add(line, all).number("structures", report.structures).number("torn", report.torn.size());
  add_skipped(line, report.skipped);
  line.number("bytes", report.bytes);
  add_speed(line, done.took, all.saved);
  answer(line, std::to_string(all.saved));
}

}  // namespace

SavingFile::SavingFile(const std::string& path) : file_(path) {
  if (is_compressed(path)) compressor_.emplace([this](std::string_view bytes) { file_.write(bytes); });
}

void SavingFile::keep() {
  if (compressor_) compressor_->finish();
  file_.keep();
}

void add_structures(JsonObject& line, const LoadReport& report) {
  line.number("united", report.merged).number("structures_there", report.other_structures.size());
}

void add_skipped(JsonObject& line, const std::map<std::string, std::uint64_t>& skipped) {
  JsonObject reasons;
  for (const auto& [why, count] : skipped) reasons.number(why, count);
  line.object("passed_over", reasons);
}

SaveDone save_items(Session& session, const ItemOptions& options, SavingFile* file) {
  if (file != nullptr) check_room(session, options, *file);
  const auto sink = [&](std::string_view bytes) {
    file != nullptr ? file->write(bytes) : session.output().raw(bytes);
  };
  const auto on = server_of(session, options);
  const SaveOptions how{.selection = options.selected.of(session),
                        .rate = options.rate ? std::optional(rate_of(*options.rate)) : std::nullopt,
                        .structures = options.structures};
  const SteadyTime started = session.clock().steady();
  std::optional<Progress> progress;
  SaveDone done;
  done.report = save_pool(session.context_on(session.cluster()), how, sink,
                          [&](const TakeLiveKey& take) { return list_keys_on(session, on, take); },
                          {[&](std::uint64_t keys) { progress.emplace(session.clock(), "items", keys); },
                           [&](const std::string& key, const Failure& failure) {
                             done.status = worse(done.status, session.output().failed(key, failure));
                           },
                           [&](std::uint64_t count) { progress->reach(count, count); }});
  done.took = session.clock().steady() - started;
  session.output().report_errors();
  done.status = worse(done.status, report_unlisted(session, session.placement()->pool(), done.report.dumps));
  const auto lacks = [](const SavedServer& server) { return server.vanished > 0; };
  if (!done.report.torn.empty() || std::ranges::any_of(done.report.servers, lacks))
    done.status = worse(done.status, ExitStatus::problem);
  return done;
}

ExitStatus item_save(Session& session, const ItemOptions& options) {
  options.selected.check();
  if (options.file == "-") {
    if (isatty(STDOUT_FILENO) != 0)
      throw InvalidInput("values are not written to a terminal; give a FILE, or use a pipe");
    const SaveDone done = save_items(session, options, nullptr);
    session.output().flush();
    print(session, done, options.file);
    return done.status;
  }
  SavingFile file(options.file);
  SaveDone done = save_items(session, options, &file);
  session.expect_time();
  // An empty file must not replace an older one. Servers that were not asked do not count.
  const auto on = server_of(session, options);
  const auto& dumps = done.report.dumps;
  const SavedServer all = done.report.sum();
  const bool listed = on ? dumps[*on].complete : std::ranges::any_of(dumps, &LiveKeysOfServer::complete);
  const bool kept = listed && (all.saved > 0 || all.failed == 0);
  if (kept) {
    file.keep();
  } else {
    done.report.structures = done.report.bytes = 0;
    for (SavedServer& server : done.report.servers) server.saved = 0;
  }
  print(session, done, kept ? options.file : "");
  return done.status;
}

}  // namespace mcds
