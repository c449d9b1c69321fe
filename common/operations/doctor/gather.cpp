#include "common/operations/doctor/gather.hpp"

#include <algorithm>

#include "common/base/bytes.hpp"
#include "common/cluster/distinct.hpp"
#include "common/cluster/libmemcached/configured.hpp"
#include "common/cluster/name_lookup.hpp"
#include "common/placement/ring/shares.hpp"

namespace mcds::doctor {

namespace {

// Adds lines such as `items:5:evicted 3` and `5:chunk_size 96`.
void add_classes(SlabClasses& classes, std::string_view lines) {
  for_each_statistic(lines, [&](std::string_view name, std::string_view text) {
    if (name.starts_with("items:")) name.remove_prefix(6);
    const auto number = parse_u64(take_word(name, ':'));
    const auto value = parse_u64(text);
    if (number && value) classes[*number].insert_or_assign(std::string(name), *value);
  });
}

class Gatherer {
 public:
  Gatherer(std::shared_ptr<const Placement> placement, const Clock& clock, GatherOptions options)
      : clock_(clock), options_(std::move(options)) {
    seen_.placement = std::move(placement);
    seen_.snapshots.resize(seen_.pool().size());
    seen_.interval = options_.interval;
    peers_ = std::make_shared<Peers>();
    connecting_ = options_.connecting;
    connecting_.peers = peers_;
    connecting_.certificate = [this](std::size_t server, WallTime end) {
      seen_.snapshots[server].certificate_ends = end;
    };
    cluster_ = connect(seen_.placement, connecting_);
  }

  Examination run(const Pool& listed) {
    greet();
    const SteadyTime began = clock_.steady();
    look(&ServerSnapshot::before, those_up(&ServerSnapshot::before), {"", "settings", "items", "slabs"});
    find_same();
    resolve();
    judge_ring(listed);
    // The probes are spread over the interval, because a server may pause now and then.
    for (int round = 0; round <= probes; ++round) {
      const Duration left = options_.interval - (clock_.steady() - began);
      const Duration pause = std::max<Duration>(left / (probes + 1 - round), Duration::zero());
      if (options_.wait && !options_.wait(pause)) break;
      if (round < probes) probe();
    }
    reread();
    list_clients();
    seen_.now = clock_.wall();
    return std::move(seen_);
  }

 private:
  using Which = Reading ServerSnapshot::*;

  std::vector<std::size_t> those_up(Which which) const {
    std::vector<std::size_t> servers;
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      if ((seen_.snapshots[i].*which).up) servers.push_back(i);
    }
    return servers;
  }

  std::vector<Reply> ask(Cluster& cluster, const std::vector<Request>& requests) {
    if (requests.empty()) return {};
    std::optional<std::size_t> last;
    for (const Request& request : requests) {
      if (last != request.server) ++seen_.snapshots[*request.server].trips;
      last = request.server;
    }
    return cluster.execute(requests);
  }

  // Checks which servers answer at all. `version` is used because a proxy closes on `stats`.
  void greet() {
    std::vector<Request> requests;
    for (std::size_t i = 0; i < seen_.size(); ++i) requests.push_back(Request::version(i));
    for (Reply& reply : ask(*cluster_, requests)) {
      ServerSnapshot& snapshot = seen_.snapshots[reply.server];
      snapshot.before.up = !reply.failed();
      snapshot.before.failure = reply.failure;
      if (snapshot.before.up) snapshot.version = std::move(reply.value);
    }
  }

  void look(Which which, const std::vector<std::size_t>& servers, const std::vector<std::string>& arguments) {
    std::vector<Request> requests;
    for (const std::size_t server : servers) {
      for (const std::string& argument : arguments) requests.push_back(Request::stats(server, argument));
    }
    const WallTime asked = clock_.wall();
    const SteadyTime at = clock_.steady();
    const std::vector<Reply> replies = ask(*cluster_, requests);
    const Duration all = clock_.steady() - at;
    for (std::size_t i = 0; i < replies.size(); ++i)
      take(seen_.snapshots[replies[i].server].*which, requests[i].key, replies[i], asked, at, all);
  }

  void take(Reading& look, const std::string& argument, const Reply& reply, WallTime asked, SteadyTime at,
            Duration all) {
    if (argument.empty()) {
      const Duration took = reply.round_trip ? Duration(*reply.round_trip) : all;
      look.asked = asked;
      look.answered = asked + std::chrono::duration_cast<WallTime::duration>(took);
      look.at = at + took;
      if (reply.failed()) look.silence = reply.failure->message, look.failure = reply.failure;
    }
    if (reply.failed()) return;
    if (argument.empty()) look.stats = StatisticsReply(reply.value);
    if (argument == "settings") look.settings = StatisticsReply(reply.value);
    if (argument == "items" || argument == "slabs") add_classes(look.classes, reply.value);
    if (argument == "items") look.knows_items = true;
    if (argument == "slabs") look.knows_slabs = true;
  }

  // Probes all servers concurrently; each reply is timed separately.
  void probe() {
    std::vector<Request> requests;
    for (const std::size_t server : those_up(&ServerSnapshot::before)) {
      if (!seen_.snapshots[server].lost_probe) requests.push_back(Request::version(server));
    }
    for (const Reply& reply : ask(*cluster_, requests)) {
      ServerSnapshot& snapshot = seen_.snapshots[reply.server];
      if (reply.failed()) snapshot.lost_probe = true;
      if (!reply.failed() && reply.round_trip) snapshot.probes.push_back(*reply.round_trip);
    }
  }

