#include "common/cluster/elasticache.hpp"

#include <poll.h>

#include "common/base/bytes.hpp"
#include "common/cluster/wire/socket.hpp"

namespace mcds {

namespace {

constexpr std::size_t max_answer = 1 << 20;

class Exchange {
 public:
  Exchange(const Server& endpoint, const ConnectOptions& options, const Clock& clock)
      : address_(endpoint.address()),
        clock_(clock),
        deadline_(options.latest(clock.steady(), options.timeout)),
        socket_(endpoint, tls_.of(endpoint)) {
    if (!socket_.start(options.left(clock, options.connect_timeout))) throw unreachable();
    while (socket_.state() != State::open) {
      wait_for(socket_.connecting_events());
      if (socket_.finish_connecting() == State::closed) throw unreachable();
    }
  }

  std::string ask(std::string_view command) {
    while (!command.empty()) {
      wait_for(POLLOUT);
      const std::ptrdiff_t size = socket_.send(command.data(), command.size());
      if (size < 0) throw unreachable();
      command.remove_prefix(static_cast<std::size_t>(size));
    }
    std::string answer;
    while (!answer.ends_with("END\r\n") && !answer.starts_with("ERROR") && answer.size() < max_answer) {
      wait_for(POLLIN);
      if (socket_.receive(answer) < 0) throw unreachable();
    }
    return answer;
  }

 private:
  using State = meta::Socket::State;

  NotApplied unreachable() const {
    return {socket_.denied() ? ErrorCode::access_denied : ErrorCode::unavailable,
            "the configuration endpoint does not answer: " + socket_.complaint(), address_};
  }

  void wait_for(short events) const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - clock_.steady()).count();
    pollfd entry{socket_.descriptor(), events, 0};
    if (left > 0 && poll(&entry, 1, static_cast<int>(left)) == 1) return;
    throw NotApplied(ErrorCode::unavailable,
                     "the configuration endpoint does not answer; check that it is up, and the port and the "
                     "scheme (tls://)",
                     address_);
  }

  std::string address_;
  const Clock& clock_;
  SteadyTime deadline_;
  tls::Contexts tls_;
  meta::Socket socket_;
};

}  // namespace

// Parses CONFIG cluster 0 <length>\r\n<payload>\r\nEND\r\n, or VALUE AmazonElastiCache:cluster 0 <length>…
std::optional<std::string> elasticache_payload(std::string_view answer) {
  const auto line_end = answer.find("\r\n");
  if (line_end == std::string_view::npos) return std::nullopt;
  const std::string_view line = answer.substr(0, line_end);
  if (!line.starts_with("CONFIG cluster ") && !line.starts_with("VALUE AmazonElastiCache:cluster "))
    return std::nullopt;
  const auto length = parse_u64(line.substr(line.rfind(' ') + 1));
  const std::string_view rest = answer.substr(line_end + 2);
  if (!length || *length > rest.size()) return std::nullopt;
  return std::string(rest.substr(0, *length));
}

std::string elasticache_config(const Server& endpoint, const ConnectOptions& options, const Clock& clock) {
  Exchange exchange(endpoint, options, clock);
  const std::string answer = exchange.ask("config get cluster\r\n");
  auto payload = elasticache_payload(answer);
  if (!payload && answer.starts_with("ERROR")) {
    const auto item = attempt([&] { return exchange.ask("get AmazonElastiCache:cluster\r\n"); });
    if (!item.failure()) payload = elasticache_payload(item.value());
  }
  if (payload) return *std::move(payload);
  throw NotApplied(ErrorCode::refused,
                   "the server is not an ElastiCache configuration endpoint: it does not support 'config get "
                   "cluster'; check the address",
                   endpoint.address());
}

}  // namespace mcds
