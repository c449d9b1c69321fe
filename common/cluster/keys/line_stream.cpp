#include "common/cluster/keys/line_stream.hpp"

#include <poll.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace mcds {

namespace {

using meta::Socket;

constexpr std::size_t longest_line = 4096;  // a key of 250 bytes, percent-encoded, and its figures
constexpr Duration asked_every = std::chrono::milliseconds(100);

}  // namespace

void LineStream::start(SteadyTime now) {
  deadline_ = now + options_.connect_timeout;
  if (!socket_.start(options_.connect_timeout)) return fail(Kind::unreachable, socket_.complaint());
  if (socket_.state() == Socket::State::open) connected(now);
}

short LineStream::events() const {
  if (socket_.state() == Socket::State::connecting) return socket_.connecting_events();
  return unsent_.empty() ? POLLIN : POLLOUT;
}

void LineStream::proceed(short happened, SteadyTime now) {
  if (now >= deadline_) {
    if (socket_.state() == Socket::State::connecting) return fail(Kind::unreachable, socket_.complaint(true));
    return take_late();
  }
  if (now >= acts_at_) {
    acts_at_ = SteadyTime::max();
    paused_ = false;
    return act(now);
  }
  if (happened == 0) return;
  if (socket_.state() == Socket::State::connecting) return finish_connecting(now);
  if (!unsent_.empty()) return send_more();
  read(now);
}

void LineStream::finish_connecting(SteadyTime now) {
  const auto state = socket_.finish_connecting();
  if (state == Socket::State::open) return connected(now);
  if (state == Socket::State::closed) fail_connecting();
}

void LineStream::connected(SteadyTime now) {
  deadline_ = now + options_.timeout;
  // Nothing may be pipelined behind the login.
  awaits_login_ = options_.login.has_value();
  if (!awaits_login_) return ask(now);
  send(login_request(*options_.login));
}

void LineStream::send(std::string_view text) {
  unsent_ = text;
  send_more();
}

void LineStream::send_more() {
  const std::ptrdiff_t size = socket_.send(unsent_.data(), unsent_.size());
  if (size < 0) return fail(Kind::unreachable, socket_.complaint());
  unsent_.erase(0, static_cast<std::size_t>(size));
}

void LineStream::pause_until(SteadyTime when) {
  paused_ = true;
  acts_at_ = when;
}

void LineStream::finish() {
  socket_.close();
  busy_ = false;
}

void LineStream::fail(Kind kind, std::string message) {
  failure_ = std::make_shared<ReplyFailure>(ReplyFailure{kind, std::move(message)});
  finish();
}

void LineStream::read(SteadyTime now) {
  const std::ptrdiff_t size = socket_.receive(input_);
  if (size < 0) return socket_.denied() ? fail_connecting() : take_close();
  if (size == 0) return;
  received_ += static_cast<std::size_t>(size);
  read_lines(now);
  if (busy_) received(now);
}

void LineStream::read_lines(SteadyTime now) {
  std::size_t position = 0;
  while (busy_ && !paused_) {
    const std::size_t end = input_.find('\n', position);
    if (end == std::string::npos) break;
    std::string_view line(input_.data() + position, end - position);
    position = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (std::exchange(awaits_login_, false)) {
      const LoginAnswer answer = read_login_answer(line);
      answer.accepted ? ask(now) : fail(answer.kind, answer.complaint);
    } else if (wants_login(line)) {
      fail(Kind::denied, login_wanted);
    } else if (line.starts_with("ERROR Too many")) {
      fail(Kind::unreachable, "the server is at its connection limit; raise its -c or try again");
    } else {
      take_line(line, now);
    }
  }
  input_.erase(0, position);
  if (busy_ && input_.size() > longest_line)
    fail(Kind::unknown, "the server sent a line that is too long; is this a memcached server?");
}

std::optional<tls::Context> tls_context_for(const Pool& pool, const TlsOptions& options) {
  if (std::none_of(pool.begin(), pool.end(), [](const Server& server) { return server.tls; }))
    return std::nullopt;
  return std::optional<tls::Context>(std::in_place, options);
}

void run_streams(std::span<LineStream* const> streams, const std::optional<Duration>& longest,
                 const Clock& clock, const std::function<bool()>& goes_on) {
  const SteadyTime end = longest ? clock.steady() + *longest : SteadyTime::max();
  for (LineStream* stream : streams) stream->start(clock.steady());
  std::vector<LineStream*> busy;
  std::vector<pollfd> waiting;
  for (;;) {
    busy.clear();
    waiting.clear();
    SteadyTime soonest = goes_on ? std::min(end, clock.steady() + asked_every) : end;
    for (LineStream* stream : streams) {
      if (!stream->busy()) continue;
      busy.push_back(stream);
      waiting.push_back({stream->descriptor(), stream->events(), 0});
      soonest = std::min(soonest, stream->wakes_at());
    }
    if (busy.empty()) return;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(soonest - clock.steady()).count();
    const int ready =
        poll(waiting.data(), waiting.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, 60000)));
    const SteadyTime now = clock.steady();
    const bool over = now >= end || (goes_on && !goes_on());
    for (std::size_t i = 0; i < busy.size(); ++i) {
      if (over) {
        busy[i]->time_is_up();
      } else {
        busy[i]->proceed(ready > 0 ? waiting[i].revents : short{0}, now);
      }
    }
  }
}

}  // namespace mcds
