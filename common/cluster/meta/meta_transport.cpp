#include <poll.h>

#include <algorithm>
#include <memory>

#include "common/cluster/meta/lane.hpp"
#include "common/cluster/transport.hpp"

namespace mcds {

namespace {

using meta::IncrForm;
using meta::Lane;

// A batch of so many incr_or_create and nothing else goes as plain incrs, and a second trip creates what was missing:
// where the keys exist that halves the server's work. Between the two a rival may create a key; its increments and
// ours commute (`created` may then be wrong for one whose rival began at the same number).
constexpr std::size_t enough_to_try = 64;

class MetaTransport final : public Transport {
 public:
  MetaTransport(std::shared_ptr<const Placement> placement, const ConnectOptions& options)
      : placement_(std::move(placement)), options_(options), lanes_(placement_->pool().size()) {}

  using Cluster::execute;

  std::vector<Reply> execute(std::span<const Request> batch) override {
    std::vector<Reply> replies(batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const std::size_t server = server_of(batch[i]);
      replies[i].server = server;
      if (auto refusal = refusal_before_sending(batch[i])) {
        replies[i] = Reply::failed_with(ReplyFailure::Kind::refused, std::move(*refusal), server);
      }
    }
    const bool many_incrs = batch.size() >= enough_to_try && std::all_of(batch.begin(), batch.end(), creates_number);
    run(batch, replies, many_incrs ? IncrForm::incr_only : IncrForm::whole,
        [](const Reply& reply) { return reply.failure == nullptr; });
    if (many_incrs) {
      run(batch, replies, IncrForm::create, [](const Reply& reply) { return reply.outcome == Outcome::not_found; });
    }
    return replies;
  }

  const Placement& placement() const override { return *placement_; }
  bool speaks(std::size_t server) const override { return lanes_[server] == nullptr || lanes_[server]->speaks_meta(); }

 private:
  static bool creates_number(const Request& request) { return request.op == Op::incr_or_create; }

  // One trip for the requests whose replies are `wanted`.
  template <typename Wanted>
  void run(std::span<const Request> batch, std::vector<Reply>& replies, IncrForm incr_form, Wanted wanted) {
    std::vector<Lane*> involved;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (!wanted(replies[i])) continue;
      Lane& lane = lane_of(replies[i].server);
      if (std::find(involved.begin(), involved.end(), &lane) == involved.end()) {
        lane.begin(incr_form);
        involved.push_back(&lane);
      }
      replies[i].outcome = Outcome::failed;
      lane.add(batch[i], replies[i]);
    }
    exchange(involved);
  }

  Lane& lane_of(std::size_t server) {
    if (lanes_[server] == nullptr) lanes_[server] = std::make_unique<Lane>(placement_->pool()[server], server, options_);
    return *lanes_[server];
  }

  // All servers at once: writing and reading are interleaved, so neither side can block the other.
  void exchange(const std::vector<Lane*>& lanes) {
    for (Lane* lane : lanes) lane->start(clock_.steady());
    std::vector<pollfd> waiting;
    std::vector<Lane*> busy;
    for (;;) {
      waiting.clear();
      busy.clear();
      SteadyTime soonest = SteadyTime::max();
      for (Lane* lane : lanes) {
        if (!lane->busy()) continue;
        busy.push_back(lane);
        waiting.push_back({lane->descriptor(), lane->events(), 0});
        soonest = std::min(soonest, lane->deadline());
      }
      if (busy.empty()) return;
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(soonest - clock_.steady()).count();
      const int ready = poll(waiting.data(), waiting.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, 60000)));
      const SteadyTime now = clock_.steady();
      for (std::size_t i = 0; i < busy.size(); ++i) busy[i]->proceed(ready > 0 ? waiting[i].revents : short{0}, now);
    }
  }

  std::shared_ptr<const Placement> placement_;
  ConnectOptions options_;
  SystemClock clock_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace

std::unique_ptr<Transport> make_meta_transport(std::shared_ptr<const Placement> placement, const ConnectOptions& options) {
  return std::make_unique<MetaTransport>(std::move(placement), options);
}

}  // namespace mcds
