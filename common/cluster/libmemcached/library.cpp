#include "common/cluster/libmemcached/library.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "common/base/errors.hpp"
#include "common/base/text.hpp"

namespace mcds::libmemcached {

namespace {

constexpr std::size_t max_message_size = std::size_t{80} << 20;
constexpr int line_of_child = 3;

void leave_all(pid_t parent, const char* name, int line) {
  if (line != line_of_child) dup2(line, line_of_child);
  close_range(line_of_child + 1, ~0U, 0);
  work_beside(parent, name);
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTERM}) std::signal(signal, SIG_DFL);
}

}  // namespace

bool Line::send(const void* bytes, std::size_t size) const {
  for (const char* at = static_cast<const char*>(bytes); size > 0;) {
    const ssize_t sent = ::send(descriptor_, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) return false;
    at += std::max<ssize_t>(sent, 0);
    size -= static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
  }
  return true;
}

bool Line::send_text(std::string_view text) const {
  return send_value(static_cast<std::uint32_t>(text.size())) && send(text.data(), text.size());
}

bool Line::receive(void* into, std::size_t size) const {
  for (char* at = static_cast<char*>(into); size > 0;) {
    const ssize_t got = ::recv(descriptor_, at, size, 0);
    if (got == 0 || (got < 0 && errno != EINTR)) return false;
    at += std::max<ssize_t>(got, 0);
    size -= static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  }
  return true;
}

std::optional<std::string> Line::receive_text() const {
  std::uint32_t size = 0;
  if (!receive_value(size) || size > max_message_size) return std::nullopt;
  std::string text(size, '\0');
  return receive(text.data(), size) ? std::optional(std::move(text)) : std::nullopt;
}

Child::Child(const char* name, const std::function<void(const Line&)>& serve) : parent_(getpid()) {
  std::array<int, 2> sockets{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0)
    throw refused_by_system(ErrorCode::system, "cannot make a pair of sockets");
  descriptor_ = Descriptor(sockets[0]);
  const Descriptor its(sockets[1]);
  child_ = fork_process();
  if (child_ > 0) return;
  leave_all(parent_, name, its);
  serve(Line(line_of_child));
  _exit(0);
}

Child::~Child() {
  descriptor_.reset();
  if (is_ours()) end_process(child_);
}

void Child::wait_no_longer_than(Duration longest) const {
  const auto micros =
      std::max<std::int64_t>(std::chrono::duration_cast<std::chrono::microseconds>(longest).count(), 1);
  const timeval time{micros / 1'000'000, micros % 1'000'000};
  for (const int what : {SO_RCVTIMEO, SO_SNDTIMEO})
    setsockopt(descriptor_, SOL_SOCKET, what, &time, sizeof time);
}

bool Child::is_ours() const {
  return parent_ == getpid();
}

namespace {

#define MCDS_LIBMEMCACHED "libmemcached.so.11"
MCDS_DLOPEN_NOTE(LibmemcachedNote, "libmemcached",
                 "the binary protocol, and libmemcached's configuration strings", MCDS_LIBMEMCACHED);

}  // namespace

const Library& library() {
  static const Library table{
      {MCDS_LIBMEMCACHED,
       bad_configuration(MCDS_LIBMEMCACHED " is needed and cannot be loaded; install it (Debian: "
                                           "libmemcached11), and use a build without -Dstatic=true")}};
  return table;
}

std::string plain_words(std::string_view message) {
  message = message.substr(0, message.rfind(" -> "));
  if (message.starts_with("(0x")) message.remove_prefix(std::min(message.find(") ") + 2, message.size()));
  return visible(message);
}

}  // namespace mcds::libmemcached
