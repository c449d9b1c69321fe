// Which words go to which server: meta commands where it knows them, classic ones where not.
#include <algorithm>

#include "common/cluster/capabilities.hpp"
#include "common/cluster/credentials.hpp"
#include "common/cluster/decorators.hpp"
#include "common/cluster/flash.hpp"
#include "common/cluster/health/health_guard.hpp"
#include "common/cluster/libmemcached/binary.hpp"
#include "common/cluster/transport.hpp"

namespace mcds {

namespace {

// The transport, and for servers without meta commands the composites on top of it. What such a server was
// asked in meta commands before it said so was refused, and is asked again.
class AutomaticTransport final : public Transport {
 public:
  AutomaticTransport(std::shared_ptr<const Placement> placement, const ConnectOptions& options)
      : placement_(placement), wire_(make_transport(std::move(placement), options)), classic_(*wire_) {}

  using Cluster::execute;

  std::vector<Reply> execute(std::span<const Request> batch) override {
    // Settled before anything is sent: a server found out meanwhile has executed what it did not refuse.
    std::vector<std::size_t> for_classic;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (speaks(batch[i]) == Words::classic) for_classic.push_back(i);
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

  // What is sure to be asked again goes at once, and so does the first batch that a server ever gets.
  std::unique_ptr<Pending> begin(std::vector<Request> batch) override {
    const bool settled = std::ranges::all_of(batch, [&](const Request& request) {
      const Words words = speaks(request);
      return words == Words::meta || (words == Words::classic && request.op != Op::incr_or_create);
    });
    if (!settled) return Cluster::begin(std::move(batch));
    // A server may have been replaced by an older one meanwhile.
    return settled_later(wire_->begin(std::move(batch)),
                         [this](std::span<const Request> begun, std::vector<Reply>& replies) {
                           take_over_refused(begun, replies);
                         });
  }

  const Placement& placement() const override { return *placement_; }
  const Dialect& dialect(std::size_t server) const override { return wire_->dialect(server); }

 private:
  using Words = Dialect::Words;

  Words speaks(const Request& request) const { return wire_->dialect(server_of(request)).words; }

  void take_over_refused(std::span<const Request> batch, std::vector<Reply>& replies) {
    std::vector<std::size_t> refused;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const bool taken = needs_meta(batch[i].op) && replies[i].is(ReplyFailure::Kind::refused);
      if (taken && speaks(batch[i]) == Words::classic) refused.push_back(i);
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
      throw bad_configuration("--protocol binary and --auth sasl go together: give both, or neither");
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
