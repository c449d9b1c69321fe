#include "common/primitives/creation_watch.hpp"

#include <functional>

#include "common/primitives/structure_names.hpp"

namespace mcds {

std::vector<Reply> CreationWatch::execute(std::span<const Request> batch) {
  std::vector<Reply> replies = inner().execute(batch);
  note(batch, replies);
  return replies;
}

std::unique_ptr<Pending> CreationWatch::begin(std::vector<Request> batch) {
  return settled_later(
      inner().begin(std::move(batch)),
      [this](std::span<const Request> sent, std::vector<Reply>& replies) { note(sent, replies); });
}

void CreationWatch::note(std::span<const Request> batch, std::span<const Reply> replies) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Request& request = batch[i];
    const bool appends = request.op == Op::append || request.op == Op::append_or_create;
    if (replies[i].outcome != Outcome::stored) continue;
    const bool creates = (replies[i].created && (appends || request.op == Op::incr_or_create)) ||
                         (request.op == Op::add && is_counter(request));
    if (!creates && !appends) continue;
    const std::size_t hash = std::hash<std::string>()(request.key) + replies[i].server;
    const bool is_new = known_.size() < most_known ? known_.insert(hash).second : !known_.contains(hash);
    if (creates && !is_new && is_judged(request)) lost_.insert(request.key);
  }
}

// Elements and claims are added, too, and may be removed at any time.
bool CreationWatch::is_counter(const Request& request) const {
  const auto ours = structure_in(request.key, key_prefix_);
  return ours && ours->name.structure == "counter";
}

bool CreationWatch::is_judged(const Request& request) const {
  const auto ours = structure_in(request.key, key_prefix_);
  const bool is_counter = !ours || ours->name.structure == "counter";
  if (is_counter && !(request.exptime == Exptime::never())) return false;
  return !ours || !(ours->name.in_several() || ours->name.structure == "lock");
}

}  // namespace mcds
