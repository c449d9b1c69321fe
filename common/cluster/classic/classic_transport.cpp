#include <map>

#include "common/cluster/classic/worker.hpp"
#include "common/cluster/transport.hpp"

namespace mcds {

namespace {

using classic::Job;
using classic::Worker;

// How much later than libmemcached's own timeout a call is given up: its answer says more than ours.
constexpr auto grace = std::chrono::milliseconds(20);

class ClassicTransport final : public Transport {
 public:
  ClassicTransport(std::shared_ptr<const Placement> placement, const ConnectOptions& options)
      : placement_(std::move(placement)), options_(options) {}

  using Cluster::execute;

  std::vector<Reply> execute(std::span<const Request> batch) override {
    std::vector<Reply> replies(batch.size());
    std::map<std::size_t, Part> parts;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const std::size_t server = server_of(batch[i]);
      if (auto refusal = refusal_before_sending(batch[i])) {
        replies[i] = Reply::failed_with(ReplyFailure::Kind::refused, std::move(*refusal), server);
        continue;
      }
      Part& part = parts[server];
      if (!part.job) part.job = std::make_shared<Job>(server);
      part.job->add(batch[i]);
      part.places.push_back(i);
    }
    for (auto& [server, part] : parts) start(server, part.job);
    for (auto& [server, part] : parts) {
      std::vector<Reply> answers =
          part.job->wait(patience(), options_.run ? options_.run->deadline() : SteadyTime::max());
      for (std::size_t i = 0; i < answers.size(); ++i) replies[part.places[i]] = std::move(answers[i]);
      if (part.job->lost()) workers_.erase(server);
    }
    return replies;
  }

  const Placement& placement() const override { return *placement_; }
  const Dialect& dialect(std::size_t) const override { return dialect_; }

 private:
  struct Part {
    std::shared_ptr<Job> job;
    std::vector<std::size_t> places;
  };

  void start(std::size_t server, const std::shared_ptr<Job>& job) {
    std::unique_ptr<Worker>& worker = workers_[server];
    if (!worker) worker = std::make_unique<Worker>(placement_->pool()[server], options_);
    job->prepare();
    worker->start(job);
  }

  // A job may have to connect anew before its first command.
  Duration patience() const { return options_.connect_timeout + options_.timeout + grace; }

  std::shared_ptr<const Placement> placement_;
  ConnectOptions options_;
  std::map<std::size_t, std::unique_ptr<Worker>> workers_;
  Dialect dialect_{.words = Dialect::Words::classic};
};

}  // namespace

std::unique_ptr<Transport> make_classic_transport(std::shared_ptr<const Placement> placement,
                                                  const ConnectOptions& options) {
  return std::make_unique<ClassicTransport>(std::move(placement), options);
}

}  // namespace mcds
