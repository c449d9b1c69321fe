// mcds where --probe: which servers hold a key.
#include "tools/commands/where/probe.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/primitives/context.hpp"
#include "common/primitives/key_names.hpp"

namespace mcds {

struct Findings {
  const Placement& placement;
  Placement::Place place;
  Owners owners;  // the key's server first
  const std::string& key;
  const KeyCopies& copies;
  bool compares;                    // whether copies that agree are the same bytes
  std::vector<std::size_t> strays;  // to be pruned, or that would be
  std::vector<RemovedCopy> removed;

  const char* role_of(std::size_t server) const {
    return server == place.server ? "owner" : owners.has(server) ? "holder" : "-";
  }
};

namespace {

// The keys whose values are in memory at once, from every server that has them: as many as the last ones'
// sizes let fit.
constexpr std::size_t first_trip = 16, longest_trip = 512;
constexpr std::size_t bytes_per_trip = std::size_t{4} << 20;
// The keys that are answered together: so many, and fewer where many servers are asked for each.
constexpr std::size_t longest_window = 2048, copies_together = std::size_t{1} << 16;
// Those with --live that are looked at again together: of them only names are in memory.
constexpr std::size_t most_doubtful = 32768;
using std::chrono_literals::operator""ms;

ExitStatus status_of(Verdict verdict) {
  if (verdict == Verdict::ok) return ExitStatus::ok;
  return verdict == Verdict::missing ? ExitStatus::no : ExitStatus::problem;
}

bool nobody_there(const KeyCopies& copies) {
  return std::ranges::all_of(
      copies, [](const KeyCopy& copy) { return copy.state == KeyCopy::State::unanswered && !copy.reached; });
}

ExitStatus status_of(const Findings& findings) {
  if (nobody_there(findings.copies)) return ExitStatus::unavailable;
  const Verdict after =
      verdict_of(after_removal(findings.copies, findings.removed), findings.owners, findings.compares);
  // Nothing is left, as was asked.
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

// What was done with this server's copy, or would be; empty if nothing.
const char* pruning_of(const Findings& findings, std::size_t server) {
  const auto removed = std::ranges::find(findings.removed, server, &RemovedCopy::server);
  if (removed != findings.removed.end()) return name_of(removed->removal);
  return std::ranges::count(findings.strays, server) > 0 ? "would_remove" : "";
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

// A time to live of -1 seconds: forever.
void add_seconds(JsonObject& row, const char* name, const std::optional<std::chrono::seconds>& time) {
  if (time && time->count() >= 0) row.number(name, static_cast<std::uint64_t>(time->count()));
  if (time && time->count() < 0) row.bytes(name, "never");
  if (!time) row.raw(name, "null");
}

const char* state_word(const KeyCopy& copy) {
  if (copy.state == KeyCopy::State::unanswered) return "no answer";
  return copy.found() ? "found" : "missing";
}

// For people: a row per server.
void print_rows(Session& session, const Findings& findings, const char* verdict) {
  for (const KeyCopy& copy : findings.copies) {
    JsonObject row =
        JsonObject("key", findings.key).bytes("server", findings.placement.pool()[copy.server].address());
    row.bytes("owner", findings.role_of(copy.server)).bytes("copy", state_word(copy));
    if (copy.found() && !copy.md5.empty()) {
      row.number("size_bytes", copy.size_bytes);
      add_seconds(row, "ttl_s", copy.age.ttl);
      add_seconds(row, "idle_s", copy.age.idle);
      row.bytes("cas", std::to_string(copy.cas.value)).bytes("md5", copy.md5);
    }
    if (!findings.strays.empty() || !findings.removed.empty())
      row.bytes("prune", pruning_of(findings, copy.server));
    row.bytes("verdict", verdict).bytes("profile", findings.placement.profile());
    if (copy.state == KeyCopy::State::unanswered) row.bytes("error", copy.error);
    session.output().answer(row, verdict);
  }
}

// `names`: the bare answer is the key, in a list of those that are not ok.
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

// The servers are asked by one name.
std::string wire_key_of(const Owners& owners, const std::string& key) {
  for (const Owner& owner : owners.list) {
    if (owner.wire_key == owners.list.front().wire_key) continue;
    throw InvalidInput("'" + key +
                       "' is kept under several names (\"wire_keys\" of mcds where); probe those instead");
  }
  return owners.list.front().wire_key.empty() ? key : owners.list.front().wire_key;
}

}  // namespace

Probe::Probe(Session& session, const WhereOptions& options, const Placements& placements)
    : session_(session),
      options_(options),
      placements_(placements),
      cluster_(session.connect_to(placements.front())),
      window_(std::clamp(copies_together / cluster_->placement().pool().size(), first_trip, longest_window)),
      trip_(first_trip) {
  if (!options_.divergent || !options_.journal || options_.dry_run) return;
  const Placement& placement = *placements_.front();
  journal_ =
      std::make_unique<DropJournal>(*options_.journal, placement, session_.key_prefix(), session_.clock());
}

ExitStatus Probe::add(const std::string& key) {
  keys_.push_back(key);
  return keys_.size() == window_ ? finish_window() : ExitStatus::ok;
}

std::vector<KeyCopies> Probe::ask(std::span<const std::string> keys) {
  std::vector<KeyCopies> all;
  for (std::size_t from = 0; from < keys.size();) {
    const auto some = keys.subspan(from, std::min(trip_, keys.size() - from));
    std::size_t bytes = 1;
    for (KeyCopies& copies : ask_once(some)) {
      for (const KeyCopy& copy : copies) bytes += copy.size_bytes;
      all.push_back(std::move(copies));
    }
    from += some.size();
    trip_ =
        std::clamp(bytes_per_trip * some.size() / bytes, std::size_t{1}, std::min(trip_ * 4, longest_trip));
  }
  return all;
}

std::vector<KeyCopies> Probe::ask_once(std::span<const std::string> keys) {
  std::vector<std::string> wire_keys;
  for (const std::string& key : keys)
    wire_keys.push_back(wire_key_of(placements_.front()->owners_of(key), key));
  return probe_keys(*cluster_, wire_keys);
}

// Copies that are rewritten one after the other differ for a moment: those that still do after a while are
// divergent. `answer` is given each key's place in `keys`, and its copies.
template <typename Answer>
void Probe::look_again(std::span<const std::string> keys, const Answer& answer) {
  std::vector<std::size_t> left(keys.size());
  std::iota(left.begin(), left.end(), std::size_t{0});
  for (const std::chrono::milliseconds pause : {2ms, 10ms, 50ms}) {
    if (left.empty()) return;
    session_.clock().sleep_for(pause);
    std::vector<std::size_t> differing;
    for (std::size_t from = 0; from < left.size(); from += window_) {
      const auto places = std::span(left).subspan(from, std::min(window_, left.size() - from));
      std::vector<std::string> some;
      for (const std::size_t place : places) some.push_back(keys[place]);
      std::vector<KeyCopies> copies = ask(some);
      for (std::size_t i = 0; i < some.size(); ++i) {
        if (pause < 50ms && is_doubtful(some[i], copies[i]))
          differing.push_back(places[i]);
        else
          answer(places[i], std::move(copies[i]));
      }
    }
    left = std::move(differing);
  }
}

ExitStatus Probe::finish_window() {
  if (options_.prune) session_.expect_time();
  ExitStatus status = ExitStatus::ok;
  std::vector<KeyCopies> copies = ask(keys_);
  std::vector<std::size_t> places;  // of those that are looked at again now
  std::vector<std::string> doubtful;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    const bool doubted = is_doubtful(keys_[i], copies[i]);
    if (doubted) (options_.live ? doubtful_ : doubtful).push_back(keys_[i]);
    if (doubted && !options_.live) places.push_back(i);
    if (options_.live && !doubted) status = worse(status, finish(keys_[i], copies[i]));
  }
  look_again(doubtful, [&](std::size_t i, KeyCopies again) { copies[places[i]] = std::move(again); });
  for (std::size_t i = 0; i < keys_.size() && !options_.live; ++i)
    status = worse(status, finish(keys_[i], copies[i]));
  keys_.clear();
  return doubtful_.size() < most_doubtful ? status : worse(status, finish_doubtful());
}

ExitStatus Probe::finish_doubtful() {
  ExitStatus status = ExitStatus::ok;
  const std::vector<std::string> keys = std::exchange(doubtful_, {});
  look_again(
      keys, [&](std::size_t i, const KeyCopies& copies) { status = worse(status, finish(keys[i], copies)); });
  return status;
}

ExitStatus Probe::run() {
  const ExitStatus status = finish_window();
  return worse(status, finish_doubtful());
}

ExitStatus Probe::finish(const std::string& key, const KeyCopies& copies) {
  ExitStatus status = ExitStatus::ok;
  for (const auto& placement : placements_) status = worse(status, finish(*placement, key, copies));
  return status;
}

void Probe::gather(std::span<const std::string> keys, PruneEvidence& evidence) {
  for (std::size_t from = 0; from < keys.size(); from += window_) {
    const auto some = keys.subspan(from, std::min(window_, keys.size() - from));
    const std::vector<KeyCopies> copies = ask(some);
    for (std::size_t i = 0; i < some.size(); ++i) {
      const PlacedKey part = placed(some[i], session_.key_prefix());
      evidence.add(some[i], copies[i], key_owners(session_, *placements_.front(), part));
    }
  }
}

ExitStatus Probe::finish(const Placement& placement, const std::string& key, const KeyCopies& copies) {
  const PlacedKey part = placed(key, session_.key_prefix());
  const Placement::Place place = placement.place_of(part.placed_by());
  Findings findings{
      placement, place, key_owners(session_, placement, part), key, copies, !differ_by_nature(key), {}, {}};
  if (options_.prune) prune(findings, wire_key_of(placement.owners_of(key), key));
  strays_ += findings.strays.size();
  for (const RemovedCopy& copy : findings.removed) ++removals_[copy.removal];
  if (options_.live) return count(findings);
  print(session_, findings, false);
  return status_of(findings);
}

void Probe::prune(Findings& findings, const std::string& wire_key) {
  if (auto servers = to_drop(findings); !servers.empty()) return drop(findings, wire_key, std::move(servers));
  Strays strays = strays_of(findings.copies, findings.owners, options_.even_last);
  findings.strays = std::move(strays.equal);
  for (const std::size_t server : strays.different)
    findings.removed.push_back({server, Removal::differs, {}});
  if (is_relied_on(findings.key, session_.key_prefix())) {
    for (const std::size_t server : std::exchange(findings.strays, {}))
      findings.removed.push_back({server, Removal::held, {}});
  }
  if (!options_.dry_run && !findings.strays.empty()) {
    std::ranges::move(remove_copies(*cluster_, wire_key, findings.copies, findings.strays),
                      std::back_inserter(findings.removed));
  }
}

// The servers whose copies --divergent drop removes: those that the journal of an ended run has, as they were
// then; else all, if they differ. Of an application's keys alone, and only if every server answered.
std::vector<std::size_t> Probe::to_drop(const Findings& findings) const {
  if (!options_.divergent || structure_in(findings.key, session_.key_prefix()) ||
      is_relied_on(findings.key, session_.key_prefix()))
    return {};
  std::vector<std::size_t> all, recorded;
  for (const KeyCopy& copy : findings.copies) {
    if (copy.state == KeyCopy::State::unanswered) return {};
    if (!copy.found()) continue;
    all.push_back(copy.server);
    if (journal_ && journal_->has(findings.key, copy)) recorded.push_back(copy.server);
  }
  if (!recorded.empty()) return recorded;
  return copies_differ(findings.copies) ? all : std::vector<std::size_t>();
}

// Where the client looks first: a run that is ended in between leaves no old value there. What was written
// there meanwhile stays; if it cannot be removed, the others stay too, because one of them may be the newest.
void Probe::drop(Findings& findings, const std::string& wire_key, std::vector<std::size_t> servers) {
  if (options_.dry_run) {
    findings.strays = std::move(servers);
    return;
  }
  if (journal_) journal_->add(findings.key, findings.copies, servers);
  const auto others =
      std::ranges::stable_partition(servers, [&](std::size_t server) { return findings.owners.has(server); });
  findings.removed = remove_copies(*cluster_, wire_key, findings.copies, {servers.begin(), others.begin()});
  for (const RemovedCopy& owner : findings.removed) {
    if (owner.removal == Removal::refused || owner.removal == Removal::unknown) return;
  }
  std::ranges::move(remove_copies(*cluster_, wire_key, findings.copies, {others.begin(), others.end()}),
                    std::back_inserter(findings.removed));
}

ExitStatus Probe::count(const Findings& findings) {
  const Verdict verdict = verdict_of(findings.copies, findings.owners, findings.compares);
  // Gone since it was listed.
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
  RemovalSummary::Removed removed{options_.dry_run ? strays_ : 0};
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

bool Probe::differ_by_nature(const std::string& key) const {
  const std::string& prefix = session_.key_prefix();
  if (!key.starts_with(prefix)) return false;
  const auto ours = structure_named(std::string_view(key).substr(prefix.size()));
  return ours && ours->in_several() && key.find(":v:") == std::string::npos;
}

}  // namespace mcds
