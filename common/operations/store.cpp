#include "common/operations/store.hpp"

namespace mcds {

std::vector<Reply> store(Cluster& cluster, std::span<const Request> items, Op first) {
  constexpr int rounds = 6;
  std::vector<Reply> replies(items.size());
  std::vector<std::size_t> left(items.size());
  for (std::size_t i = 0; i < left.size(); ++i) left[i] = i;
  Op op = first;
  for (int round = 0; round < rounds && !left.empty(); ++round) {
    std::vector<Request> batch;
    for (const std::size_t i : left) batch.emplace_back(items[i]).op = op;
    std::vector<Reply> answers = cluster.execute(batch);
    for (std::size_t i = 0; i < left.size(); ++i) replies[left[i]] = std::move(answers[i]);
    std::erase_if(left, [&](std::size_t i) { return replies[i].outcome != Outcome::not_stored; });
    op = op == Op::add ? Op::replace : Op::add;
  }
  for (const std::size_t i : left)
    replies[i] = Reply::failed_with(ReplyFailure::Kind::refused,
                                    "others store and remove it all the time; try again", replies[i].server);
  return replies;
}

}  // namespace mcds
