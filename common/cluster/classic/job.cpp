#include "common/cluster/classic/job.hpp"

#include <cerrno>
#include <ctime>

namespace mcds::classic {

namespace {

Duration monotonic() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace

bool changes_nothing(Op op) {
  return op == Op::get || op == Op::gets || op == Op::probe || op == Op::version || op == Op::stats;
}

void Job::prepare() {
  replies_.resize(requests_.size());
  done_.resize(requests_.size());
  note_progress();
}

bool Job::begin(std::size_t first, std::size_t count) {
  const std::lock_guard lock(mutex_);
  if (abandoned_) return false;
  begun_ = first + count;
  note_progress();
  begun_at_ = progress_;
  return true;
}

void Job::answer(std::size_t index, Reply reply) {
  const std::lock_guard lock(mutex_);
  if (abandoned_) return;
  reply.server = server_;
  reply.round_trip = std::chrono::duration_cast<std::chrono::microseconds>(monotonic() - Duration(begun_at_));
  replies_[index] = std::move(reply);
  done_[index] = true;
  note_progress();
}

void Job::note_progress() {
  progress_ = monotonic().count();
}

bool Job::wait_until(Duration moment) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(moment);
  const timespec until{whole.count(), (moment - whole).count()};
  int result = 0;
  do result = sem_clockwait(&ended_, CLOCK_MONOTONIC, &until);
  while (result != 0 && errno == EINTR);
  return result == 0;
}

std::vector<Reply> Job::wait(Duration patience) {
  std::int64_t seen = 0;
  bool ended = false;
  do {
    seen = progress_;
    ended = wait_until(Duration(seen) + patience);
  } while (!ended && progress_ != seen);
  lost_ = !ended || stuck_;
  if (lost_) give_up();
  return std::move(replies_);
}

void Job::give_up() {
  const std::lock_guard lock(mutex_);
  abandoned_ = true;
  const std::string why = stuck_
                              ? "the server's answer is no memcached reply; is this a memcached?"
                              : "no reply within the timeout; the server is stopped, overloaded or cut off";
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (done_[i]) continue;
    const bool maybe = i < begun_ && !changes_nothing(requests_[i].op);
    const auto kind = maybe    ? ReplyFailure::Kind::unknown
                      : stuck_ ? ReplyFailure::Kind::refused
                               : ReplyFailure::Kind::unreachable;
    replies_[i] = Reply::failed_with(kind, maybe ? why + "; it may have been applied" : why, server_);
  }
}

}  // namespace mcds::classic
