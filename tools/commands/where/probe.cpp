// Implements mcds where --probe: shows which servers hold a key.
#include "tools/commands/where/probe.hpp"

namespace mcds {

namespace {

// Limits the keys of --live that are read again together. Only their names are kept in memory.
constexpr std::size_t max_uncertain = 32768;

ExitStatus status_of(Verdict verdict) {
  if (verdict == Verdict::ok) return ExitStatus::ok;
  return verdict == Verdict::missing ? ExitStatus::no : ExitStatus::problem;
}

// Returns why no server answers, or nullopt if one does.
std::optional<ExitStatus> nobody_there(const KeyCopies& copies) {
  ExitStatus status = ExitStatus::ok;
  for (const KeyCopy& copy : copies) {
    if (copy.state != KeyCopy::State::unanswered) return std::nullopt;
    status = worse(status, status_of(copy.code));
  }
  return status;
}

ExitStatus status_of(const Findings& findings) {
  if (const auto status = nobody_there(findings.copies)) return *status;
  const Verdict after =
      verdict_of(after_removal(findings.copies, findings.removed), findings.owners, findings.compares);
  // All copies were removed, as requested.
  const bool emptied = after == Verdict::missing &&
                       std::ranges::count(findings.removed, Removal::removed, &RemovedCopy::removal);
  const ExitStatus status = emptied ? ExitStatus::ok : status_of(after);
  const bool unknown = std::ranges::count(findings.removed, Removal::unknown, &RemovedCopy::removal) > 0;
  return unknown ? ExitStatus::unknown_outcome : status;
}

void add_item(JsonObject& line, const KeyCopy& copy) {
  if (copy.md5.empty()) return;  // known from a list; it was not read
  line.number("size_bytes", copy.size_bytes).number("flags", copy.flags);
  if (copy.age.ttl && copy.age.ttl->count() < 0) line.raw("ttl_s", "null");
  if (copy.age.ttl && copy.age.ttl->count() >= 0)
    line.number("ttl_s", static_cast<std::uint64_t>(copy.age.ttl->count()));
  if (copy.age.idle) line.number("idle_s", static_cast<std::uint64_t>(copy.age.idle->count()));
  line.bytes("cas", std::to_string(copy.cas.value)).bytes("md5", copy.md5);
}

// Returns what was done with this server's copy, or would be done; empty if nothing.
const char* pruning_of(const Findings& findings, std::size_t server) {
  const auto removed = std::ranges::find(findings.removed, server, &RemovedCopy::server);
  if (removed != findings.removed.end()) return name_of(removed->removal);
  return std::ranges::count(findings.not_on_owner, server) > 0 ? "would_remove" : "";
}

void add_pruning(JsonObject& line, const Findings& findings, std::size_t server) {
  if (const char* pruning = pruning_of(findings, server); *pruning != '\0') line.bytes("prune", pruning);
  for (const RemovedCopy& removed : findings.removed) {
    if (removed.server == server && !removed.error.empty()) line.bytes("error", removed.error);
  }
}

JsonObject describe(const Findings& findings, const KeyCopy& copy) {
  JsonObject line =
      JsonObject("server", findings.placement.pool()[copy.server].address())
          .boolean("owner", findings.placement.replicates() ? findings.owners.has(copy.server)
                                                            : copy.server == findings.place.server);
  if (findings.owners.list.size() > 1) line.boolean("holder", findings.owners.has(copy.server));
  if (copy.state == KeyCopy::State::unanswered) return line.bytes("error", copy.error);
  line.boolean("found", copy.found());
  if (copy.found()) add_item(line, copy);
  if (copy.round_trip) line.number("rtt_us", static_cast<std::uint64_t>(copy.round_trip->count()));
  add_pruning(line, findings, copy.server);
  return line;
}

// Adds a duration. A ttl of -1 second means forever.
void add_seconds(JsonObject& row, const char* name, const std::optional<std::chrono::seconds>& time) {
  if (time && time->count() >= 0) row.number(name, static_cast<std::uint64_t>(time->count()));
  if (time && time->count() < 0) row.bytes(name, "never");
  if (!time) row.raw(name, "null");
}

const char* state_word(const KeyCopy& copy) {
  if (copy.state == KeyCopy::State::unanswered) return "no answer";
  return copy.found() ? "found" : "missing";
}

const char* role_of(const Findings& findings, std::size_t server) {
  return server == findings.place.server ? "owner" : findings.owners.has(server) ? "holder" : "-";
}

// Prints one row per server for people.
void print_rows(Session& session, const Findings& findings, const char* verdict) {
  for (const KeyCopy& copy : findings.copies) {
    JsonObject row =
        JsonObject("key", findings.key).bytes("server", findings.placement.pool()[copy.server].address());
    row.bytes("owner", role_of(findings, copy.server)).bytes("copy", state_word(copy));
    if (copy.found() && !copy.md5.empty()) {
      row.number("size_bytes", copy.size_bytes);
      add_seconds(row, "ttl_s", copy.age.ttl);
      add_seconds(row, "idle_s", copy.age.idle);
      row.bytes("cas", std::to_string(copy.cas.value)).bytes("md5", copy.md5);
    }
    if (!findings.not_on_owner.empty() || !findings.removed.empty())
      row.bytes("prune", pruning_of(findings, copy.server));
    row.bytes("verdict", verdict).bytes("profile", findings.placement.profile());
    if (copy.state == KeyCopy::State::unanswered) row.bytes("error", copy.error);
    session.output().answer(row, verdict);
  }
}

// Prints the findings. If `names` is true, the bare answer is the key, in a list of keys that are not ok.
void print(Session& session, const Findings& findings, bool names) {
  const char* verdict = name_of(verdict_of(findings.copies, findings.owners, findings.compares));
  if (session.output().mode() == OutputMode::text) return print_rows(session, findings, verdict);
  JsonObject line = PlacedLines(session, findings.placement).line(findings.key, findings.place);
  std::vector<JsonObject> copies;
  for (const KeyCopy& copy : findings.copies) copies.push_back(describe(findings, copy));
  add_owners(session, line, findings.placement, findings.key);
  line.bytes("verdict", verdict);
  if (!findings.compares) line.boolean("compared", false);
  line.objects("copies", copies);
  names ? session.output().answer_name(line, findings.key) : session.output().answer(line, verdict);
}

}  // namespace

Probe::Probe(Session& session, const WhereOptions& options, const Placements& placements)
    : session_(session),
      options_(options),
      placements_(placements),
      audit_(session.connect_to(placements.front()), session.clock(), session.key_prefix(),
             {.prune = options.prune,
              .dry_run = options.dry_run,
              .even_last = options.even_last,
              .divergent = options.divergent.has_value(),
              .journal = options.journal}) {}

ExitStatus Probe::add(const std::string& key) {
  keys_.push_back(key);
  return keys_.size() == window() ? finish_window() : ExitStatus::ok;
}

ExitStatus Probe::finish_window() {
  if (options_.prune) session_.expect_time();
  ExitStatus status = ExitStatus::ok;
  std::vector<KeyCopies> copies = audit_.ask(keys_);
  // Keys that the deadline has cut off are not unreachable.
  if (options_.prune || options_.live) session_.expect_time();
  std::vector<std::size_t> places;  // of the keys that are read again now
  std::vector<std::string> uncertain;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    const bool suspected = audit_.is_uncertain(keys_[i], copies[i]);
    if (suspected) (options_.live ? uncertain_ : uncertain).push_back(keys_[i]);
    if (suspected && !options_.live) places.push_back(i);
    if (options_.live && !suspected) status = worse(status, finish(keys_[i], copies[i]));
  }
  audit_.ask_again(uncertain, [&](std::size_t i, KeyCopies again) { copies[places[i]] = std::move(again); });
  for (std::size_t i = 0; i < keys_.size() && !options_.live; ++i)
    status = worse(status, finish(keys_[i], copies[i]));
  keys_.clear();
  return uncertain_.size() < max_uncertain ? status : worse(status, finish_unconfirmed());
}

