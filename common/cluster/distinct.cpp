#include "common/cluster/distinct.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "common/cluster/statistics.hpp"

namespace mcds {

namespace {

struct End {
  std::string address;
  int family = 0;
  std::uint16_t port = 0;
};

// An IPv4 address within IPv6 is the same as without.
std::optional<End> end_of(const sockaddr_storage& storage) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  End end;
  if (storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
    if (inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size()) == nullptr) return std::nullopt;
    end = {text.data(), AF_INET, ntohs(v4.sin_port)};
  } else if (storage.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
    if (inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size()) == nullptr) return std::nullopt;
    end = {text.data(), AF_INET6, ntohs(v6.sin6_port)};
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr))
      end = {end.address.substr(end.address.rfind(':') + 1), AF_INET, end.port};
    else if (v6.sin6_scope_id != 0)
      end.address += '%' + std::to_string(v6.sin6_scope_id);
  } else {
    return std::nullopt;
  }
  return end;
}

std::optional<ServerLife> life_of(const Reply& stats) {
  return stats.outcome == Outcome::hit ? ServerLife::of(stats.value) : std::nullopt;
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
  const auto end = end_of(theirs);
  if (!end) return std::nullopt;
  Peer peer{
      .place = end->address + ' ' + std::to_string(end->port), .family = end->family, .port = end->port};
  size = sizeof ours;
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&ours), &size) == 0) {
    const auto own = end_of(ours);
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
    if (other != server && may_be_one && !taken_.contains(pair)) doubtful_.insert(pair);
  }
  peers_[server] = std::move(*peer);
}

std::optional<std::pair<std::size_t, std::size_t>> Peers::same_place() const {
  const auto all = all_of_one_place();
  return all.empty() ? std::nullopt : std::optional(all.front());
}

std::vector<std::pair<std::size_t, std::size_t>> Peers::all_of_one_place() const {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  std::map<std::string_view, std::size_t> at;
  for (const auto& [server, peer] : peers_) {
    const auto [other, is_new] = at.try_emplace(peer.place, server);
    if (!is_new) pairs.emplace_back(other->second, server);
  }
  return pairs;
}

std::set<std::pair<std::size_t, std::size_t>> Peers::take_doubtful() {
  taken_.insert(doubtful_.begin(), doubtful_.end());
  return std::exchange(doubtful_, {});
}

std::vector<Reply> DistinctServers::execute(std::span<const Request> batch) {
  expect_distinct();
  std::vector<Reply> replies = inner().execute(batch);
  note(replies);
  return replies;
}

void DistinctServers::note(const std::vector<Reply>& replies) {
  expect_distinct();
  silent_ =
      silent_ || std::any_of(replies.begin(), replies.end(), [](const Reply& one) { return one.failed(); });
}

std::unique_ptr<Pending> DistinctServers::begin(std::vector<Request> batch) {
  expect_distinct();
  return settled_later(inner().begin(std::move(batch)),
                       [this](std::span<const Request>, std::vector<Reply>& replies) { note(replies); });
}

void DistinctServers::expect_distinct() {
  while (!same_ && peers_->changed()) {
    same_ = peers_->same_place();
    for (const auto& [one, other] : peers_->take_doubtful()) {
      if (same_) break;
      const std::vector<Request> asks{Request::stats(one), Request::stats(other)};
      const std::vector<Reply> told = inner().execute(asks);
      const auto life = life_of(told[0]), its = life_of(told[1]);
      if (life && its && life->is(*its)) same_ = {one, other};
    }
  }
  if (!same_) return;
  const std::string first = address_of(same_->first), second = address_of(same_->second);
  throw Failure(ErrorCode::configuration,
                first + " and " + second +
                    " are one server, so two copies would be in one place; list it once, or use --copies 1",
                second);
}

}  // namespace mcds
