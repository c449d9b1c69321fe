#include "common/cluster/health/trial.hpp"

#include <poll.h>

#include <string_view>

namespace mcds {

namespace {

constexpr std::string_view question = "version\r\n";

// A server that requires a login is healthy too.
bool is_answer(std::string_view line) {
  return line.starts_with("VERSION ") || line.starts_with("CLIENT_ERROR ");
}

}  // namespace

Trial::Trial(const Server& server, const tls::Context* tls)
    : socket_(server, tls), failed_(!socket_.start(Duration::zero())) {}

short Trial::events() const {
  return socket_.state() == meta::Socket::State::open && sent_ ? POLLIN : POLLOUT;
}

bool Trial::send() {
  const std::ptrdiff_t size = socket_.send(question.data(), question.size());
  sent_ = size == static_cast<std::ptrdiff_t>(question.size());
  return size >= 0;
}

Trial::State Trial::look() {
  using Connection = meta::Socket::State;
  if (!failed_ && socket_.state() == Connection::connecting) {
    pollfd ready{socket_.descriptor(), POLLOUT, 0};
    if (poll(&ready, 1, 0) == 0) return State::waiting;
    failed_ = socket_.finish_connecting() == Connection::closed;
    if (!failed_ && socket_.state() == Connection::connecting) return State::waiting;
  }
  if (failed_ || (!sent_ && !send())) return State::failed;
  const std::ptrdiff_t size = socket_.receive(answer_);
  const std::size_t end = answer_.find('\n');
  if (end != std::string::npos) return is_answer(answer_) ? State::answered : State::failed;
  return size < 0 || answer_.size() > 4096 ? State::failed : State::waiting;
}

}  // namespace mcds
