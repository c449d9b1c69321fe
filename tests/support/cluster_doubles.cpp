#include "tests/support/cluster_doubles.hpp"

#include <memory>

namespace mcds::test {

namespace {

Reply reply_of(Mishap mishap, std::size_t server) {
  switch (mishap) {
    case Mishap::unreachable:
      return Reply::failed_with(ReplyFailure::Kind::unreachable, "injected: cannot connect", server);
    case Mishap::refused:
      return Reply::failed_with(ReplyFailure::Kind::refused, "injected: SERVER_ERROR", server);
    case Mishap::lost_request:
    case Mishap::lost_reply: break;
  }
  return Reply::failed_with(ReplyFailure::Kind::unknown, "injected: no reply", server);
}

}  // namespace

std::vector<Reply> Listening::execute(std::span<const Request> batch) {
  auto replies = inner().execute(batch);
  for (const Reply& reply : replies) (reply.failed() ? silent : answered).insert(reply.server);
  return replies;
}

std::vector<Reply> Spoiled::execute(std::span<const Request> batch) {
  std::vector<Request> requests(batch.begin(), batch.end());
  for (Request& request : requests) {
    if (spoil_) spoil_(request);
  }
  return inner().execute(requests);
}

std::vector<Reply> Believing::execute(std::span<const Request> batch) {
  auto replies = inner().execute(batch);
  for (std::size_t i = 0; i < replies.size(); ++i) {
    const bool writes = batch[i].op == Op::cas || batch[i].op == Op::add;
    if (writes && replies[i].failed()) replies[i] = Reply::of(Outcome::stored, replies[i].server);
  }
  return replies;
}

void ScriptedFaults::cut_off(std::size_t server, Mishap mishap) {
  choose([=, this](const Request& request) {
    return server_of(request) == server ? std::optional(mishap) : std::nullopt;
  });
}

void ScriptedFaults::once(Op op, Mishap mishap, std::size_t skip) {
  auto left = std::make_shared<std::optional<std::size_t>>(skip);
  choose([=](const Request& request) -> std::optional<Mishap> {
    if (request.op != op || !*left) return std::nullopt;
    if (**left > 0) return --**left, std::nullopt;
    left->reset();
    return mishap;
  });
}

void ScriptedFaults::randomly(Random& random, double probability, std::vector<Mishap> mishaps) {
  choose([&random, probability, mishaps = std::move(mishaps)](const Request&) -> std::optional<Mishap> {
    if (random.unit() >= probability) return std::nullopt;
    return mishaps[random.below(mishaps.size())];
  });
}

std::vector<Reply> ScriptedFaults::execute(std::span<const Request> batch) {
  if (!chooser_) return inner().execute(batch);
  std::vector<std::optional<Mishap>> mishaps;
  std::vector<Request> passed;
  for (const Request& request : batch) {
    mishaps.push_back(chooser_(request));
    if (!mishaps.back() || *mishaps.back() == Mishap::lost_reply) passed.push_back(request);
  }
  std::vector<Reply> answers = passed.empty() ? std::vector<Reply>() : inner().execute(passed);
  std::vector<Reply> replies;
  std::size_t next = 0;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const std::optional<Mishap>& mishap = mishaps[i];
    if (!mishap) {
      replies.push_back(std::move(answers[next++]));
      continue;
    }
    ++injected_;
    if (*mishap == Mishap::lost_reply) ++next;
    replies.push_back(reply_of(*mishap, server_of(batch[i])));
  }
  return replies;
}

std::vector<Reply> Rival::execute(std::span<const Request> batch) {
  if (always_) always_();
  const std::size_t trip = trips_++;
  while (const auto next = actions_.extract(trip)) next.mapped()();
  return inner().execute(batch);
}

}  // namespace mcds::test
