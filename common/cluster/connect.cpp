// Which transport talks to which server: meta where the server knows it, classic where not.
#include <algorithm>

#include "common/cluster/decorators.hpp"
#include "common/cluster/transport.hpp"

namespace mcds {

namespace {

// Meta first. A server that answers ERROR to a meta command has not applied it: it goes to the classic transport, like
// everything after it.
class AutomaticTransport final : public Cluster {
 public:
  AutomaticTransport(std::shared_ptr<const Placement> placement, const ConnectOptions& options)
      : placement_(placement), options_(options), meta_(make_meta_transport(std::move(placement), options)) {}

  using Cluster::execute;

  std::vector<Reply> execute(std::span<const Request> batch) override {
    if (classic_ == nullptr) {
      std::vector<Reply> replies = meta_->execute(batch);
      take_over_refused(batch, replies);
      return replies;
    }
    // Settled before anything is sent: a server found out meanwhile has executed what it did not refuse.
    std::vector<std::size_t> for_meta, for_classic;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      (meta_->speaks(server_of(batch[i])) ? for_meta : for_classic).push_back(i);
    }
    std::vector<Reply> replies(batch.size());
    run(*meta_, batch, for_meta, replies);
    take_over_refused(batch, replies);
    run(*classic_, batch, for_classic, replies);
    return replies;
  }

  // What may have to be taken over, or is for both, goes at once.
  std::unique_ptr<Pending> begin(std::vector<Request> batch) override {
    const bool meta_alone =
        classic_ == nullptr && std::none_of(batch.begin(), batch.end(),
                                            [](const Request& request) { return needs_meta(request.op); });
    return meta_alone ? meta_->begin(std::move(batch)) : Cluster::begin(std::move(batch));
  }

  const Placement& placement() const override { return *placement_; }

 private:
  void take_over_refused(std::span<const Request> batch, std::vector<Reply>& replies) {
    std::vector<std::size_t> refused;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const bool taken = needs_meta(batch[i].op) && replies[i].is(ReplyFailure::Kind::refused);
      if (taken && !meta_->speaks(replies[i].server)) refused.push_back(i);
    }
    if (refused.empty()) return;
    if (classic_ == nullptr)
      classic_ = std::make_unique<Composites>(make_classic_transport(placement_, options_));
    run(*classic_, batch, refused, replies);
  }

  static void run(Cluster& transport, std::span<const Request> batch, const std::vector<std::size_t>& places,
                  std::vector<Reply>& replies) {
    if (places.empty()) return;
    std::vector<Request> part;
    part.reserve(places.size());
    for (const std::size_t place : places) part.push_back(batch[place]);
    std::vector<Reply> answers = transport.execute(part);
    for (std::size_t i = 0; i < places.size(); ++i) replies[places[i]] = std::move(answers[i]);
  }

  std::shared_ptr<const Placement> placement_;
  ConnectOptions options_;
  std::unique_ptr<Transport> meta_;
  std::unique_ptr<Cluster> classic_;
};

}  // namespace

std::unique_ptr<Cluster> connect(std::shared_ptr<const Placement> placement, const ConnectOptions& options) {
  using Protocol = ConnectOptions::Protocol;
  if (options.protocol == Protocol::classic) {
    return std::make_unique<Composites>(make_classic_transport(std::move(placement), options));
  }
  std::unique_ptr<Cluster> transport;
  if (options.protocol == Protocol::meta) {
    transport = make_meta_transport(std::move(placement), options);
  } else {
    transport = std::make_unique<AutomaticTransport>(std::move(placement), options);
  }
  return std::make_unique<Composites>(std::move(transport), Composites::Expand::append_only);
}

}  // namespace mcds
