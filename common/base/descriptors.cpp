#include "common/base/descriptors.hpp"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace mcds {

namespace {

std::atomic<rlim_t> soft_at_first = 0;  // 0: never raised

}  // namespace

bool raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return false;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  soft_at_first = before;
  return true;
}

void restore_descriptor_limit() {
  rlimit limit{};
  if (soft_at_first == 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = soft_at_first;
  static_cast<void>(setrlimit(RLIMIT_NOFILE, &limit));
}

unsigned long descriptor_limit() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

void Descriptor::reset() {
  if (number_ > STDIN_FILENO) close(number_);
  number_ = -1;
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = write(descriptor, bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) {
      pollfd until_it_takes_more{descriptor, POLLOUT, 0};
      poll(&until_it_takes_more, 1, -1);
      continue;
    }
    if (size <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
  return true;
}

}  // namespace mcds
