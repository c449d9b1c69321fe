#include "common/cluster/keys/line_stream.hpp"

#include <poll.h>

#include "common/base/bytes.hpp"
#include "common/cluster/wire/wire.hpp"

namespace mcds {

namespace {

using meta::Socket;

constexpr std::size_t max_line_length = 4096;  // a percent-encoded key of 250 bytes and its numbers
constexpr Duration asked_every = std::chrono::milliseconds(100);

}  // namespace

void LineStream::start(SteadyTime now) {
  deadline_ = now + options_.connect_timeout;
  if (!socket_.start(options_.connect_timeout)) return fail_connecting();
  if (socket_.state() == Socket::State::open) connected(now);
}

short LineStream::events() const {
  if (question_) return question_->connection.events();
  if (socket_.state() == Socket::State::connecting) return socket_.connecting_events();
  return unsent_.empty() ? POLLIN : POLLOUT;
}

void LineStream::proceed(short happened, SteadyTime now) {
  if (question_) {
    question_->connection.proceed(happened, now);
    return finish_question();
  }
  // Bytes that arrived while this process was paused are not late.
  if (happened == 0 && now >= deadline_) {
    if (socket_.state() == Socket::State::connecting) return fail(Kind::unreachable, socket_.complaint(true));
    take_late();
    return find_cause(now, std::min(options_.timeout, meta::max_late_probe));
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
  const auto& login = credentials_of(server_).login;
  if (!login || login->form == Login::Form::sasl) return ask(now);  // sasl is for the binary protocol
  send(login_.emplace(*login, login_wanted_).words());
}

// Returns false if there is nothing more to read now.
bool LineStream::read_login(std::size_t& position, bool closed, SteadyTime now) {
  using Step = LoginExchange::Step;
  if (!login_) return true;
  Step step = login_->read(input_, position);
  if (step == Step::need_more && closed) step = login_->closed();
  if (step == Step::failed) fail(login_->kind(), login_->complaint());
  if (step == Step::send) send(login_->words());
  if (step == Step::reconnect) {
    login_wanted_ = true;
    input_.clear();
    position = 0;
    start(now);
  }
  if (step != Step::done) return false;
  login_.reset();
  ask(now);
  return true;
}

void LineStream::send(std::string_view text) {
  unsent_ = text;
  send_more();
}

void LineStream::send_more() {
  const std::ptrdiff_t size = socket_.send(unsent_.data(), unsent_.size());
  if (size < 0) return unsent_.clear();  // read() finds out what the server replied before it closed
  unsent_.erase(0, static_cast<std::size_t>(size));
}

void LineStream::find_cause(SteadyTime now, Duration longest) {
  if (answered_ || !failure_) return;
  question_ = std::make_unique<Question>(
      server_, tls_,
      ConnectOptions{.timeout = longest,
                     .connect_timeout = std::min(longest, options_.connect_timeout),
                     .run = options_.run});
  busy_ = true;
  question_->connection.start(now);
  finish_question();
}

// Ends this stream once its question is answered. A server that speaks the protocol, or cannot be reached,
// does not explain the failure.
void LineStream::finish_question() {
  if (question_->connection.busy()) return;
  const Reply& reply = question_->reply;
  const bool greeted = question_->connection.protocol().words != ServerProtocol::CommandSet::unknown;
  if (!greeted && reply.failed() && !reply.is(Kind::unreachable)) failure_ = reply.failure;
  busy_ = false;
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
  if (!failure_) failure_ = std::make_shared<ReplyFailure>(ReplyFailure{kind, std::move(message)});
  finish();
}

void LineStream::read(SteadyTime now) {
  const std::ptrdiff_t size = socket_.receive(input_);
  if (size < 0 && socket_.denied()) return fail_connecting();
  if (size < 0) {
    std::size_t end = 0;
    login_ ? static_cast<void>(read_login(end, true, now)) : take_close();
    return find_cause(now, options_.timeout);
  }
  if (size == 0) return;
  received_ += static_cast<std::size_t>(size);
  read_lines(now);
  if (busy_ && !login_) received(now);
}

void LineStream::read_lines(SteadyTime now) {
  std::size_t position = 0;
  if (!read_login(position, false, now)) {
    input_.erase(0, position);
    return;
  }
  while (busy_ && !paused_) {
    const auto whole = meta::take_whole_line(input_, position);
    if (!whole) break;
    const std::string_view line = *whole;
    answered_ = true;
    if (wants_login(line)) {
      fail(Kind::denied, login_wanted);
    } else if (line.starts_with("ERROR Too many")) {
      fail(Kind::unreachable, "the server is at its connection limit; raise its -c or try again");
    } else {
      take_line(line, now);
    }
  }
  input_.erase(0, position);
  if (busy_ && input_.size() > max_line_length)
    fail(Kind::unknown, "the server sent a line that is too long; is this a memcached server?");
}

bool decode_key(std::string_view& key, std::string& buffer) {
  if (key.find('%') == std::string_view::npos) return true;
  auto decoded = percent_decode(key);
  if (!decoded) return false;
  buffer = std::move(*decoded);
  key = buffer;
  return true;
}

void run_streams(std::span<LineStream* const> streams, const LineStreamOptions& options, const Clock& clock,
                 const std::function<bool()>& goes_on) {
  SteadyTime end = options.longest ? clock.steady() + *options.longest : SteadyTime::max();
  if (options.run) end = options.run->earlier(end);
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