ExitStatus Probe::finish_unconfirmed() {
  ExitStatus status = ExitStatus::ok;
  const std::vector<std::string> keys = std::exchange(uncertain_, {});
  audit_.ask_again(keys, [&](std::size_t i, const KeyCopies& copies) {
    session_.expect_time();
    status = worse(status, finish(keys[i], copies));
  });
  return status;
}

ExitStatus Probe::run() {
  const ExitStatus status = finish_window();
  return worse(status, finish_unconfirmed());
}

ExitStatus Probe::finish(const std::string& key, const KeyCopies& copies) {
  ExitStatus status = ExitStatus::ok;
  for (const auto& placement : placements_) status = worse(status, finish(*placement, key, copies));
  return status;
}

void Probe::gather(std::span<const std::string> keys, PruneEvidence& evidence) {
  for (std::size_t from = 0; from < keys.size(); from += window()) {
    const auto some = keys.subspan(from, std::min(window(), keys.size() - from));
    const std::vector<KeyCopies> copies = audit_.ask(some);
    for (std::size_t i = 0; i < some.size(); ++i) {
      const PlacedKey part = placed(some[i], session_.key_prefix());
      evidence.add(some[i], copies[i], key_owners(session_, *placements_.front(), part));
    }
  }
}

ExitStatus Probe::finish(const Placement& placement, const std::string& key, const KeyCopies& copies) {
  const PlacedKey part = placed(key, session_.key_prefix());
  const Placement::Place place = placement.place_of(part.placed_by());
  Findings findings{placement, place,  key_owners(session_, placement, part),
                    key,       copies, !audit_.differ_by_nature(key)};
  audit_.prune(findings);
  not_on_owner_ += findings.not_on_owner.size();
  for (const RemovedCopy& copy : findings.removed) ++removals_[copy.removal];
  if (options_.live) return count(findings);
  print(session_, findings, false);
  return status_of(findings);
}

