#include "common/cluster/distinct.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>

#include "common/cluster/name_lookup.hpp"
#include "common/cluster/statistics.hpp"

namespace mcds {

namespace {

struct End {
  std::string address;
  int family = 0;
  std::uint16_t port = 0;
};

std::optional<End> end_of(const sockaddr_storage& storage, socklen_t size) {
  if (storage.ss_family != AF_INET && storage.ss_family != AF_INET6) return std::nullopt;
  const auto host = host_of(reinterpret_cast<const sockaddr*>(&storage), size);
  if (!host) return std::nullopt;
  // Both address families have the port at the same offset.
  End end{*host, storage.ss_family, ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port)};
  // An IPv4 address mapped into IPv6 is the same server as the plain address.
  if (end.address.starts_with("::ffff:") && end.address.find('.') != std::string::npos)
    end = {end.address.substr(end.address.rfind(':') + 1), AF_INET, end.port};
  return end;
}

ServerPairs of_one_incarnation(const Statistics& statistics) {
  std::vector<std::pair<std::size_t, ServerStart>> starts;
  ServerPairs pairs;
  for (const auto& [server, lines] : statistics) {
    const auto start = ServerStart::of(lines);
    if (!start) continue;
    for (const auto& [other, its] : starts) {
      if (its.is(*start)) pairs.emplace_back(other, server);
    }
    starts.emplace_back(server, *start);
  }
  return pairs;
}

// Returns true if the connection counts under two names fit a single server. They were read three times. One
// server's count never decreases, and after the first reading it grows by at least `opened`.
bool counts_as_one(const std::array<Statistics, 3>& looks, std::pair<std::size_t, std::size_t> names,
                   std::uint64_t opened) {
  std::uint64_t least = 0;
  for (const Statistics& look : looks) {
    const auto one = look.find(names.first), other = look.find(names.second);
    if (one == look.end() || other == look.end()) return false;
    const auto its = statistic_number(one->second, "total_connections");
    const auto others = statistic_number(other->second, "total_connections");
    if (!its || !others) return true;  // not reported
    if (std::min(*its, *others) < least) return false;
    least = std::max(*its, *others) + std::exchange(opened, 0);
  }
  return true;
}

}  // namespace

std::optional<Peer> peer_of(int descriptor, const std::string& socket_path) {
  if (!socket_path.empty()) {
    struct stat file {};
    if (stat(socket_path.c_str(), &file) != 0) return std::nullopt;
    return Peer{.place = std::to_string(file.st_dev) + ' ' + std::to_string(file.st_ino)};
  }
  sockaddr_storage theirs{}, ours{};
  socklen_t size = sizeof theirs;
  if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&theirs), &size) != 0) return std::nullopt;
  const auto end = end_of(theirs, size);
  if (!end) return std::nullopt;
  Peer peer{
      .place = end->address + ' ' + std::to_string(end->port), .family = end->family, .port = end->port};
  size = sizeof ours;
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&ours), &size) == 0) {
    const auto own = end_of(ours, size);
    const bool loops = end->family == AF_INET && end->address.starts_with("127.");
    peer.here = loops || (own && own->address == end->address);
  }
  return peer;
}

void Peers::note(std::size_t server, std::optional<Peer> peer) {
  if (!peer) return;
  const auto known = peers_.find(server);
  if (known != peers_.end() && known->second == *peer) return;
  changed_ = true;
  for (const auto& [other, its] : peers_) {
    const bool may_be_one = peer->port != 0 && peer->port == its.port && peer->place != its.place &&
                            (peer->family != its.family || (peer->here && its.here));
    const std::pair pair = std::minmax(server, other);
    if (other != server && may_be_one && !taken_.contains(pair)) uncertain_.insert(pair);
  }
  peers_[server] = std::move(*peer);
}

std::optional<std::pair<std::size_t, std::size_t>> Peers::same_place() const {
  const auto all = all_of_one_place();
  return all.empty() ? std::nullopt : std::optional(all.front());
}

ServerPairs Peers::all_of_one_place() const {
  ServerPairs pairs;
  std::map<std::string_view, std::size_t> at;
  for (const auto& [server, peer] : peers_) {
    const auto [other, is_new] = at.try_emplace(peer.place, server);
    if (!is_new) pairs.emplace_back(other->second, server);
  }
  return pairs;
}

std::set<std::pair<std::size_t, std::size_t>> Peers::take_uncertain() {
  taken_.insert(uncertain_.begin(), uncertain_.end());
  return std::exchange(uncertain_, {});
}

Statistics statistics_of(const std::set<std::size_t>& servers, const AskServers& ask) {
  std::vector<Request> requests;
  for (const std::size_t server : servers) requests.push_back(Request::stats(server));
  Statistics statistics;
  for (Reply& reply : ask(requests)) {
    if (!reply.failed()) statistics[reply.server] = std::move(reply.value);
  }
  return statistics;
}

ServerPairs seen_as_one(Statistics before, const AskServers& open, const AskServers& ask) {
  ServerPairs pairs = of_one_incarnation(before);
  if (pairs.empty()) return pairs;
  std::set<std::size_t> servers, opened;
  for (const auto& [one, other] : pairs) servers.insert({one, other});
  std::vector<Request> greetings;
  for (const std::size_t server : servers) greetings.push_back(Request::version(server));
  for (const Reply& reply : open(greetings)) {
    if (!reply.failed()) opened.insert(reply.server);
  }
  std::array<Statistics, 3> looks{std::move(before)};
  looks[1] = statistics_of(servers, ask);
  looks[2] = statistics_of(servers, ask);
  std::erase_if(pairs, [&](const auto& pair) {
    return !counts_as_one(looks, pair, opened.count(pair.first) + opened.count(pair.second));
  });
  return pairs;
}

std::vector<Reply> DistinctServers::execute(std::span<const Request> batch) {
  expect_distinct();
  std::vector<Reply> replies = inner().execute(batch);
  note(replies);
  return replies;
}

void DistinctServers::note(const std::vector<Reply>& replies) {
  expect_distinct();
  silent_ = silent_ || std::ranges::any_of(replies, &Reply::failed);
}

std::unique_ptr<Pending> DistinctServers::begin(std::vector<Request> batch) {
  expect_distinct();
  return settled_later(inner().begin(std::move(batch)),
                       [this](std::span<const Request>, std::vector<Reply>& replies) { note(replies); });
}

void DistinctServers::expect_distinct() {
  const auto ask = [this](const std::vector<Request>& requests) { return inner().execute(requests); };
  while (!same_ && peers_->changed()) {
    same_ = peers_->same_place();
    std::set<std::size_t> uncertain;
    for (const auto& [one, other] : peers_->take_uncertain()) uncertain.insert({one, other});
    if (same_ || uncertain.empty()) continue;
    const ServerPairs found = seen_as_one(statistics_of(uncertain, ask), open_, ask);
    if (!found.empty()) same_ = found.front();
  }
  if (!same_) return;
  const std::string first = address_of(same_->first), second = address_of(same_->second);
  throw Failure(
      ErrorCode::configuration,
      first + " and " + second +
          " are one server, so two copies would be in one place; list the server once, or use --copies 1",
      second);
}

}  // namespace mcds
