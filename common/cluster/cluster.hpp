// The one seam between data structures and servers.
//
// A batch of requests goes in, replies come out in the same order. One call is at most one round trip to each
// server involved (the composites may take more on servers without meta commands), all servers in parallel.
// Requests to the same server are executed in the order of the batch; between servers there is no order.
// Nothing is ever resent. execute() never throws for what servers or networks do: each reply says for itself.
// No call lasts longer than the transport's deadlines allow.
//
// begin() sends a batch and leaves its replies for later, so that servers work while the caller does. Batches are executed
// in the order they are begun, whether by begin() or execute(), and may be finished in any.
//
// Implementations: connect() (classic or meta transport), MemoryCluster in tests; decorators in
// decorators.hpp.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/errors.hpp"
#include "common/cluster/login.hpp"
#include "common/cluster/reply.hpp"
#include "common/cluster/request.hpp"
#include "common/cluster/tls/options.hpp"
#include "common/placement/placement.hpp"

namespace mcds {

// A batch on its way; its cluster outlives it. Dropped unfinished, what it sent may be applied, and other batches on their
// way to the same servers fail.
class Pending {
 public:
  virtual ~Pending() = default;
  // As execute(): waits for what is missing, and the time since begin() is not held against the servers. Once.
  virtual std::vector<Reply> finish() = 0;
};

class Cluster {
 public:
  virtual ~Cluster() = default;
  virtual std::vector<Reply> execute(std::span<const Request> batch) = 0;
  // Unless overridden, the batch is executed at once.
  virtual std::unique_ptr<Pending> begin(std::vector<Request> batch);
  virtual const Placement& placement() const = 0;

  Reply execute(const Request& request) { return std::move(execute(std::span(&request, 1)).front()); }
  std::size_t server_of(const Request& request) const {
    return request.server ? *request.server : placement().server_of(request.placed_by());
  }
  std::string address_of(std::size_t server) const { return placement().pool().at(server).address(); }
};

// The reply itself, unless it failed: then NotApplied, UnknownOutcome or CorruptData (incr on text) is
// thrown.
const Reply& expect(const Cluster& cluster, const Reply& reply);
Reply expect(const Cluster& cluster, Reply&& reply);
// As expect, for requests that change nothing: without a reply they are NotApplied (unavailable).
const Reply& expect_read(const Cluster& cluster, const Reply& reply);

// What a server that said nothing usable to a read is reported as: access_denied, or unavailable.
ErrorCode error_code_of_silence(const ReplyFailure& failure);

struct ConnectOptions {
  Duration timeout = std::chrono::seconds(1);  // longest wait for one reply
  Duration connect_timeout = std::chrono::milliseconds(500);
  enum class Protocol { automatic, classic, meta } protocol = Protocol::automatic;
  TlsOptions tls = {};              // for the servers that are reached by it
  std::optional<Login> login = {};  // for all of them
};

// A cluster over real servers. Connects on first use of each server; OpenSSL is loaded, and the files of TlsOptions are
// read, when a server that is reached by TLS is first used (Failure: cannot_read, configuration, system). Throws
// InvalidInput where --protocol classic would have to do TLS or a login.
std::unique_ptr<Cluster> connect(std::shared_ptr<const Placement> placement, const ConnectOptions& options);

}  // namespace mcds
