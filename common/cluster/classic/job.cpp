#include "common/cluster/classic/job.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "common/cluster/transport.hpp"

namespace mcds::classic {

namespace {

// What a server must do at least in one patience, once it has begun to answer.
constexpr std::uint64_t slowest_replies = 64;

Duration monotonic() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace

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
  reply.protocol = Reply::Protocol::classic;
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

std::uint64_t Job::answered() {
  const std::lock_guard lock(mutex_);
  return static_cast<std::uint64_t>(std::count(done_.begin(), done_.end(), true));
}

std::vector<Reply> Job::wait(Duration patience, SteadyTime latest) {
  const Duration started = monotonic();
  const Duration left = latest - SystemClock().steady();
  const Duration last = latest == SteadyTime::max() ? Duration::max() : started + left;
  std::int64_t seen = 0;
  bool ended = false;
  bool over = false;
  do {
    seen = progress_;
    const Duration altogether =
        started + patience * static_cast<std::int64_t>(1 + answered() / slowest_replies);
    const Duration until = std::min({Duration(seen) + patience, altogether, last});
    ended = wait_until(until);
    over = monotonic() >= last;
  } while (!ended && !over && progress_ != seen);
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
    replies_[i] = Reply::failed_with(kind, maybe ? why + std::string(may_be_applied) : why, server_, !stuck_);
  }
}

}  // namespace mcds::classic
