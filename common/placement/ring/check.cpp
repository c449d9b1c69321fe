#include "common/placement/ring/check.hpp"

#include "common/base/units.hpp"
#include "common/placement/profiles/profile.hpp"
#include "common/placement/ring/shares.hpp"

namespace mcds {

namespace {

constexpr std::size_t compared_keys = 20'000;
constexpr double noticeable = 0.002;  // share of the keys: more than tied points could move
constexpr std::size_t few_points = 20;

class Check {
 public:
  Check(const Placement& placement, const PlacementOptions& options)
      : placement_(placement),
        options_(options),
        rule_(profile_named(placement.profile()).rule),
        members_(members_of(rule_, placement.pool(), options.resolver)),
        shares_(ring_shares(placement, options.key_prefix)),
        counted_(shares_.exact ? counted_shares(placement, options.key_prefix) : shares_.shares) {}

  std::vector<Finding> run() {
    if (rule_.distribution == Distribution::asked) known_as();
    if (pool().size() > 1 && rule_.distribution == Distribution::asked) weights();
    if (pool().size() > 1 && needs_source(rule_.distribution)) loads();
    if (pool().size() > 1 && !needs_source(rule_.distribution)) {
      duplicate_identities();
      same_servers();
      weights();
      reach();
      loads();
      points();
      default_ports();
      order();
    }
    fragile();
    return std::move(findings_);
  }

 private:
  const Pool& pool() const { return placement_.pool(); }
  std::string address(std::size_t server) const { return pool()[server].address(); }

  void add(const char* check, bool problem, std::string message, std::vector<std::size_t> servers = {}) {
    findings_.push_back({check, problem, std::move(message), std::move(servers)});
  }

  std::string addresses(const std::vector<std::size_t>& servers) const {
    std::string text;
    for (std::size_t i = 0; i < servers.size() && i < 5; ++i)
      text += (i == 0 ? "" : ", ") + address(servers[i]);
    return servers.size() > 5 ? text + " and " + std::to_string(servers.size() - 5) + " more" : text;
  }

  // Returns the share of keys that are on other servers in `pool`.
  double moved_on(const Pool& pool) const { return moved_on(pool, options_); }
  double moved_on(const Pool& pool, const PlacementOptions& options) const {
    const auto other = make_placement(placement_.profile(), pool, options);
    RingDiff diff(placement_, *other);
    SampleKeys keys(options_.key_prefix);
    for (std::size_t i = 0; i < compared_keys; ++i) diff.add(keys.next(), 0);
    return diff.moved_share();
  }

  void duplicate_identities() {
    std::map<std::string, std::vector<std::size_t>> named;
    for (const Member& member : members_) {
      if (!member.name.empty()) named[member.name].push_back(member.index);
    }
    for (const auto& [name, servers] : named) {
      if (servers.size() < 2) continue;
      add("duplicate_identity", true,
          addresses(servers) + " are all hashed as '" + name +
              "': one of them gets the keys of all; give each a different NAME",
          servers);
    }
  }

  // Compares resolved names; two numerical addresses differ or have the same text.
  void same_servers() {
    std::map<std::string, std::vector<std::size_t>> resolved;
    for (std::size_t i = 0; i < pool().size(); ++i) {
      const Server& server = pool()[i];
      if (server.is_unix() || !options_.resolver.address_of) continue;
      const auto found = options_.resolver.address_of(server.host);
      if (found) resolved[*found + ' ' + std::to_string(server.port)].push_back(i);
    }
    for (const auto& [place, servers] : resolved) {
      if (servers.size() < 2) continue;
      add("same_server", true,
          addresses(servers) + " are the same server under different names; list it once, with a weight",
          servers);
    }
  }

  bool weighted() const {
    return std::ranges::any_of(pool(),
                               [&](const Server& server) { return server.weight != pool().front().weight; });
  }

  // Returns true if every key is on all servers: weights then have no effect.
  bool on_every_server() const {
    return placement_.replicates() &&
           placement_.owners_of(options_.key_prefix + "key").list.size() == pool().size();
  }

  void weights() {
    if (!weighted() || on_every_server()) return;
    Pool equal = pool();
    for (Server& server : equal) server.weight = 1;
    const bool asked = rule_.distribution == Distribution::asked;
    PlacementOptions options = options_;
    if (asked) options.asked = options_.asked->with_equal_weights();
    weights_ignored_ = moved_on(equal, options) == 0;
    if (!weights_ignored_) return;
    add("weights_ignored", true,
        asked ? "libmemcached ignores these weights: they count only with --DISTRIBUTION=consistent in front "
                "of all servers; move it there, which moves keys, or omit the weights"
              : "this client ignores the weights: it places keys as if all were 1; omit them, or choose a "
                "client that supports them");
  }

