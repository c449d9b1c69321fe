#include "common/operations/audit.hpp"

#include <numeric>

#include "common/primitives/key_names.hpp"

namespace mcds {

namespace {

// The keys whose values are in memory at once, from every server that has them: as many as the last ones'
// sizes let fit.
constexpr std::size_t first_trip = 16, longest_trip = 512;
constexpr std::size_t bytes_per_trip = std::size_t{4} << 20;
// The keys that are answered together: so many, and fewer where many servers are asked for each.
constexpr std::size_t longest_window = 2048, copies_together = std::size_t{1} << 16;
using std::chrono_literals::operator""ms;

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

KeyAudit::KeyAudit(std::unique_ptr<Cluster> cluster, Clock& clock, std::string key_prefix,
                   AuditOptions options)
    : cluster_(std::move(cluster)),
      clock_(clock),
      key_prefix_(std::move(key_prefix)),
      options_(std::move(options)),
      window_(std::clamp(copies_together / cluster_->placement().pool().size(), first_trip, longest_window)),
      trip_(first_trip) {
  if (options_.divergent && options_.journal && !options_.dry_run)
    journal_ = std::make_unique<DropJournal>(*options_.journal, cluster_->placement(), key_prefix_, clock_);
}

std::vector<KeyCopies> KeyAudit::ask(std::span<const std::string> keys) {
  std::vector<KeyCopies> all;
  for (std::size_t from = 0; from < keys.size();) {
    const auto some = keys.subspan(from, std::min(trip_, keys.size() - from));
    std::size_t bytes = 1;
    std::vector<std::string> wire_keys;
    for (const std::string& key : some)
      wire_keys.push_back(wire_key_of(cluster_->placement().owners_of(key), key));
    for (KeyCopies& copies : probe_keys(*cluster_, wire_keys)) {
      for (const KeyCopy& copy : copies) bytes += copy.size_bytes;
      all.push_back(std::move(copies));
    }
    from += some.size();
    trip_ =
        std::clamp(bytes_per_trip * some.size() / bytes, std::size_t{1}, std::min(trip_ * 4, longest_trip));
  }
  return all;
}

// Copies that are rewritten one after the other differ for a moment: those that still do after a while are
// divergent. `answer` is given each key's place in `keys`, and its copies.
void KeyAudit::ask_again(std::span<const std::string> keys, const Answer& answer) {
  std::vector<std::size_t> left(keys.size());
  std::iota(left.begin(), left.end(), std::size_t{0});
  for (const std::chrono::milliseconds pause : {2ms, 10ms, 50ms}) {
    if (left.empty()) return;
    clock_.sleep_for(pause);
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

void KeyAudit::prune(Findings& findings) {
  if (!options_.prune) return;
  const std::string wire_key = wire_key_of(findings.placement.owners_of(findings.key), findings.key);
  if (auto servers = to_drop(findings); !servers.empty()) return drop(findings, wire_key, std::move(servers));
  Strays strays = strays_of(findings.copies, findings.owners, options_.even_last);
  findings.strays = std::move(strays.equal);
  for (const std::size_t server : strays.different)
    findings.removed.push_back({server, Removal::differs, {}});
  if (is_relied_on(findings.key, key_prefix_)) {
    for (const std::size_t server : std::exchange(findings.strays, {}))
      findings.removed.push_back({server, Removal::held, {}});
  }
  if (!options_.dry_run && !findings.strays.empty()) {
    std::ranges::move(remove_copies(*cluster_, wire_key, findings.copies, findings.strays),
                      std::back_inserter(findings.removed));
  }
}

// The servers whose copies `divergent` removes: those that the journal of an ended run has, as they were
// then; else all, if they differ. Of an application's keys alone, and only if every server answered.
std::vector<std::size_t> KeyAudit::to_drop(const Findings& findings) const {
  if (!options_.divergent || structure_in(findings.key, key_prefix_) ||
      is_relied_on(findings.key, key_prefix_))
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
void KeyAudit::drop(Findings& findings, const std::string& wire_key, std::vector<std::size_t> servers) {
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

bool KeyAudit::differ_by_nature(const std::string& key) const {
  if (!key.starts_with(key_prefix_)) return false;
  const auto ours = structure_named(std::string_view(key).substr(key_prefix_.size()));
  return ours && ours->in_several() && key.find(":v:") == std::string::npos;
}

}  // namespace mcds
