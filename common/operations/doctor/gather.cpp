#include "common/operations/doctor/gather.hpp"

#include <algorithm>

#include "common/base/bytes.hpp"
#include "common/cluster/distinct.hpp"
#include "common/cluster/name_lookup.hpp"
#include "common/placement/ring/shares.hpp"

namespace mcds::doctor {

namespace {

// `items:5:evicted 3` or `5:chunk_size 96`.
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
    seen_.patients.resize(seen_.pool().size());
    seen_.interval = options_.interval;
    peers_ = std::make_shared<Peers>();
    connecting_ = options_.connecting;
    connecting_.peers = peers_;
    connecting_.certificate = [this](std::size_t server, WallTime end) {
      seen_.patients[server].certificate_ends = end;
    };
    cluster_ = connect(seen_.placement, connecting_);
  }

  Examination run(const Pool& listed) {
    greet();
    const SteadyTime began = clock_.steady();
    look(&Patient::first, those_up(&Patient::first), {"", "settings", "items", "slabs"});
    find_same();
    resolve();
    judge_ring(listed);
    // Spread over the time, for a server may stop now and then.
    for (int round = 0; round <= probes; ++round) {
      const Duration left = options_.interval - (clock_.steady() - began);
      const Duration pause = std::max<Duration>(left / (probes + 1 - round), Duration::zero());
      if (options_.wait && !options_.wait(pause)) break;
      if (round < probes) probe();
    }
    look_again();
    list_clients();
    seen_.now = clock_.wall();
    return std::move(seen_);
  }

 private:
  using Which = Look Patient::*;

  std::vector<std::size_t> those_up(Which which) const {
    std::vector<std::size_t> servers;
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      if ((seen_.patients[i].*which).up) servers.push_back(i);
    }
    return servers;
  }

  std::vector<Reply> ask(Cluster& cluster, const std::vector<Request>& requests) {
    if (requests.empty()) return {};
    std::optional<std::size_t> last;
    for (const Request& request : requests) {
      if (last != request.server) ++seen_.patients[*request.server].trips;
      last = request.server;
    }
    return cluster.execute(requests);
  }

  // Whether each server is there at all: a proxy closes on `stats`.
  void greet() {
    std::vector<Request> requests;
    for (std::size_t i = 0; i < seen_.size(); ++i) requests.push_back(Request::version(i));
    for (Reply& reply : ask(*cluster_, requests)) {
      Patient& patient = seen_.patients[reply.server];
      patient.first.up = !reply.failed();
      patient.first.failure = reply.failure;
      if (patient.first.up) patient.version = std::move(reply.value);
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
      take(seen_.patients[replies[i].server].*which, requests[i].key, replies[i], asked, at, all);
  }

  void take(Look& look, const std::string& argument, const Reply& reply, WallTime asked, SteadyTime at,
            Duration all) {
    if (argument.empty()) {
      const Duration took = reply.round_trip ? Duration(*reply.round_trip) : all;
      look.asked = asked;
      look.answered = asked + std::chrono::duration_cast<WallTime::duration>(took);
      look.at = at + took;
      if (reply.failed()) look.silence = reply.failure->message, look.failure = reply.failure;
    }
    if (reply.failed()) return;
    if (argument.empty()) look.stats = Figures(reply.value);
    if (argument == "settings") look.settings = Figures(reply.value);
    if (argument == "items" || argument == "slabs") add_classes(look.classes, reply.value);
    if (argument == "items") look.knows_items = true;
    if (argument == "slabs") look.knows_slabs = true;
  }

  // All servers at a time; the answer of each is timed by itself.
  void probe() {
    std::vector<Request> requests;
    for (const std::size_t server : those_up(&Patient::first)) {
      if (!seen_.patients[server].lost_probe) requests.push_back(Request::version(server));
    }
    for (const Reply& reply : ask(*cluster_, requests)) {
      Patient& patient = seen_.patients[reply.server];
      if (reply.failed()) patient.lost_probe = true;
      if (!reply.failed() && reply.round_trip) patient.probes.push_back(*reply.round_trip);
    }
  }

  // Who gave statistics is asked for them again, and everybody else whether it is there; by new connections,
  // as other clients come.
  void look_again() {
    cluster_ = connect(seen_.placement, connecting_);
    std::vector<Request> requests;
    std::vector<std::size_t> told;
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      Patient& patient = seen_.patients[i];
      patient.second.up = patient.first.up;
      patient.second.settings = patient.first.settings;
      patient.first.stats.known() ? told.push_back(i) : requests.push_back(Request::version(i));
    }
    for (const Reply& reply : ask(*cluster_, requests)) {
      Patient& patient = seen_.patients[reply.server];
      patient.second.up = !reply.failed();
      patient.second.failure = reply.failure;
      // It came up meanwhile, or did not: the first look says what it was like.
      if (!patient.first.up) patient.second.at = clock_.steady();
    }
    look(&Patient::second, told, {"", "items", "slabs"});
    for (const std::size_t server : told)
      seen_.patients[server].second.up = seen_.patients[server].second.stats.known();
  }

  // Asks whose connections they are: all servers if that is wanted, which costs with their number, else those
  // that have few left.
  void list_clients() {
    std::vector<Request> requests;
    for (const std::size_t server : those_up(&Patient::second)) {
      if (options_.connections || seen_.patients[server].has_few_connections_left())
        requests.push_back(Request::stats(server, "conns"));
    }
    for (const Reply& reply : ask(*cluster_, requests)) {
      if (!reply.failed()) seen_.patients[reply.server].clients = clients_in(reply.value);
    }
  }

  void find_same() {
    Statistics statistics;
    for (std::size_t i = 0; i < seen_.size(); ++i) statistics[i] = seen_.patients[i].first.stats.lines();
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

  // The family with the most addresses: a name with one of each is one server.
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
        auto& most = seen_.patients[i].addresses;
        if (addresses.size() > most.size()) most.assign(addresses.begin(), addresses.end());
      }
    }
  }

  void judge_ring(const Pool& listed) {
    const Placement& placement = *seen_.placement;
    seen_.ring = check_list(listed, placement, options_.placing);
    for (Finding& finding : check_ring(placement, options_.placing)) seen_.ring.push_back(std::move(finding));
    RingShares shares = ring_shares(placement, options_.placing.key_prefix);
    seen_.shares = std::move(shares.shares);
    seen_.fair = std::move(shares.fair);
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
