#include "common/cluster/wire/socket.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>

#include "common/base/process.hpp"

namespace mcds::meta {

namespace {

constexpr std::size_t receive_size = 64 * 1024;

// Opens a socket. Raises the descriptor limit if needed, since a pool may have more servers than it allows.
int open_socket(int family) {
  constexpr int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
  const int descriptor = socket(family, type, 0);
  return descriptor >= 0 || errno != EMFILE || !raise_descriptor_limit() ? descriptor
                                                                         : socket(family, type, 0);
}

std::string why_not(int code) {
  if (code != EMFILE) return std::string(std::strerror(code)) + "; is the server running?";
  return "the limit of " + std::to_string(descriptor_limit()) +
         " open files and connections is reached; raise it (ulimit -Hn)";
}

}  // namespace

bool Socket::start(Duration lookup) {
  close();
  session_.reset();
  error_.clear();
  if (withheld()) return false;
  if (server_.is_unix()) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (server_.socket_path.size() >= sizeof address.sun_path) {
      error_ = "the socket's path is too long";
      return false;
    }
    std::copy(server_.socket_path.begin(), server_.socket_path.end(), address.sun_path);
    return try_address(reinterpret_cast<const sockaddr*>(&address), sizeof address, AF_UNIX);
  }
  sockaddr_in v4{};
  if (inet_pton(AF_INET, server_.host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(server_.port);
    return try_address(reinterpret_cast<const sockaddr*>(&v4), sizeof v4, AF_INET);
  }
  sockaddr_in6 v6{};
  if (inet_pton(AF_INET6, server_.host.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(server_.port);
    return try_address(reinterpret_cast<const sockaddr*>(&v6), sizeof v6, AF_INET6);
  }
  NameLookup found = look_up(server_.host, std::to_string(server_.port), lookup);
  if (found.addresses == nullptr) {
    error_ = "the name has no address: " + found.error;
    return false;
  }
  addresses_ = std::move(found.addresses);
  next_ = addresses_.get();
  return try_next_address();
}

bool Socket::try_next_address() {
  while (next_ != nullptr) {
    const addrinfo& address = *next_;
    next_ = address.ai_next;
    if (try_address(address.ai_addr, address.ai_addrlen, address.ai_family)) return true;
  }
  return false;
}

bool Socket::try_address(const sockaddr* address, socklen_t size, int family) {
  descriptor_ = open_socket(family);
  if (descriptor_ >= 0) {
    if (family != AF_UNIX) {
      const int on = 1;
      setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    // A TLS connection that opens at once still needs the handshake.
    if (connect(descriptor_, address, size) == 0) {
      state_ = tls_ == nullptr ? State::open : State::connecting;
      return true;
    }
    if (errno == EINPROGRESS) {
      state_ = State::connecting;
      return true;
    }
  }
  error_ = why_not(errno);
  close();
  return false;
}

short Socket::connecting_events() const {
  return wants_to_read_ ? POLLIN : POLLOUT;
}

// Handles an open TCP connection: starts or continues the TLS handshake, if any.
Socket::State Socket::connected() {
  using Step = tls::Connection::Step;
  error_.clear();
  if (tls_ == nullptr) return state_ = State::open;
  if (session_ == nullptr) session_ = std::make_unique<tls::Connection>(*tls_, server_, descriptor_);
  const Step step = session_->handshake();
  wants_to_read_ = step == Step::wants_to_read;
  if (step == Step::done) state_ = State::open;
  if (step == Step::failed) close();
  return state_;
}

Socket::State Socket::finish_connecting() {
  if (session_ != nullptr) return connected();
  int code = 0;
  socklen_t size = sizeof code;
  getsockopt(descriptor_, SOL_SOCKET, SO_ERROR, &code, &size);
  if (code == 0) {
    static_cast<void>(connected());
  } else {
    error_ = why_not(code);
    close();
    static_cast<void>(try_next_address());
  }
  return state_;
}

std::ptrdiff_t Socket::send(const char* bytes, std::size_t size) {
  if (session_ != nullptr) return session_->send(bytes, size);
  const ssize_t sent = ::send(descriptor_, bytes, size, MSG_NOSIGNAL);
  if (sent >= 0) return sent;
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
}

std::ptrdiff_t Socket::receive(std::string& into) {
  if (session_ != nullptr) return session_->receive(into);
  // Do not receive into the string: growing it would write every byte twice, and touch pages that a short
  // reply never needs. A buffer on the stack would touch all its pages too, as a guard page may follow.
  thread_local const auto buffer = std::make_unique_for_overwrite<char[]>(receive_size);
  const ssize_t size = recv(descriptor_, buffer.get(), receive_size, 0);
  if (size > 0) into.append(buffer.get(), static_cast<std::size_t>(size));
  const bool nothing_yet = size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  return nothing_yet ? 0 : size > 0 ? size : -1;
}

bool Socket::usable_again() {
  if (state_ != State::open) return false;
  if (session_ != nullptr) return session_->quiet();
  char byte = 0;
  return recv(descriptor_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
         (errno == EAGAIN || errno == EWOULDBLOCK);
}

std::string Socket::complaint(bool late) const {
  const bool shaking = session_ != nullptr && state_ != State::open;
  if (late && state_ == State::connecting) {
    return shaking
               ? "the TLS handshake did not complete within the connect timeout; does the server support TLS?"
               : "no connection within the connect timeout; is the server reachable?";
  }
  if (withheld()) return credentials_of(server_).withheld;
  if (late) return "no reply within the timeout; the server is stopped, overloaded or unreachable";
  if (session_ != nullptr && !session_->error().empty()) return session_->error();
  if (!error_.empty()) return "no connection: " + error_;
  return "the server closed the connection";
}

// Keeps session_, so that complaint() can report why a TLS session failed, until the next start().
void Socket::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  wants_to_read_ = false;
  descriptor_ = -1;
  state_ = State::closed;
}

}  // namespace mcds::meta