  void known_as() {
    const std::string_view same = same_profile(placement_, options_);
    add("same_as", false,
        same.empty() ? "no profile places a sample of keys as this string does: only libmemcached can tell"
                     : "a sample of keys is placed as by the profile " + std::string(same));
  }

  void reach() {
    if (placement_.continuum() == nullptr || shares_.exact || placement_.replicates()) return;
    add("hash_misses_ring", true,
        "this client's key hash reaches only a part of its circle: points on the rest get no keys; choose "
        "another hash");
  }

  double fair(std::size_t server) const {
    return weights_ignored_ ? 1.0 / static_cast<double>(pool().size()) : shares_.fair[server];
  }

  void loads() {
    if (on_every_server()) return;
    std::vector<std::size_t> used, idle;
    for (std::size_t i = 0; i < pool().size(); ++i) {
      if (counted_[i] > 0) used.push_back(i);
      if (counted_[i] == 0 && fair(i) > 0) idle.push_back(i);
    }
    if (used.size() == 1)
      return add("all_on_one", true,
                 "every key goes to " + address(used.front()) + ": choose another hash or client", used);
    if (!idle.empty())
      add("idle_server", true,
          "no key goes to " + addresses(idle) + ": remove it, or choose another hash or weights", idle);
    for (const std::size_t server : used) load(server);
  }

  void load(std::size_t server) {
    const double times = fair(server) == 0 ? much : counted_[server] / fair(server);
    if (times < much && times > little) return;
    add("uneven", true,
        address(server) + " gets " + format_percent(counted_[server]) + " of the keys; its fair share is " +
            format_percent(fair(server)) + ": choose other weights, names or another client",
        {server});
  }

  void points() {
    for (std::size_t i = 0; i < shares_.points.size(); ++i) {
      if (shares_.points[i] >= few_points || fair(i) == 0 || counted_[i] == 0) continue;
      add("few_points", true,
          address(i) + " has so few points on the circle (" + std::to_string(shares_.points[i]) +
              ") that its share is a matter of chance; choose weights that differ less",
          {i});
    }
  }

  // Returns the server's name with port 11211 written out, or omitted, unlike this client.
  static std::string other_spelling(const Server& server, const std::string& name) {
    if (server.is_unix() || server.port != default_port) return "";
    const std::string full = server.host + ":11211";
    if (name == full) return server.host;
    return name == server.host ? full : "";
  }

  void default_ports() {
    Pool respelled = pool();
    std::vector<std::size_t> servers;
    std::string from, to;
    for (const Member& member : members_) {
      Server& server = respelled[member.index];
      const std::string other = other_spelling(server, member.name);
      if (other.empty()) continue;
      if (!server.name.empty() && named_against_client(member, other)) continue;
      servers.push_back(member.index);
      if (from.empty()) from = member.name, to = other;
      server.name = other;
    }
    const double moved = servers.empty() ? 0 : moved_on(respelled);
    if (moved < noticeable) return;
    add("default_port", false,
        "this client hashes '" + from + "'; one that hashes '" + to + "' places " + format_percent(moved) +
            " of the keys elsewhere",
        servers);
  }

  // NAME=HOST has the address as its name, but not in this client's spelling.
  bool named_against_client(const Member& member, const std::string& other) {
    Server plain = pool()[member.index];
    plain.name.clear();
    if (rule_.identity == nullptr || rule_.identity(plain, member.index, options_.resolver) != other)
      return false;
    add("default_port", true,
        "the name '" + member.name + "' is the address of " + address(member.index) +
            ", which this client hashes as '" + other + "': remove the name",
        {member.index});
    return true;
  }

  void order() {
    Pool reversed = pool();
    std::ranges::reverse(reversed);
    const double moved = moved_on(reversed);
    if (moved < noticeable) return;
    add("order_dependent", false,
        "the order of the list matters: if it is reversed, " + format_percent(moved) +
            " of the keys move; all clients must list the servers in the same order");
  }

  void fragile() {
    const std::string_view why = profile_named(placement_.profile()).fragile;
    if (!why.empty())
      add("fragile", false, "the answer for this client may be wrong on other machines: " + std::string(why));
  }

  const Placement& placement_;
  const PlacementOptions& options_;
  const Rule& rule_;
  std::vector<Member> members_;
  RingShares shares_;
  std::vector<double> counted_;
  bool weights_ignored_ = false;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> check_ring(const Placement& placement, const PlacementOptions& options) {
  return Check(placement, options).run();
}

}  // namespace mcds
