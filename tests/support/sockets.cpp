#include "tests/support/sockets.hpp"

#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <stdexcept>

namespace mcds::test {

namespace {

sockaddr_un unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) throw std::runtime_error("socket path too long: " + path);
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

int connected(int fd, const sockaddr* address, socklen_t size) {
  if (connect(fd, address, size) == 0) return fd;
  close(fd);
  return -1;
}

}  // namespace

int connect_to(const Server& server) {
  if (server.is_unix()) {
    const sockaddr_un address = unix_address(server.socket_path);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return connected(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server.port);
  inet_pton(AF_INET, server.host.c_str(), &address.sin_addr);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return connected(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

int listen_at(const std::string& path) {
  const sockaddr_un address = unix_address(path);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  unlink(path.c_str());
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || listen(fd, 256) != 0)
    throw std::runtime_error("cannot listen at " + path + ": " + strerror(errno));
  return fd;
}

std::string talk(const Server& server, std::string_view text, std::string_view end,
                 std::chrono::milliseconds patience) {
  const int fd = connect_to(server);
  if (fd < 0)
    throw std::runtime_error("nobody listens at " + (server.is_unix() ? server.socket_path : server.host));
  std::string reply;
  if (send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size())) {
    pollfd readable{fd, POLLIN, 0};
    char bytes[65536];
    while (!reply.ends_with(end) && poll(&readable, 1, static_cast<int>(patience.count())) > 0) {
      const ssize_t got = recv(fd, bytes, sizeof bytes, 0);
      if (got <= 0) break;
      reply.append(bytes, static_cast<std::size_t>(got));
    }
  }
  close(fd);
  return reply;
}

}  // namespace mcds::test