ExitStatus Probe::count(const Findings& findings) {
  const Verdict verdict = verdict_of(findings.copies, findings.owners, findings.compares);
  // The key has vanished since it was listed.
  if (verdict == Verdict::missing) return ExitStatus::ok;
  ++counts_[verdict];
  if (options_.list && verdict != Verdict::ok) print(session_, findings, true);
  return status_of(findings);
}

bool Probe::is_mostly_elsewhere() const {
  constexpr std::uint64_t enough = 12;
  std::uint64_t keys = 0;
  for (const auto& [verdict, count] : counts_) keys += count;
  const auto misplaced = counts_.find(Verdict::misplaced);
  return misplaced != counts_.end() && keys >= enough && misplaced->second * 2 > keys;
}

void Probe::print_summary(const JsonObject& summary, ExitStatus status) const {
  if (options_.list && session_.output().mode() == OutputMode::value) return;
  session_.output().answer(summary, status == ExitStatus::ok ? "ok" : "problem");
}

JsonObject Probe::summary() const {
  std::uint64_t keys = 0;
  JsonObject verdicts;
  for (const auto& [verdict, count] : counts_) {
    keys += count;
    verdicts.number(name_of(verdict), count);
  }
  JsonObject line = JsonObject().number("keys", keys).bytes("profile", placements_.front()->profile());
  return line.object("verdicts", verdicts);
}

RemovalSummary::Removed Probe::removed() const {
  RemovalSummary::Removed removed{options_.dry_run ? not_on_owner_ : 0};
  for (const auto& [removal, count] : removals_) {
    if (removal == Removal::removed)
      removed.keys = count;
    else
      removed.kept.number(name_of(removal), count);
  }
  return removed;
}

JsonObject Probe::selection() const {
  JsonObject selection;
  options_.selected.describe(selection);
  if (options_.live) selection.boolean("live", true);
  if (!options_.live && options_.keys.front() != "-") selection.strings("keys", options_.keys);
  return selection;
}

}  // namespace mcds
