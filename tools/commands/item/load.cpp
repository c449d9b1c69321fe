// Implements mcds item load: parsing and printing. The algorithm is in common/operations/load.hpp.
#include "common/operations/move/server_starts.hpp"
#include "common/placement/guess.hpp"
#include "tools/commands/item/saving.hpp"

namespace mcds {

namespace {

// Reports once where a file is truncated or damaged. Returns the status.
ExitStatus judge(Session& session, const SavedReader::End& end, const std::string& given) {
  const std::string file = given == "-" ? "standard input" : given;
  if (!end.problem.empty()) {
    session.output().error(Failure(ErrorCode::bad_data, file + ": " + end.problem));
    return ExitStatus::problem;
  }
  if (!end.ours)
    session.output().warning(
        file + ": the last record that item save writes is missing, so the file may have been cut off");
  return ExitStatus::ok;
}

void add_whole(JsonObject& line, const SavedReader::End& end) {
  if (!end.ours && end.problem.empty())
    line.raw("whole", "null");
  else
    line.boolean("whole", end.whole && end.problem.empty());
}

ExitStatus verify(Session& session, const std::string& file) {
  SavedFile reader(file);
  while (reader.next()) {
  }
  const SavedReader::End end = reader.end();
  const ExitStatus status = judge(session, end, file);
  JsonObject line = JsonObject("file", file).number("items", reader.items()).number("bytes", reader.offset());
  add_whole(line, end);
  if (!end.about.empty() && is_json(end.about)) line.raw("about", end.about);
  session.output().answer(line, std::to_string(reader.items()));
  return status;
}

// Throws Failure(bad_data) if the file is truncated or damaged.
void expect_whole(const std::string& file) {
  SavedFile reader(file);
  while (reader.next()) {
  }
  const SavedReader::End end = reader.end();
  if (end.problem.empty() && end.whole) return;
  throw Failure(
      ErrorCode::bad_data,
      "nothing was loaded: " + file + ": " +
          (end.problem.empty() ? "the last record, which marks a complete file, is missing" : end.problem));
}

LoadOptions options_of(Session& session, const ItemOptions& options) {
  LoadOptions load{.selection = options.selected.of(session)};
  if (options.rate) load.rate = rate_of(*options.rate);
  if (options.max_ttl) {
    load.max_ttl = std::chrono::ceil<std::chrono::seconds>(*options.max_ttl);
    if (*load.max_ttl <= Duration::zero()) throw InvalidInput("--max-ttl must be longer than 0");
  }
  load.overwrite = options.overwrite;
  load.even_misplaced = options.even_misplaced;
  load.dry_run = options.dry_run;
  return load;
}

// Adds the server of a key. The servers of one key must be added one after the other.
void add_location(std::vector<KeyLocation>& sample, const std::string& key, std::size_t server) {
  if (sample.empty() || sample.back().key != key) sample.push_back({key, {}});
  sample.back().servers.push_back(server);
}

// Returns where the items were, according to the file's first record. Returns nullopt if the record does not
// say so, or if items need no placement. Throws Failure(bad_data) if the profile does not explain the places.
std::optional<SavedPlaces> places_of(Session& session, const std::string& head, const LoadOptions& load,
                                     const std::string& file) {
  const Pool& pool = session.placement()->pool();
  if (load.on) return std::nullopt;
  const bool is_one = pool.size() < 2;  // which every client uses alike, whatever its profile
  const auto words = [&](const char* name) {
    std::vector<std::string> all;
    for (const std::string& word :
         json_elements(json_field(head, name).value_or("")).value_or(std::vector<std::string>()))
      all.push_back(json_unquote(word).value_or(word));
    return all;
  };
  const PlacementOptions placing = session.placement_options();
  SavedPlaces places;
  std::vector<KeyLocation> sample;
  const auto read = attempt([&] {
    Pool before;
    for (const std::string& server : words("list")) before.push_back(parse_pool(server).front());
    if (before.empty()) throw InvalidInput("the file has no server list");
    // Loading for another client than the file was saved for needs --even-astray.
    const auto saved_as = load.even_misplaced ? json_bytes(head, "profile") : std::nullopt;
    places.before = make_placement(saved_as.value_or(session.profile_name()), before, placing);
    const auto keys = words("sample"), on = words("sample_on");
    for (std::size_t i = 0; i < keys.size() && i < on.size(); ++i)
      add_location(sample, keys[i], std::min<std::size_t>(parse_u64(on[i]).value_or(0), before.size() - 1));
  });
  if (read.failure() && is_one) return std::nullopt;
  if (read.failure()) {
    session.output().warning((file == "-" ? "standard input" : file) +
                             " does not record where its items were, so " +
                             std::string(session.placement()->profile()) + " cannot be checked");
    return std::nullopt;
  }
  const auto objection = load.even_misplaced ? std::nullopt : objection_to(*places.before, placing, sample);
  if (objection && is_one) return std::nullopt;
  if (objection)
    throw Failure(ErrorCode::bad_data,
                  "nothing was loaded: " + *objection +
                      "; mcds where --guess finds the client on the servers that they were saved from; "
                      "--even-astray loads anyway");
  for (const Server& server : places.before->pool()) {
    const auto same = std::ranges::find(pool, server.address(), &Server::address);
    places.now.push_back(same == pool.end() ? std::nullopt : std::optional<std::size_t>(same - pool.begin()));
  }
  return places;
}

// Warns of servers that may have lost loaded items meanwhile. The items used most are loaded first, and are
// evicted first.
void warn_of_losses(Session& session, const moving::ServerRestarts& since, LoadDone& done) {
  const auto events = since.look();
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (!events[i]) continue;
    const auto& [evicted, restarted, flushed] = *events[i];
    if (evicted == 0 && !restarted && !flushed) continue;
    session.output().warning(
        session.server_address(i) + ": the server " +
        (restarted ? "was restarted"
         : flushed ? "was flushed"
                   : "evicted " + std::to_string(evicted) + (evicted == 1 ? " item" : " items")) +
        " while the file was loaded, so loaded items may be gone; " +
        (restarted || flushed ? "load the file again"
                              : "give it more memory (-m), or load fewer items with --prefix"));
    done.status = worse(done.status, ExitStatus::problem);
  }
}

void print(Session& session, const ItemOptions& options, const LoadDone& done) {
  const char* loaded = options.dry_run ? "would_load" : "loaded";
  const auto add = [&](JsonObject& line, const LoadedServer& server) {
    line.number(loaded, server.loaded);
    if (options.dry_run) return;
    line.number("there", server.there).number("failed", server.failed).number("unknown", server.unknown);
  };
  for (std::size_t i = 0; i < done.report.servers.size(); ++i) {
    JsonObject line("server", session.server_address(i));
    add(line, done.report.servers[i]);
    session.output().detail(line);
  }
  for (const std::string& name : done.report.other_structures)
    session.output().detail(JsonObject("structure", name).boolean("loaded", false).bytes("reason", "there"));
  JsonObject line = JsonObject("file", options.file).number("items", done.report.items);
  const LoadedServer all = done.report.sum();
  add(line, all);
  if (!options.dry_run) add_structures(line, done.report);
  line.number("expired", done.report.expired).number("astray", done.report.misplaced);
  add_skipped(line, done.report.skipped);
  add_whole(line, done.file);
  add_speed(line, done.took, done.report.items);
  session.add_unfinished(line);
  session.output().answer(line, std::to_string(all.loaded));
}

}  // namespace

