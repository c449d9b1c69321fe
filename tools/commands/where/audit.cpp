// mcds where --probe --live: every key that the servers list, against where it belongs.
//
// Where a key lies is known from the servers' lists. Only keys that several servers list are asked for, to
// compare their values. In memory are 24 bytes for each listing, and the names of those keys that lie where
// they do not belong.
#include "common/cluster/keys/live.hpp"
#include "common/placement/key_hash.hpp"
#include "common/primitives/parts.hpp"
#include "common/primitives/structure_names.hpp"
#include "tools/cli/live_dump.hpp"
#include "tools/commands/where/live_keys.hpp"
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

  // False: not every server listed all its keys, so that what is missing on one may be there.
  bool read() {
    const auto results = list_keys(session_, placement_.pool(), [&](const LiveKey& key) {
      take(key);
      return true;
    });
    const bool complete = std::ranges::all_of(results, &LiveKeysOfServer::complete);
    if (complete) static_cast<void>(report_unlisted(session_, placement_.pool(), results));
    const bool once = std::ranges::all_of(results, &LiveKeysOfServer::by_table);
    if (once) count_those_right();
    return complete;
  }

  ExitStatus run() {
    std::ranges::sort(listings_, std::less{}, &Listing::hash);
    ExitStatus status = ExitStatus::ok;
    for (std::size_t from = 0; from < listings_.size();) {
      std::size_t to = from + 1;
      while (to < listings_.size() && listings_[to].hash == listings_[from].hash) ++to;
      status = worse(status, judge(std::span(listings_).subspan(from, to - from)));
      from = to;
    }
    status = worse(status, probe_.run());
    JsonObject line = probe_.summary();
    for (const Listing& listing : listings_) bytes_ += listing.bytes;
    line.number("size_bytes", bytes_);
    if (!pairs_.empty()) line.objects("pairs", pairs()).objects("examples", examples_);
    probe_.print_summary(line, status);
    if (probe_.is_mostly_elsewhere()) warn_of_another_client(session_, placement_);
    return status;
  }

 private:
  struct Listing {
    std::uint64_t hash, bytes;
    std::uint32_t server;
    bool owner;
  };
  struct Sum {
    std::uint64_t keys = 0, bytes = 0;
  };
  void take(const LiveKey& key) {
    if (!selection_.has(key.key)) return;
    if (is_plain(key.key) && placement_.server_of(key.key) == key.server) {
      listings_.push_back(
          {key_hash::xxh3(key.key), key.size_bytes, static_cast<std::uint32_t>(key.server), true});
      return;
    }
    const std::string name(key.key);
    const PlacedKey part = placed(name, session_.key_prefix());
    const Owners owners = key_owners(session_, placement_, part);
    const std::uint64_t hash = key_hash::xxh3(name);
    const bool several = owners.list.size() > 1;
    const bool owner = owners.has(key.server);
    listings_.push_back({hash, key.size_bytes, static_cast<std::uint32_t>(key.server), owner});
    if (owner && !several) return;
    names_.try_emplace(hash, name);
    if (owner) return;
    auto& pair = pairs_[{key.server, owners.list.front().server}];
    ++pair.keys;
    pair.bytes += key.size_bytes;
    if (examples_.size() < shown_examples) {
      examples_.push_back(JsonObject("key", name)
                              .bytes("server", session_.server_address(key.server))
                              .bytes("belongs_on", session_.server_address(owners.list.front().server)));
    }
  }

  // An application's key that its client keeps under its own name on one server.
  bool is_plain(std::string_view key) const {
    return placement_.has_plain_owners() && !keeps_copies(session_, placement_, session_.copies()) &&
           !structure_named(key.substr(session_.key_prefix().size()));
  }

  // A key of which nothing else was seen than that it is listed where it belongs is right. Not to be called
  // when a server may have listed a key twice.
  void count_those_right() {
    const auto in_doubt = [this](const Listing& listing) { return names_.contains(listing.hash); };
    const auto right = std::partition(listings_.begin(), listings_.end(), in_doubt);
    for (auto listing = right; listing != listings_.end(); ++listing) {
      probe_.count_ok();
      bytes_ += listing->bytes;
    }
    listings_.erase(right, listings_.end());
  }

  // A key that one server lists, or several that are all there is to it.
  ExitStatus judge(std::span<const Listing> group) {
    const auto name = names_.find(group.front().hash);
    if (name == names_.end()) {
      // Where it belongs, and nowhere else.
      probe_.count_ok();
      return ExitStatus::ok;
    }
    if (group.size() > 1 &&
        !(std::ranges::all_of(group, &Listing::owner) && probe_.differ_by_nature(name->second)))
      return probe_.add(name->second);
    KeyCopies copies(placement_.pool().size());
    for (std::size_t i = 0; i < copies.size(); ++i)
      copies[i] = {.state = KeyCopy::State::missing, .server = i};
    for (const Listing& listing : group) copies[listing.server].state = KeyCopy::State::found;
    return probe_.finish(name->second, copies);
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
  std::vector<Listing> listings_;
  std::uint64_t bytes_ = 0;                                   // of listings that are counted and gone
  std::unordered_map<std::uint64_t, std::string> names_;      // of what may be wrong
  std::map<std::pair<std::size_t, std::size_t>, Sum> pairs_;  // where it is, where it belongs
  std::vector<JsonObject> examples_;
};

}  // namespace

std::optional<ExitStatus> where_audit(Session& session, const WhereOptions& options,
                                      const Placements& placements) {
  Audit audit(session, options, placements);
  return audit.read() ? std::optional(audit.run()) : std::nullopt;
}

}  // namespace mcds
