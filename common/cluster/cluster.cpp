#include "common/cluster/cluster.hpp"

#include "common/base/result.hpp"

namespace mcds {

namespace {

class Executed final : public Pending {
 public:
  Executed(std::vector<Request> batch, std::vector<Reply> replies)
      : batch_(std::move(batch)), replies_(std::move(replies)) {}
  std::span<const Request> batch() const override { return batch_; }
  std::vector<Reply> finish() override { return std::move(replies_); }

 private:
  std::vector<Request> batch_;
  std::vector<Reply> replies_;
};

}  // namespace

std::unique_ptr<Pending> Cluster::begin(std::vector<Request> batch) {
  std::vector<Reply> replies = execute(batch);
  return std::make_unique<Executed>(std::move(batch), std::move(replies));
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

}  // namespace mcds
