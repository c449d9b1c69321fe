// DistinctServers: detects a pool that lists one server under two names, where two copies would be one item.
//
// Each connection records its remote end. Two servers with the same address and port, or the same unix
// socket, are one. A server may also have two addresses. Two connections to the same port may therefore be
// one server if both end on this machine, or if their addresses are of different families. Such a pair is
// asked once for its process and start time, which costs one more round trip.
//
// Not detected: a remote server with two addresses of one family, and a server that is also behind a proxy or
// a forwarded port. A conflict is found once both servers are connected, which is when the first batch is
// already in flight. A caller that reads before it changes anything has changed nothing by then.
#pragma once

#include <map>
#include <set>

#include "common/cluster/decorators.hpp"

namespace mcds {

// The remote end of a connection.
struct Peer {
  std::string place;       // address and port, or the device and inode of a unix socket
  int family = 0;          // of the address
  std::uint16_t port = 0;  // 0 for a unix socket
  bool here = false;       // the address is one of this machine
  bool operator==(const Peer&) const = default;
};

// Returns the peer of a connected socket, or nullopt if it cannot be determined.
std::optional<Peer> peer_of(int descriptor, const std::string& socket_path);

using ServerPairs = std::vector<std::pair<std::size_t, std::size_t>>;

// Collects the peers of one cluster's servers.
class Peers {
 public:
  void note(std::size_t server, std::optional<Peer> peer);
  // Returns the first pair of all_of_one_place(), if any.
  std::optional<std::pair<std::size_t, std::size_t>> same_place() const;
  ServerPairs all_of_one_place() const;
  // Returns the pairs that may be one server and were not returned before.
  std::set<std::pair<std::size_t, std::size_t>> take_uncertain();
  // Returns true if a peer was added or changed since the last call.
  bool changed() { return std::exchange(changed_, false); }

 private:
  std::map<std::size_t, Peer> peers_;
  std::set<std::pair<std::size_t, std::size_t>> uncertain_, taken_;
  bool changed_ = false;
};

// Sends one request to each of several servers.
using AskServers = std::function<std::vector<Reply>(const std::vector<Request>&)>;
// Replies to `stats`, by server; servers that did not answer are absent.
using Statistics = std::map<std::size_t, std::string>;
Statistics statistics_of(const std::set<std::size_t>& servers, const AskServers& ask);

// Returns the pairs of `before` that are one server. `open` uses new connections, `ask` existing ones.
ServerPairs seen_as_one(Statistics before, const AskServers& open, const AskServers& ask);

// Fails every batch with Failure(configuration), which names both servers, once two of them are known to be
// one. It also records whether a request stayed unanswered.
class DistinctServers final : public Decorator {
 public:
  DistinctServers(std::unique_ptr<Cluster> inner, std::shared_ptr<Peers> peers, AskServers open)
      : Decorator(std::move(inner)), peers_(std::move(peers)), open_(std::move(open)) {}
  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override;
  std::unique_ptr<Pending> begin(std::vector<Request> batch) override;
  // Throws that Failure if two servers are known to be one.
  void expect_distinct();
  // Returns true if any request has failed.
  bool has_been_silent() const { return silent_; }

 private:
  void note(const std::vector<Reply>& replies);

  std::shared_ptr<Peers> peers_;
  AskServers open_;
  std::optional<std::pair<std::size_t, std::size_t>> same_;
  bool silent_ = false;
};

}  // namespace mcds
