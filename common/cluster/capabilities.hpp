// What servers can do, found out before anything relies on it.
//
// memcached from 1.4 on expires items; if the greeting shows such a version, that is proof enough. Whether a
// server supports cas (not if started with -C) shows only when an item is fetched: a `gets` goes in the same
// trip as the first add that will be compared later, and if it returns no cas unique, the add is undone.
// Other servers, and those behind a proxy, are asked once with a probe key that must have a cas unique and
// must be gone when it has expired. This happens before anything that relies on it is sent, or, for the first
// request of a connection, right after it, and then that request is undone.
//
// Requests state what they rely on (Request::must_expire, must_compare). What a server cannot do is
// `refused`, and nothing of it is left behind.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/random.hpp"
#include "common/cluster/transport.hpp"

namespace mcds {

struct Capabilities {
  std::optional<bool> expiry;
  std::optional<bool> cas;
};

class CapabilityGate final : public Cluster {
 public:
  explicit CapabilityGate(std::unique_ptr<Transport> transport);
  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override;
  std::unique_ptr<Pending> begin(std::vector<Request> batch) override;
  const Placement& placement() const override { return transport_->placement(); }

 private:
  using Refusal = std::optional<std::string>;

  bool relies(const Request& request) const { return request.must_expire || request.must_compare; }
  // Learns what can be known of this server without a probe key.
  void read_dialect(std::size_t server);
  bool is_open(std::size_t server, const Request& request) const;
  // The failure that kept it from being known.
  std::optional<Reply> prove(std::size_t server);
  bool can_all(std::span<const Request> batch);
  void prove_before(std::span<const Request> batch);
  void prove_stored(std::span<const Request> batch, std::span<const Reply> replies);
  Refusal refusal_of(const Request& request) const;
  std::vector<Reply> send(std::span<const Request> batch);
  // Refuses what was stored if it turns out that the server does not keep it.
  void take_back(std::span<const Request> batch, std::vector<Reply>& replies);

  std::unique_ptr<Transport> transport_;
  SystemRandom random_;
  std::vector<Capabilities> known_;
  std::map<std::size_t, Reply> silent_;  // servers that did not answer the probe of this batch
};

}  // namespace mcds
