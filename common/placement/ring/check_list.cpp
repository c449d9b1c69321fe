// Checks a list of servers before any key is placed on it.
#include <numeric>
#include <set>

#include "common/base/units.hpp"
#include "common/placement/profiles/profile.hpp"
#include "common/placement/ring/check.hpp"
#include "common/placement/ring/shares.hpp"

namespace mcds {

namespace {

bool ignores_weights(const Rule& rule) {
  return rule.no_weights || (!rule.repeats && rule.points == nullptr);
}

// The maximum number of servers in libmemcached's ring.
constexpr std::size_t libmemcached_ring = 100;

bool is_address(const std::string& host) {
  return is_ipv6(host) || host.find_first_not_of("0123456789.") == std::string::npos;
}

bool is_named(const Server& server) {
  return !server.is_unix() && !is_address(server.host);
}

bool is_loopback(const Server& server) {
  return !server.is_unix() &&
         (server.host.starts_with("127.") || server.host == "::1" || server.host == "localhost");
}

bool has_capital(const Server& server) {
  return std::ranges::any_of(server.host, [](char c) { return c >= 'A' && c <= 'Z'; });
}

// Returns true for addresses such as 10.0.0.01.
bool has_leading_zero(const Server& server) {
  if (server.is_unix() || is_ipv6(server.host) || !is_address(server.host)) return false;
  char before = '.';
  for (std::size_t i = 0; i + 1 < server.host.size(); before = server.host[i++]) {
    if (before == '.' && server.host[i] == '0' && server.host[i + 1] != '.') return true;
  }
  return false;
}

class ListCheck {
 public:
  ListCheck(const Pool& listed, const Placement& placement, const PlacementOptions& options)
      : listed_(listed),
        pool_(without_repeats(listed)),
        placement_(placement),
        options_(options),
        rule_(profile_named(placement.profile()).rule) {}

  std::vector<Finding> run() {
    repeats();
    equal_names();
    spellings();
    unresolved();
    odd_port();
    reachable();
    too_many();
    zero_weights();
    weights_in_paths();
    copies();
    return std::move(findings_);
  }

 private:
  void add(const char* check, bool problem, std::string message, std::vector<std::size_t> servers = {}) {
    findings_.push_back({check, problem, std::move(message), std::move(servers)});
  }

  template <typename Is>
  std::vector<std::size_t> those(Is is) const {
    std::vector<std::size_t> servers;
    for (std::size_t i = 0; i < pool_.size(); ++i) {
      if (is(pool_[i])) servers.push_back(i);
    }
    return servers;
  }

  // Reports each server that `accepts` accepts, with its host before the text.
  template <typename Accepts>
  void report_hosts(const char* check, Accepts accepts, const char* text) {
    for (const std::size_t i : those(accepts)) add(check, true, pool_[i].host + text, {i});
  }

  bool divides_list() const {
    return rule_.distribution == Distribution::modulo && rule_.order == Order::as_given;
  }

  void repeats() {
    const std::vector<std::size_t> firsts = first_of_each(listed_);
    std::vector<std::size_t> times(listed_.size());
    for (const std::size_t first : firsts) ++times[first];
    for (std::size_t i = 0, index = 0; i < listed_.size(); ++i) {
      if (firsts[i] != i) continue;
      if (times[i] > 1)
        add("repeated_server", !divides_list(),
            listed_[i].address() + " is listed " + std::to_string(times[i]) +
                (divides_list()
                     ? " times: this client gives it that many shares; list it the same way in every client"
                     : " times, which clients treat differently; list it once, with a weight"),
            {index});
      ++index;
    }
  }

  void equal_names() {
    for (std::size_t i = 0; i < pool_.size(); ++i) {
      for (std::size_t j = i + 1; j < pool_.size(); ++j) {
        if (pool_[i].name.empty() || pool_[i].name != pool_[j].name) continue;
        add("equal_names", true,
            pool_[i].address() + " and " + pool_[j].address() + " have the name " + pool_[i].name +
                ": give each a different NAME",
            {i, j});
      }
    }
  }

  void spellings() {
    report_hosts(
        "mixed_case", has_capital,
        " has capital letters, and clients hash a name as it is written; use lower case in all clients");
    report_hosts(
        "trailing_dot", [](const Server& server) { return server.host.ends_with('.'); },
        " ends with a dot, which clients hash too; remove the dot in all clients");
    report_hosts(
        "leading_zero", has_leading_zero,
        " has a number that starts with 0, which some clients refuse and some read as octal; write it "
        "without the zero in all clients");
    const auto names = those([&](const Server& server) { return is_named(server) && !is_loopback(server); });
    const auto addresses =
        those([](const Server& server) { return !server.is_unix() && is_address(server.host); });
    if (!names.empty() && !addresses.empty())
      add("names_and_addresses", true,
          "some servers are given by name and some by address: " + pool_[names.front()].host + ", " +
              pool_[addresses.front()].host +
              "; write all of them in the same way, as in the client's configuration",
          names);
  }

