#include "common/cluster/cluster.hpp"

#include "common/cluster/credentials.hpp"
#include "common/cluster/decorators.hpp"
#include "common/cluster/libmemcached/binary.hpp"

namespace mcds {

void Pending::then(Settle settle) {
  finish_ = [finish = std::move(finish_), settle = std::move(settle)](std::span<const Request> batch) {
    std::vector<Reply> replies = finish(batch);
    settle(batch, replies);
    return replies;
  };
}

std::unique_ptr<Pending> Cluster::begin(std::vector<Request> batch) {
  std::vector<Reply> replies = execute(batch);
  return std::make_unique<Pending>(
      std::move(batch),
      [replies = std::move(replies)](std::span<const Request>) mutable { return std::move(replies); });
}

ErrorCode error_code_of(const ReplyFailure& failure) {
  switch (failure.kind) {
    case ReplyFailure::Kind::unreachable: return ErrorCode::unavailable;
    case ReplyFailure::Kind::refused: return ErrorCode::refused;
    case ReplyFailure::Kind::denied: return ErrorCode::access_denied;
    case ReplyFailure::Kind::not_a_number: return ErrorCode::bad_data;
    case ReplyFailure::Kind::unknown: break;
  }
  return ErrorCode::unknown_outcome;
}

Failure failure_of(const Cluster& cluster, const Reply& reply) {
  return {error_code_of(*reply.failure), reply.failure->message, cluster.address_of(reply.server)};
}

Failure failure_of_read(const Cluster& cluster, const Reply& reply) {
  return {error_code_of_silence(*reply.failure), reply.failure->message, cluster.address_of(reply.server)};
}

const Reply& expect(const Cluster& cluster, const Reply& reply) {
  if (reply.failed()) raise(failure_of(cluster, reply));
  return reply;
}

Reply expect(const Cluster& cluster, Reply&& reply) {
  expect(cluster, static_cast<const Reply&>(reply));
  return std::move(reply);
}

const Reply& expect_read(const Cluster& cluster, const Reply& reply) {
  if (reply.failed()) raise(failure_of_read(cluster, reply));
  return reply;
}

ErrorCode error_code_of_silence(const ReplyFailure& failure) {
  return failure.kind == ReplyFailure::Kind::unknown ? ErrorCode::unavailable : error_code_of(failure);
}

namespace {

// Sends meta commands to servers that support them, and classic ones to others, with Composites on top. A
// server refuses the meta commands it gets before its greeting shows that it lacks them; these are sent again
// as classic commands.
class AutomaticTransport final : public Transport {
 public:
  AutomaticTransport(std::shared_ptr<const Placement> placement, const ConnectOptions& options)
      : placement_(placement), wire_(make_transport(std::move(placement), options)), classic_(*wire_) {}

  using Cluster::execute;

  std::vector<Reply> execute(std::span<const Request> batch) override {
    // Split the batch first: a server found to be classic later has executed what it did not refuse.
    std::vector<std::size_t> for_classic;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (speaks(batch[i]) == CommandSet::classic) for_classic.push_back(i);
    }
    if (for_classic.empty()) {
      std::vector<Reply> replies = wire_->execute(batch);
      take_over_refused(batch, replies);
      return replies;
    }
    std::vector<std::size_t> rest;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (!std::ranges::binary_search(for_classic, i)) rest.push_back(i);
    }
    std::vector<Reply> replies(batch.size());
    execute_at(rest, *this, batch, replies);
    execute_at(for_classic, classic_, batch, replies);
    return replies;
  }

  // A batch that needs several trips is executed at once: one for a server not yet greeted, and one with
  // incr_or_create for a classic server.
  std::unique_ptr<Pending> begin(std::vector<Request> batch) override {
    const bool settled = std::ranges::all_of(batch, [&](const Request& request) {
      const CommandSet words = speaks(request);
      return words == CommandSet::meta || (words == CommandSet::classic && request.op != Op::incr_or_create);
    });
    if (!settled) return Cluster::begin(std::move(batch));
    // Before the replies arrive, a server without meta commands may have replaced the one that was greeted.
    return settled_later(wire_->begin(std::move(batch)),
                         [this](std::span<const Request> begun, std::vector<Reply>& replies) {
                           take_over_refused(begun, replies);
                         });
  }

  const Placement& placement() const override { return *placement_; }
  const ServerProtocol& protocol(std::size_t server) const override { return wire_->protocol(server); }

 private:
  using CommandSet = ServerProtocol::CommandSet;

  CommandSet speaks(const Request& request) const { return wire_->protocol(server_of(request)).words; }

  void take_over_refused(std::span<const Request> batch, std::vector<Reply>& replies) {
    std::vector<std::size_t> refused;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const bool taken = needs_meta(batch[i].op) && replies[i].is(ReplyFailure::Kind::refused);
      if (taken && speaks(batch[i]) == CommandSet::classic) refused.push_back(i);
    }
    execute_at(refused, classic_, batch, replies);
  }

  std::shared_ptr<const Placement> placement_;
  std::unique_ptr<Transport> wire_;
  Composites classic_;
};

std::unique_ptr<Transport> transport_for(std::shared_ptr<const Placement> placement,
                                         const ConnectOptions& options) {
  using Protocol = ConnectOptions::Protocol;
  const bool binary = options.protocol == Protocol::binary;
  for (const Server& server : placement->pool()) {
    const auto& login = credentials_of(server).login;
    if (login && (login->form == Login::Form::sasl) != binary)
      throw bad_configuration("--protocol binary and --auth sasl need each other; give both or neither");
  }
  if (binary) return libmemcached::make_binary_transport(std::move(placement), options);
  if (options.protocol == Protocol::automatic)
    return std::make_unique<AutomaticTransport>(std::move(placement), options);
  return make_transport(std::move(placement), options);
}

}  // namespace

std::unique_ptr<Cluster> connect(std::shared_ptr<const Placement> placement, const ConnectOptions& options) {
  const bool plain = options.protocol == ConnectOptions::Protocol::classic ||
                     options.protocol == ConnectOptions::Protocol::binary;
  const auto expand = plain ? Composites::Expand::both : Composites::Expand::append_only;
  std::unique_ptr<Cluster> cluster = gated(transport_for(std::move(placement), options));
  if (options.trace) cluster = std::make_unique<Tracing>(std::move(cluster), options.trace);
  if (options.run) cluster = guarded(std::move(cluster), options);
  cluster = std::make_unique<Composites>(std::move(cluster), expand);
  return std::make_unique<FlashItems>(std::move(cluster));
}

}  // namespace mcds
