#include "common/operations/audit.hpp"

#include <numeric>

#include "common/operations/map.hpp"

namespace mcds {

namespace {

// A trip holds the values of its keys in memory: as many keys as fit by the sizes of the previous ones.
constexpr std::size_t first_trip = 16, max_trip = 512;
constexpr std::size_t bytes_per_trip = std::size_t{4} << 20;
// A window has at most this many keys, and fewer for a pool with many servers.
constexpr std::size_t max_window = 2048, copies_together = std::size_t{1} << 16;
using std::chrono_literals::operator""ms;

// Returns the name by which every server knows the key.
std::string wire_key_of(const Owners& owners, const std::string& key) {
  for (const Owner& owner : owners.list) {
    if (owner.wire_key == owners.list.front().wire_key) continue;
    throw InvalidInput("'" + key +
                       "' is stored under several names; probe the 'wire_keys' that mcds where shows");
  }
  return owners.list.front().wire_key.empty() ? key : owners.list.front().wire_key;
}

moving::KeyHash id_of(const std::string& key, std::size_t server) {
  return moving::hash_of(key + '\n' + std::to_string(server));
}

std::uint64_t digest_of(const KeyCopy& copy) {
  return moving::digest_of(copy.md5, copy.flags);
}

}  // namespace

DropJournal::DropJournal(const std::string& path, Cluster& cluster, const std::string& key_prefix,
                         Clock& clock)
    : move_journal_(path, "drop " + moving::identity_of(cluster.placement(), cluster.placement(), key_prefix),
                    &clock),
      valid_from_(move_journal_, cluster, cluster) {
  move_journal_.load_all();
}

bool DropJournal::has(const std::string& key, const KeyCopy& copy) const {
  const moving::Copied* before = move_journal_.find(id_of(key, copy.server));
  return before != nullptr && before->index >= valid_from_.old_servers[copy.server] &&
         before->cas == copy.cas.value && before->digest == digest_of(copy);
}

void DropJournal::add(const std::string& key, const KeyCopies& copies, std::span<const std::size_t> servers) {
  for (const std::size_t server : servers)
    move_journal_.add(id_of(key, server), {digest_of(copies[server]), copies[server].cas.value});
  move_journal_.write();
}

KeyAudit::KeyAudit(std::unique_ptr<Cluster> cluster, Clock& clock, std::string key_prefix,
                   AuditOptions options)
    : cluster_(std::move(cluster)),
      clock_(clock),
      key_prefix_(std::move(key_prefix)),
      options_(std::move(options)),
      window_(std::clamp(copies_together / cluster_->placement().pool().size(), first_trip, max_window)),
      trip_(first_trip) {
  if (options_.divergent && options_.journal && !options_.dry_run)
    journal_ = std::make_unique<DropJournal>(*options_.journal, *cluster_, key_prefix_, clock_);
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
    trip_ = std::clamp(bytes_per_trip * some.size() / bytes, std::size_t{1}, std::min(trip_ * 4, max_trip));
  }
  return all;
}

// Copies that are rewritten differ for a moment. Those that still differ at the end are divergent.
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
        if (pause < 50ms && is_uncertain(some[i], copies[i]))
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
  NotOnOwner not_on_owner = find_not_on_owner(findings.copies, findings.owners, options_.even_last);
  findings.not_on_owner = std::move(not_on_owner.equal);
  for (const std::size_t server : not_on_owner.different)
    findings.removed.push_back({server, Removal::differs, {}});
  if (is_relied_on(findings.key, key_prefix_)) {
    for (const std::size_t server : std::exchange(findings.not_on_owner, {}))
      findings.removed.push_back({server, Removal::held, {}});
  }
  if (options_.dry_run) {
    // As the removal itself, which compares by cas.
    std::erase_if(findings.not_on_owner, [&](std::size_t server) {
      if (findings.copies[server].cas.value != 0) return false;
      findings.removed.push_back({server, Removal::refused, "the server does not support cas"});
      return true;
    });
  }
  if (!options_.dry_run && !findings.not_on_owner.empty()) {
    std::ranges::move(remove_copies(*cluster_, wire_key, findings.copies, findings.not_on_owner),
                      std::back_inserter(findings.removed));
  }
}

// Returns the servers whose copy `divergent` removes: those recorded in the journal of an interrupted run and
// unchanged since; otherwise all that differ. This needs a key of an application, and answers from all
// servers. If the copies agree with the one where the client looks, that one is healthy.
std::vector<std::size_t> KeyAudit::to_drop(const Findings& findings) const {
  if (!options_.divergent || structure_in(findings.key, key_prefix_) ||
      is_relied_on(findings.key, key_prefix_))
    return {};
  const bool differ = copies_differ(findings.copies);
  std::vector<std::size_t> all, recorded;
  for (const KeyCopy& copy : findings.copies) {
    if (copy.state == KeyCopy::State::unanswered) return {};
    if (!copy.found()) continue;
    if (!differ && findings.owners.has(copy.server)) return {};
    all.push_back(copy.server);
    if (journal_ && journal_->has(findings.key, copy)) recorded.push_back(copy.server);
  }
  return recorded.empty() && differ ? all : recorded;
}

// Removes the owners' copies first, so that an interrupted run leaves no old value where the client looks. A
// value written there meanwhile stays. If an owner's copy cannot be removed, the others stay too: one may be
// the newest.
void KeyAudit::drop(Findings& findings, const std::string& wire_key, std::vector<std::size_t> servers) {
  const auto has_no_cas = [&](std::size_t server) { return findings.copies[server].cas.value == 0; };
  if (std::ranges::any_of(servers, has_no_cas)) {
    for (const std::size_t server : servers)
      findings.removed.push_back({server, Removal::refused, "a copy is on a server without cas"});
    return;
  }
  if (options_.dry_run) {
    findings.not_on_owner = std::move(servers);
    return;
  }
  if (journal_) journal_->add(findings.key, findings.copies, servers);
  const auto others =
      std::ranges::stable_partition(servers, [&](std::size_t server) { return findings.owners.has(server); });
  findings.removed =
      remove_copies(*cluster_, wire_key, findings.copies, {servers.begin(), others.begin()}, true);
  for (const RemovedCopy& owner : findings.removed) {
    if (owner.removal == Removal::refused || owner.removal == Removal::unknown) return;
  }
  std::ranges::move(remove_copies(*cluster_, wire_key, findings.copies, {others.begin(), others.end()}, true),
                    std::back_inserter(findings.removed));
}

bool KeyAudit::differ_by_nature(const std::string& key) const {
  if (!key.starts_with(key_prefix_)) return false;
  const auto ours = structure_named(std::string_view(key).substr(key_prefix_.size()));
  return ours && ours->in_several() && key.find(":v:") == std::string::npos;
}

}  // namespace mcds
