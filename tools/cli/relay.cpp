#include "tools/cli/relay.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "common/base/errors.hpp"
#include "tools/cli/output.hpp"

namespace mcds {

namespace {

// POLLOUT promises no more than this without blocking.
constexpr std::size_t safe_write = PIPE_BUF;

bool writable(int descriptor) {
  pollfd ready{descriptor, POLLOUT, 0};
  return poll(&ready, 1, 0) > 0;
}

}  // namespace

bool Relay::take(int stream, std::string_view bytes) {
  Stream& to = of(stream);
  keep(to, bytes);
  if (to.error != 0) return !overflow_;
  to.pending.erase(0, to.passed);
  to.passed = 0;
  to.pending += bytes;
  proceed(stream);
  return true;
}

void Relay::keep(Stream& stream, std::string_view bytes) {
  if (!overflow_ && streams_[0].kept.size() + streams_[1].kept.size() + bytes.size() <= max_kept_) {
    stream.kept += bytes;
    return;
  }
  overflow_ = true;
  for (Stream& one : streams_) std::string().swap(one.kept);
}

int Relay::waits_for(int stream) const {
  const Stream& to = of(stream);
  return to.error == 0 && to.passed < to.pending.size() ? stream : -1;
}

void Relay::proceed(int stream) {
  Stream& to = of(stream);
  while (waits_for(stream) >= 0 && writable(stream)) {
    const std::size_t size = std::min(to.pending.size() - to.passed, safe_write);
    const ssize_t written = write(stream, to.pending.data() + to.passed, size);
    if (written >= 0) to.passed += static_cast<std::size_t>(written);
    if (written < 0 && errno == EAGAIN) return;
    if (written < 0 && errno != EINTR) to.error = errno;
  }
}

void Relay::finish() {
  for (const int stream : {2, 1}) {
    while (waits_for(stream) >= 0) {
      pollfd ready{stream, POLLOUT, 0};
      poll(&ready, 1, -1);
      proceed(stream);
    }
  }
  const int error = of(1).error;
  if (error == EPIPE) throw ClosedPipe{};
  if (error != 0)
    throw Failure(ErrorCode::output_failed,
                  "cannot write to standard output: " + std::string(std::strerror(error)));
}

}  // namespace mcds