  // Reads the statistics a second time from servers that returned them the first time, and the version from
  // the others. Opens new connections, as other clients would.
  void reread() {
    cluster_ = connect(seen_.placement, connecting_);
    std::vector<Request> requests;
    std::vector<std::size_t> reported;
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      ServerSnapshot& snapshot = seen_.snapshots[i];
      snapshot.after.up = snapshot.before.up;
      snapshot.after.settings = snapshot.before.settings;
      snapshot.before.stats.known() ? reported.push_back(i) : requests.push_back(Request::version(i));
    }
    for (const Reply& reply : ask(*cluster_, requests)) {
      ServerSnapshot& snapshot = seen_.snapshots[reply.server];
      snapshot.after.up = !reply.failed();
      snapshot.after.failure = reply.failure;
      // The server came up meanwhile or is still down; the first reading has the details.
      if (!snapshot.before.up) snapshot.after.at = clock_.steady();
    }
    look(&ServerSnapshot::after, reported, {"", "items", "slabs"});
    for (const std::size_t server : reported)
      seen_.snapshots[server].after.up = seen_.snapshots[server].after.stats.known();
  }

  // Lists the connections of servers that have few left; if requested, of all servers.
  void list_clients() {
    std::vector<Request> requests;
    for (const std::size_t server : those_up(&ServerSnapshot::after)) {
      if (options_.connections || seen_.snapshots[server].has_few_connections_left())
        requests.push_back(Request::stats(server, "conns"));
    }
    for (const Reply& reply : ask(*cluster_, requests)) {
      if (!reply.failed()) seen_.snapshots[reply.server].clients = clients_in(reply.value);
    }
  }

  void find_same() {
    Statistics statistics;
    for (std::size_t i = 0; i < seen_.size(); ++i) statistics[i] = seen_.snapshots[i].before.stats.lines();
    const auto open = [this](const std::vector<Request>& requests) {
      return ask(*connect(seen_.placement, options_.connecting), requests);
    };
    const auto again = [this](const std::vector<Request>& requests) { return ask(*cluster_, requests); };
    std::map<std::size_t, std::set<std::size_t>> groups;
    for (const auto& [one, other] : peers_->all_of_one_place()) groups[one].insert({one, other});
    for (const auto& [one, other] : seen_as_one(std::move(statistics), open, again))
      groups[one].insert({one, other});
    for (const auto& [first, group] : groups) seen_.same.emplace_back(group.begin(), group.end());
  }

  // Uses the address family with the most addresses: a name with one address of each family is one server.
  void resolve() {
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      const Server& server = seen_.pool()[i];
      if (server.is_unix() || is_address(server.host)) continue;
      const NameLookup found = look_up(server.host, std::to_string(server.port),
                                       options_.connecting.left(clock_, options_.connecting.connect_timeout));
      std::map<int, std::set<std::string>> families;
      for (const addrinfo* one = found.addresses.get(); one != nullptr; one = one->ai_next) {
        if (const auto host = host_of(one->ai_addr, one->ai_addrlen)) families[one->ai_family].insert(*host);
      }
      for (const auto& [family, addresses] : families) {
        auto& most = seen_.snapshots[i].addresses;
        if (addresses.size() > most.size()) most.assign(addresses.begin(), addresses.end());
      }
    }
  }

  void judge_ring(const Pool& listed) {
    const Placement& placement = *seen_.placement;
    seen_.ring = check_list(listed, placement, options_.placing);
    for (Finding& finding : check_ring(placement, options_.placing)) seen_.ring.push_back(std::move(finding));
    for (Finding& finding : libmemcached::check_installed(listed, placement))
      seen_.ring.push_back(std::move(finding));
    seen_.ignores_weights = ignores_weights();
    RingShares shares = ring_shares(placement, options_.placing.key_prefix);
    seen_.shares = std::move(shares.shares);
    seen_.fair = std::move(shares.fair);
  }

  // Tries other weights, because a list without any does not show it. Those of libmemcached's own string are
  // judged with the ring.
  bool ignores_weights() const {
    constexpr std::size_t tried = 100;
    if (options_.placing.asked != nullptr)
      return std::ranges::any_of(seen_.ring, [](const Finding& finding) {
        return std::string_view(finding.check) == "weights_ignored";
      });
    Pool pool = seen_.pool();
    for (Server& server : pool) server.weight = 1;
    const auto equal = make_placement(seen_.placement->profile(), pool, options_.placing);
    for (std::size_t i = 0; i < pool.size(); i += 2) pool[i].weight = 3;
    const auto weighted = make_placement(seen_.placement->profile(), pool, options_.placing);
    for (std::size_t i = 0; i < tried; ++i) {
      const std::string key = options_.placing.key_prefix + std::to_string(i);
      if (equal->server_of(key) != weighted->server_of(key)) return false;
    }
    return true;
  }

  const Clock& clock_;
  GatherOptions options_;
  ConnectOptions connecting_;
  Examination seen_;
  std::shared_ptr<Peers> peers_;
  std::unique_ptr<Cluster> cluster_;
};

}  // namespace

Examination gather(std::shared_ptr<const Placement> placement, const Pool& listed, const Clock& clock,
                   GatherOptions options) {
  return Gatherer(std::move(placement), clock, std::move(options)).run(listed);
}

}  // namespace mcds::doctor
