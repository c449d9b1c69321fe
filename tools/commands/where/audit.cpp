// Implements mcds where --probe --live: compares every key that the servers list with the place where it
// belongs.
//
// The servers' lists say where a key is. Only keys that several servers list are read, to compare their
// values. A list may have any length: the part beyond some megabytes is kept on disk.
#include "common/placement/key_hash.hpp"
#include "tools/commands/where/probe.hpp"

namespace mcds {

namespace {

constexpr std::size_t shown_examples = 5;

class Audit {
 public:
  Audit(Session& session, const WhereOptions& options, const Placements& placements)
      : session_(session),
        selection_(options.selected.of(session)),
        placement_(*placements.front()),
        probe_(session, options, placements) {}

  // Reads the lists. Returns false if a server did not list all its keys: a key that is missing may be on it.
  bool read() {
    const auto results = list_keys(session_, placement_.pool(), [&](const LiveKey& key) {
      take(key);
      return true;
    });
    const bool complete = std::ranges::all_of(results, &LiveKeysOfServer::complete);
    if (complete) static_cast<void>(report_unlisted(session_, placement_.pool(), results));
    return complete;
  }

  ExitStatus run() {
    ExitStatus status = ExitStatus::ok;
    std::uint64_t bytes = 0;
    listings_.for_each([&](std::span<const Listing> group, const std::string& name) {
      for (const Listing& listing : group) bytes += listing.bytes;
      status = worse(status, judge(group, name));
    });
    status = worse(status, probe_.run());
    JsonObject line = probe_.summary();
    line.number("size_bytes", bytes);
    if (!pairs_.empty()) line.objects("pairs", pairs()).objects("examples", examples_);
    probe_.print_summary(line, status);
    if (probe_.is_mostly_elsewhere()) warn_of_another_client(session_, placement_);
    return status;
  }

 private:
  struct Sum {
    std::uint64_t keys = 0, bytes = 0;
  };
  void take(const LiveKey& key) {
    if (!selection_.has(key.key)) return;
    Listing listing{key_hash::xxh3(key.key), key.size_bytes, static_cast<std::uint32_t>(key.server), true};
    // Each server that votes for locks has its own votes.
    if (is_vote_key(key.key) || (is_plain(key.key) && placement_.server_of(key.key) == key.server))
      return listings_.add(listing);
    const std::string name(key.key);
    const PlacedKey part = placed(name, session_.key_prefix());
    const Owners owners = key_owners(session_, placement_, part);
    listing.owner = owners.has(key.server);
    // A key that is listed only where it belongs is right, and its name need not be kept.
    listings_.add(listing, listing.owner && owners.list.size() == 1 ? std::string_view() : name);
    if (listing.owner) return;
    auto& pair = pairs_[{key.server, owners.list.front().server}];
    ++pair.keys;
    pair.bytes += key.size_bytes;
    if (examples_.size() < shown_examples) {
      examples_.push_back(JsonObject("key", name)
                              .bytes("server", session_.server_address(key.server))
                              .bytes("belongs_on", session_.server_address(owners.list.front().server)));
    }
  }

  // Returns true for an application's key that its client keeps under its own name on one server.
  bool is_plain(std::string_view key) const {
    return placement_.has_plain_owners() && !keeps_copies(session_, placement_, session_.copies()) &&
           !structure_named(key.substr(session_.key_prefix().size()));
  }

  // Judges a key by the list entries for it.
  ExitStatus judge(std::span<const Listing> group, const std::string& name) {
    if (name.empty()) {
      // The key is where it belongs, and nowhere else.
      probe_.count_ok();
      return ExitStatus::ok;
    }
    if (group.size() > 1 && !(std::ranges::all_of(group, &Listing::owner) && probe_.differ_by_nature(name)))
      return probe_.add(name);
    KeyCopies copies(placement_.pool().size());
    for (std::size_t i = 0; i < copies.size(); ++i)
      copies[i] = {.state = KeyCopy::State::missing, .server = i};
    for (const Listing& listing : group) copies[listing.server].state = KeyCopy::State::found;
    return probe_.finish(name, copies);
  }

  std::vector<JsonObject> pairs() const {
    std::vector<JsonObject> lines;
    for (const auto& [servers, sum] : pairs_) {
      JsonObject& line = lines.emplace_back();
      line.bytes("server", session_.server_address(servers.first));
      line.bytes("belongs_on", session_.server_address(servers.second));
      line.number("keys", sum.keys).number("size_bytes", sum.bytes);
    }
    return lines;
  }

  Session& session_;
  KeySelection selection_;
  const Placement& placement_;
  Probe probe_;
  Listings listings_;
  std::map<std::pair<std::size_t, std::size_t>, Sum> pairs_;  // by actual server and owner
  std::vector<JsonObject> examples_;
};

}  // namespace

std::optional<ExitStatus> where_audit(Session& session, const WhereOptions& options,
                                      const Placements& placements) {
  Audit audit(session, options, placements);
  return audit.read() ? std::optional(audit.run()) : std::nullopt;
}

}  // namespace mcds
