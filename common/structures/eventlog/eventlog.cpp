#include "common/structures/eventlog/eventlog.hpp"

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

#include "common/base/units.hpp"
#include "common/primitives/key_names.hpp"

namespace mcds {

namespace {

// A process's events keep their order although its clock is set back a little.
constexpr auto tolerated_step_back = std::chrono::seconds(1);

}  // namespace

EventLog::EventLog(Context context, std::string_view name, RingShape shape)
    : copies_(context),
      context_(std::move(context)),
      shape_(shape),
      keys_(structure_key(context_, "eventlog", name), shape),
      ids_(context_.random) {
  for (std::size_t i = 0; i < copies_.size(); ++i)
    writers_.emplace_back(copies_.at(i), shape_, keys_, copies_.size() == 1);
}

WallTime EventLog::time_of(std::optional<WallTime> at) {
  WallTime now = context_.clock.wall();
  if (!at) {
    if (now < last_now_ && last_now_ - now < tolerated_step_back) now = last_now_;
    last_now_ = now;
    return now;
  }
  if (*at < now - shape_.kept() || *at > now + std::chrono::seconds(shape_.chunk_s)) {
    throw InvalidInput("--at: " + format_time(*at) + " is outside what this log keeps, from " +
                       format_duration(shape_.kept()) + " ago to " +
                       format_duration(std::chrono::seconds(shape_.chunk_s)) +
                       " ahead; see --chunk and --chunks");
  }
  return *at;
}

EventLog::Put EventLog::put(std::string_view data, EventData kind, std::optional<WallTime> at) {
  assert(staged_events_ == 0);
  const auto id = stage(data, kind, at);
  Flushed flushed = flush();
  return {*id, flushed.server, std::move(flushed.copies)};
}

std::optional<EventId> EventLog::stage(std::string_view data, EventData kind, std::optional<WallTime> at) {
  const WallTime time = time_of(at);
  const std::int64_t chunk = shape_.chunk_of(time);
  if (staged_events_ != 0 && chunk != staged_chunk_) return std::nullopt;
  const std::size_t before = staged_lines_.size();
  const EventId id = ids_.next(time);
  append_event_line(staged_lines_, id, data, kind);
  if (staged_events_ != 0 && staged_lines_.size() > LogWriter::batch_size) {
    staged_lines_.resize(before);
    return std::nullopt;
  }
  staged_chunk_ = chunk;
  ++staged_events_;
  return id;
}

EventLog::Flushed EventLog::flush() {
  if (staged_events_ == 0) return {};
  const std::string lines = std::exchange(staged_lines_, {});
  staged_lines_.reserve(lines.size());
  staged_events_ = 0;
  std::vector<std::size_t> servers(copies_.size());
  const auto failures =
      copies_.run([&](std::size_t copy) { servers[copy] = writers_[copy].append(staged_chunk_, lines); });
  if (const auto failure = failure_of_all(failures)) throw Failure(*failure);
  return {servers.front(), copy_outcomes(context_, keys_.part({staged_chunk_, 0}), failures)};
}

std::vector<std::string> EventLog::current_keys() const {
  const std::int64_t now = shape_.chunk_of(context_.clock.wall());
  std::vector<std::string> keys;
  for (std::int64_t chunk = now - shape_.chunks; chunk <= now + 1; ++chunk)
    keys.push_back(keys_.part({chunk, 0}));
  for (std::int64_t group = (now - shape_.chunks) / chunks_per_directory;
       group <= (now + 1) / chunks_per_directory; ++group) {
    keys.push_back(keys_.directory(group));
  }
  keys.push_back(keys_.conf());
  return keys;
}

}  // namespace mcds
