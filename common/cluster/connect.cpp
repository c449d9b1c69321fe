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
    std::vector<Reply> replies(batch.size());
    run(*meta_, batch, replies, [&](const Request& request) { return meta_->speaks(server_of(request)); });
    run(*classic_, batch, replies, [&](const Request& request) { return !meta_->speaks(server_of(request)); });
    return replies;
  }

  const Placement& placement() const override { return *placement_; }

 private:
  void take_over_refused(std::span<const Request> batch, std::vector<Reply>& replies) {
    const auto refused = [&](std::size_t i) {
      return needs_meta(batch[i].op) && replies[i].is(ReplyFailure::Kind::refused) && !meta_->speaks(replies[i].server);
    };
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (!refused(i)) continue;
      if (classic_ == nullptr) classic_ = std::make_unique<Composites>(make_classic_transport(placement_, options_));
      replies[i] = classic_->Cluster::execute(batch[i]);
    }
  }

  template <typename Chosen>
  static void run(Cluster& transport, std::span<const Request> batch, std::vector<Reply>& replies, Chosen chosen) {
    std::vector<Request> part;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (!chosen(batch[i])) continue;
      part.push_back(batch[i]);
      places.push_back(i);
    }
    if (part.empty()) return;
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
