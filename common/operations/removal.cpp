#include "common/operations/removal.hpp"

#include "common/base/units.hpp"
#include "common/operations/not_saveable.hpp"
#include "common/primitives/cas_update.hpp"

namespace mcds {

ServerTime server_time(const Reply& statistics, const Clock& clock) {
  const std::int64_t ours = whole_seconds(clock.wall());
  if (statistics.failed()) return {ours};
  const auto now = statistic_number(statistics.value, "time");
  return {now ? static_cast<std::int64_t>(*now) : ours, ServerStart::of(statistics.value)};
}

std::vector<ServerTime> server_times(Cluster& cluster, const Clock& clock, std::optional<std::size_t> only) {
  std::vector<ServerTime> times(cluster.placement().pool().size(), server_time(Reply{}, clock));
  std::vector<Request> requests;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (!only || *only == i) requests.push_back(Request::stats(i));
  }
  for (const Reply& reply : cluster.execute(requests)) times[reply.server] = server_time(reply, clock);
  return times;
}

SelectedRemoval::SelectedRemoval(const Context& context, RemovalOptions options, Watch watch)
    : context_(context),
      options_(std::move(options)),
      watch_(std::move(watch)),
      limiter_(options_.rate, context_.clock.steady()),
      largest_batch_(limiter_.largest_batch()) {
  if (options_.older_than) times_ = server_times(context_.cluster, context_.clock);
}

void SelectedRemoval::take(const LiveKey& key) {
  if (!options_.selection.has(key.key)) return;
  if (options_.older_than &&
      std::chrono::seconds(times_[key.server].now - key.last_accessed_at) < *options_.older_than)
    return;
  ++report_.listed;
  batch_.push_back({std::string(key.key), key.server, key.size_bytes});
  batch_bytes_ += moving::reckoned_size(key.size_bytes);
  if (batch_.size() >= largest_batch_ || batch_bytes_ >= batch_bytes) send();
}

const char* SelectedRemoval::kept(const Listed& listed, const Reply& seen) {
  if (seen.outcome != Outcome::hit) {
    ++report_.gone;
    return "gone";
  }
  if (is_guarded(listed.key, options_.selection.key_prefix, seen.value)) {
    ++report_.held;
    return "held";
  }
  if (options_.older_than && seen.age.idle && *seen.age.idle < *options_.older_than) {
    ++report_.used;
    return "used";
  }
  return nullptr;
}

void SelectedRemoval::fail(const Listed& listed, const Failure& failure) {
  ++report_.failed;
  watch_.failed(listed.key, failure);
}

void SelectedRemoval::count(const Listed& listed, const Reply& removed) {
  if (removed.failed()) return fail(listed, failure_of(context_.cluster, removed));
  if (removed.outcome == Outcome::deleted) {
    ++report_.removed;
    report_.bytes += listed.bytes;
  } else if (removed.outcome == Outcome::exists) {
    ++report_.changed;
    watch_.key(listed.key, listed.server, "changed");
  } else {
    ++report_.gone;
  }
}

void SelectedRemoval::send() {
  if (batch_.empty()) return;
  limiter_.wait_for(batch_.size(), context_.clock);
  std::vector<Request> probes;
  for (const Listed& listed : batch_) probes.push_back(Request::probe(listed.key, listed.server));
  const std::vector<Reply> seen = context_.cluster.execute(probes);
  std::vector<Request> removals;
  std::vector<const Listed*> asked;
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    const Listed& listed = batch_[i];
    if (seen[i].failed()) {
      fail(listed, failure_of_read(context_.cluster, seen[i]));
    } else if (const char* why = kept(listed, seen[i])) {
      if (seen[i].outcome == Outcome::hit) watch_.key(listed.key, listed.server, why);
    } else if (options_.dry_run) {
      ++report_.removed;
      report_.bytes += listed.bytes;
      watch_.key(listed.key, listed.server, nullptr);
    } else {
      removals.push_back(removal_of(listed.key, seen[i].cas).on(listed.server));
      asked.push_back(&listed);
    }
  }
  const std::vector<Reply> replies = context_.cluster.execute(removals);
  for (std::size_t i = 0; i < replies.size(); ++i) count(*asked[i], replies[i]);
  batch_.clear();
  batch_bytes_ = 0;
}

}  // namespace mcds