SavedFile::SavedFile(const std::string& path)
    : input_(path), reader_([this](char* into, std::size_t size) {
        return decompressor_ ? decompressor_->read(into, size) : read(into, size);
      }) {
  if (is_compressed(path))
    decompressor_.emplace([this](char* into, std::size_t size) { return read(into, size); });
}

std::size_t SavedFile::read(char* into, std::size_t size) {
  const std::size_t got = input_.read(into, size);
  bytes_read_ += got;
  return got;
}

SavedReader::End SavedFile::end() const {
  SavedReader::End end = reader_.end();
  if (decompressor_ && !decompressor_->problem().empty()) {
    end.problem =
        decompressor_->problem() + " behind byte " + std::to_string(reader_.offset()) + " of what they hold";
    end.whole = false;
  }
  return end;
}

void load_items(Session& session, Cluster& cluster, const LoadOptions& options, const std::string& file,
                LoadDone& done) {
  SavedFile reader(file);
  std::optional<SavedItem> first = reader.next();
  LoadOptions placing = options;
  if (first) placing.places = places_of(session, reader.head(), options, file);
  std::optional<moving::ServerRestarts> watched;
  if (!options.dry_run && !options.on) watched.emplace(cluster);  // item keep ends before a server evicts
  session.output().buffered(true);
  session.end_by_signals();
  Progress progress(session.clock(), "items", reader.size());
  const SteadyTime started = session.clock().steady();
  const LoadWatch watch{[&](const std::string& key, const Failure& failure) {
                          done.status = worse(done.status, session.output().failed(key, failure));
                        },
                        [&](std::uint64_t count) {
                          progress.reach(count, reader.bytes_read());
                          session.expect_time();
                        }};
  try {
    load_saved(
        session.context_on(cluster), placing, watch,
        [&] { return first ? std::exchange(first, std::nullopt) : reader.next(); }, done.report);
  } catch (...) {
    done.took = session.clock().steady() - started;
    session.note_unfinished();
    throw;
  }
  done.took = session.clock().steady() - started;
  session.output().report_errors();
  done.file = reader.end();
  done.status = worse(done.status, judge(session, done.file, file));
  if (!done.report.other_structures.empty()) done.status = worse(done.status, ExitStatus::problem);
  if (watched) warn_of_losses(session, *watched, done);
}

ExitStatus item_load(Session& session, const ItemOptions& options) {
  options.selected.check();
  if (options.verify) return verify(session, options.file);
  const LoadOptions load = options_of(session, options);
  if (options.strict) {
    if (options.file == "-") throw InvalidInput("--strict reads the file twice; give a FILE instead of -");
    expect_whole(options.file);
  }
  LoadDone done;
  try {
    load_items(session, session.cluster(), load, options.file, done);
  } catch (...) {
    if (session.is_unfinished()) print(session, options, done);
    throw;
  }
  print(session, options, done);
  return done.status;
}

}  // namespace mcds
