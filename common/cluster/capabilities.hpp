// What servers can do, known before it is relied upon.
//
// memcached from 1.4 on expires what it is told to; that its version says so, in the greeting, is proof enough. Whether it
// keeps cas uniques (not when started with -C) shows only when one is fetched: a `gets` goes with the first add that is to
// be compared later, in the same trip, and when it shows none the add is taken back. Other servers, and what is behind a
// proxy, are asked once, by a probe key that must have a unique and must be gone when it has expired; before anything that
// relies on it is sent, or, on a connection whose first words those were, right after, and then that is taken back.
//
// Requests say what they rely on (Request::must_expire, must_compare). What cannot be kept is `refused`, and nothing of it
// is left behind.
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
  // Learns what there is to be known of this server without a probe key.
  void read_dialect(std::size_t server);
  bool is_open(std::size_t server, const Request& request) const;
  // The failure that kept it from being known.
  std::optional<Reply> prove(std::size_t server);
  void prove_before(std::span<const Request> batch);
  void prove_stored(std::span<const Request> batch, std::span<const Reply> replies);
  Refusal refusal_of(const Request& request) const;
  std::vector<Reply> send(std::span<const Request> batch);
  // Refuses what was stored and turned out not to be kept.
  void take_back(std::span<const Request> batch, std::vector<Reply>& replies);

  std::unique_ptr<Transport> transport_;
  SystemRandom random_;
  std::vector<Capabilities> known_;
  std::map<std::size_t, Reply> silent_;  // servers that gave no answer to the probe of this batch
};

}  // namespace mcds
