#include "common/cluster/elasticache.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"

namespace mcds {

namespace {

constexpr std::size_t longest_answer = 1 << 20;

class Exchange {
 public:
  Exchange(const Server& endpoint, Duration timeout, const Clock& clock)
      : address_(endpoint.address()), clock_(clock), deadline_(clock.steady() + timeout) {
    connect_to(endpoint);
  }
  ~Exchange() {
    if (socket_ >= 0) close(socket_);
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  std::string ask(std::string_view command) {
    wait_for(POLLOUT);
    if (send(socket_, command.data(), command.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(command.size()))
      throw silent();
    std::string answer;
    while (!answer.ends_with("END\r\n") && !answer.starts_with("ERROR") && answer.size() < longest_answer) {
      wait_for(POLLIN);
      std::array<char, 16384> chunk;
      const ssize_t size = recv(socket_, chunk.data(), chunk.size(), 0);
      if (size <= 0) throw silent();
      answer.append(chunk.data(), static_cast<std::size_t>(size));
    }
    return answer;
  }

 private:
  NotApplied silent() const {
    return {ErrorCode::unavailable,
            "the configuration endpoint gives no answer; is it up, and is the port right?", address_};
  }

  void connect_to(const Server& endpoint) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found) != 0)
      throw silent();
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
    socket_ = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (socket_ < 0) throw silent();
    if (connect(socket_, found->ai_addr, found->ai_addrlen) != 0 && errno != EINPROGRESS) throw silent();
  }

  void wait_for(short events) const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - clock_.steady()).count();
    pollfd entry{socket_, events, 0};
    if (left <= 0 || poll(&entry, 1, static_cast<int>(left)) != 1) throw silent();
  }

  std::string address_;
  const Clock& clock_;
  SteadyTime deadline_;
  int socket_ = -1;
};

}  // namespace

// CONFIG cluster 0 <length>\r\n<payload>\r\nEND\r\n
std::string elasticache_config(const Server& endpoint, Duration timeout, const Clock& clock) {
  const std::string answer = Exchange(endpoint, timeout, clock).ask("config get cluster\r\n");
  const auto line_end = answer.find("\r\n");
  const std::string_view line = std::string_view(answer).substr(0, line_end);
  const auto length =
      line.starts_with("CONFIG cluster ") ? parse_u64(line.substr(line.rfind(' ') + 1)) : std::nullopt;
  if (!length || line_end + 2 + *length > answer.size()) {
    throw NotApplied(ErrorCode::refused,
                     "no ElastiCache configuration endpoint: it does not know `config get cluster`",
                     endpoint.address());
  }
  return answer.substr(line_end + 2, *length);
}

}  // namespace mcds
