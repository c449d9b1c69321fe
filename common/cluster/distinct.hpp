// Two names of one server in a list of servers: two copies there would be one.
//
// The sockets note where each connection ends. Two that end at one address and port, or one unix socket, are
// one server. A server may also have two addresses: if two connections end on this machine, or at addresses
// of both families, and at one port, the two are asked for their process and its start. That is one more
// round trip, once, and only where it can tell something.
// What it cannot see: a server elsewhere under two addresses of one family, and one that is also behind a
// proxy or a forwarded port.
// The first batch is on its way when both are known to be connected: what changes nothing before it has read
// has changed nothing.
#pragma once

#include <map>
#include <set>

#include "common/cluster/decorators.hpp"

namespace mcds {

// Where a connection ends.
struct Peer {
  std::string place;       // address and port, or the device and inode of a unix socket
  int family = 0;          // of an address
  std::uint16_t port = 0;  // 0: a unix socket
  bool here = false;       // at an address of this machine
  bool operator==(const Peer&) const = default;
};

// nullopt: it is not known.
std::optional<Peer> peer_of(int descriptor, const std::string& socket_path);

using ServerPairs = std::vector<std::pair<std::size_t, std::size_t>>;

// Of the servers of one cluster.
class Peers {
 public:
  void note(std::size_t server, std::optional<Peer> peer);
  // Two of one place; all such pairs, of each place its first server and another.
  std::optional<std::pair<std::size_t, std::size_t>> same_place() const;
  ServerPairs all_of_one_place() const;
  // Two that may be one, once each.
  std::set<std::pair<std::size_t, std::size_t>> take_doubtful();
  // Whether anything was noted since this was last asked.
  bool changed() { return std::exchange(changed_, false); }

 private:
  std::map<std::size_t, Peer> peers_;
  std::set<std::pair<std::size_t, std::size_t>> doubtful_, taken_;
  bool changed_ = false;
};

// Asks as many servers as there are requests.
using AskServers = std::function<std::vector<Reply>(const std::vector<Request>&)>;
// What servers answered to `stats`, by server; those that did not are not in it.
using Statistics = std::map<std::size_t, std::string>;
Statistics statistics_of(const std::set<std::size_t>& servers, const AskServers& ask);

// Those of `before` that are one server. `open` asks by new connections, `ask` by those that there are.
ServerPairs seen_as_one(Statistics before, const AskServers& open, const AskServers& ask);

// Every batch fails, by Failure(configuration) with both names, once two servers are known to be one. It also
// knows whether a server did not answer.
class DistinctServers final : public Decorator {
 public:
  DistinctServers(std::unique_ptr<Cluster> inner, std::shared_ptr<Peers> peers, AskServers open)
      : Decorator(std::move(inner)), peers_(std::move(peers)), open_(std::move(open)) {}
  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override;
  std::unique_ptr<Pending> begin(std::vector<Request> batch) override;
  // Throws the same.
  void expect_distinct();
  // Whether a request has stayed without a reply.
  bool has_been_silent() const { return silent_; }

 private:
  void note(const std::vector<Reply>& replies);

  std::shared_ptr<Peers> peers_;
  AskServers open_;
  std::optional<std::pair<std::size_t, std::size_t>> same_;
  bool silent_ = false;
};

}  // namespace mcds