  // Reports one port that differs, in a list of at least three servers on different hosts.
  void odd_port() {
    std::map<std::uint16_t, std::vector<std::size_t>> on_port;
    std::set<std::string> hosts;
    for (std::size_t i = 0; i < pool_.size(); ++i) {
      if (pool_[i].is_unix() || pool_[i].tls || !hosts.insert(pool_[i].host).second) return;
      on_port[pool_[i].port].push_back(i);
    }
    if (pool_.size() < 3 || on_port.size() != 2) return;
    const auto& [odd, usual] = std::minmax(on_port.begin()->second, on_port.rbegin()->second,
                                           [](const auto& a, const auto& b) { return a.size() < b.size(); });
    if (odd.size() != 1) return;
    add("odd_port", false,
        "only " + pool_[odd.front()].address() + " is not on the port " +
            std::to_string(pool_[usual.front()].port) +
            ", as the others are: if that is a slip, correct it in all clients",
        odd);
  }

  void unresolved() {
    if (!options_.resolver.address_of) return;
    for (const std::size_t i : those(is_named)) {
      if (options_.resolver.address_of(pool_[i].host)) continue;
      add("unresolved", true,
          "the name " + pool_[i].host + " has no address here: correct it, or check the name server", {i});
    }
  }

  void reachable() {
    report_hosts(
        "any_address", [](const Server& server) { return server.host == "0.0.0.0" || server.host == "::"; },
        " is an address to listen on, not to connect to: write the address that clients connect to");
    const auto local = those([](const Server& server) { return server.is_unix() || is_loopback(server); });
    if (!local.empty() && local.size() < pool_.size())
      add("local_server", true,
          pool_[local.front()].address() +
              " is a different server on every machine, unlike the rest of the list: write an address that "
              "all clients can reach",
          local);
    const auto by_tls = those([](const Server& server) { return server.tls; });
    if (!by_tls.empty() && by_tls.size() < pool_.size())
      add("some_tls", false, "only some of the servers use TLS: traffic to the others is not encrypted",
          by_tls);
  }

  void too_many() {
    const std::string_view client = profile_named(placement_.profile()).client->name;
    const bool libmemcached = client.starts_with("libmemcached") || client.starts_with("pylibmc") ||
                              client.starts_with("php-memcached");
    if (libmemcached && rule_.distribution == Distribution::ring && pool_.size() > libmemcached_ring)
      add("too_many_servers", true,
          std::to_string(pool_.size()) +
              " servers: libmemcached 1.1.4 aborts with more than 100 on a ring; divide the pool");
  }

  void weights_in_paths() {
    for (const std::size_t i :
         those([](const Server& one) { return one.socket_path.find("/?") != std::string::npos; }))
      add("weight_in_path", true,
          pool_[i].address() +
              ": the weight is a part of the path, which no server has; write it behind the path, after "
              "the quotation mark",
          {i});
  }

  void zero_weights() {
    const auto zero = those([](const Server& server) { return server.weight == 0; });
    if (zero.empty() || pool_.size() == 1) return;
    const bool counts = rule_.zero_weight_is_one || ignores_weights(rule_);
    add("zero_weight", true,
        pool_[zero.front()].address() + (counts
                                             ? " has the weight 0, which this client treats as 1: remove it "
                                               "from the list to give it no keys"
                                             : " has the weight 0 and gets no keys: remove it from the list"),
        zero);
  }

  void copies() {
    if (!placement_.replicates()) return;
    const Owners owners = placement_.owners_of(options_.key_prefix + "key");
    const std::size_t copies = owners.list.size();
    if (owners.policy != Policy::all) return;
    if (copies == pool_.size() && copies > 1)
      add("all_copies", false,
          "each key is kept on all " + std::to_string(copies) +
              " servers: together they hold no more than one of them");
    if (copies < pool_.size())
      add("replicated", false,
          "each key is kept on " + std::to_string(copies) + " of " + std::to_string(pool_.size()) +
              " servers: together they hold only 1/" + std::to_string(copies) + " of their memory");
  }

  const Pool& listed_;
  Pool pool_;
  const Placement& placement_;
  const PlacementOptions& options_;
  const Rule& rule_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> check_list(const Pool& listed, const Placement& placement,
                                const PlacementOptions& options) {
  return ListCheck(listed, placement, options).run();
}

std::vector<Finding> check_counts(const Placement& placement, const std::vector<std::uint64_t>& counts) {
  constexpr std::uint64_t few_keys_of_a_server = 20;
  const std::uint64_t all = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  if (counts.size() < 2 || all < few_keys_of_a_server * counts.size()) return {};
  const bool has_weights =
      !placement.route_weights().empty() || !ignores_weights(profile_named(placement.profile()).rule);
  const std::vector<double> fair = has_weights
                                       ? fair_shares(placement)
                                       : std::vector(counts.size(), 1.0 / static_cast<double>(counts.size()));
  std::vector<Finding> findings;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double share = static_cast<double>(counts[i]) / static_cast<double>(all);
    if (fair[i] == 0 || (share < much * fair[i] && share > little * fair[i])) continue;
    findings.push_back({"lopsided",
                        true,
                        placement.pool()[i].address() + " has " + std::to_string(counts[i]) + " of the " +
                            std::to_string(all) + " keys (" + format_percent(share) + "); fair would be " +
                            format_percent(fair[i]) + ": look for keys that hash alike, or for a hash tag",
                        {i}});
  }
  return findings;
}

}  // namespace mcds
