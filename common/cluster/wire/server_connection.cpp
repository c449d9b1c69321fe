#include "common/cluster/wire/server_connection.hpp"

#include <poll.h>

#include "common/base/bounds.hpp"
#include "common/cluster/distinct.hpp"

namespace mcds::meta {

namespace {

// Bytes encoded ahead of the kernel: enough to keep the connection busy, few enough to stay in the cache.
constexpr std::size_t output_window = 128 * 1024;
// Decoded bytes are dropped from the front of the input once they exceed this number.
constexpr std::size_t input_slack = 256 * 1024;
// The minimum progress of a server in each timeout, once it has begun to reply.
constexpr std::size_t min_replies_per_s = 64;
constexpr std::size_t min_bytes_per_s = 64 * 1024;
constexpr int max_receives = 64;

}  // namespace

// Opens a new connection. The output then holds what precedes all requests.
bool ServerConnection::open() {
  input_.clear();
  input_position_ = 0;
  output_ = handshake_.begin();
  output_position_ = 0;
  pipeline_.reconnect();
  if (!socket_.start(options_.left(clock_, options_.connect_timeout))) return false;
  if (is_open()) note_peer();
  return true;
}

void ServerConnection::note_peer() const {
  if (options_.peers) options_.peers->note(index_, peer_of(socket_.descriptor(), server_.socket_path));
}

void ServerConnection::start(SteadyTime now) {
  timing_.asked_at = timing_.now = now;
  const bool idle = std::exchange(idle_, false);
  if (idle) timing_.opened = !handshake_.allows_requests() || !socket_.usable_again();
  if (idle && timing_.opened) {
    if (handshake_.allows_requests()) handshake_.close();
    if (!open()) return fail();
  }
  expect_by(now);
  write();
}

void ServerConnection::carry_out(Decision decision) {
  using enum Decision::Action;
  if (decision.action == send) output_ += decision.bytes;
  if (decision.action == refuse || decision.action == resend) pipeline_.rewind();
  if (decision.action == refuse || decision.action == abandon) return fail(std::move(decision.failure));
  if (decision.action != reconnect && decision.action != resend) return;
  if (!open()) return fail();
  if (decision.action == resend) expect_by(timing_.now);
  write();
}

void ServerConnection::expect_by(SteadyTime now) {
  waited_since_ = now;
  answered_before_ = answered();
  received_ = 0;
  deadline_ = options_.latest(now, is_open() ? options_.timeout : options_.connect_timeout);
}

void ServerConnection::renew_deadline() {
  const auto earned = 1 + (answered() - answered_before_) / min_replies_per_s + received_ / min_bytes_per_s;
  const SteadyTime altogether = waited_since_ + options_.timeout * static_cast<std::int64_t>(earned);
  deadline_ = std::min(options_.latest(timing_.now, options_.timeout), altogether);
}

short ServerConnection::events() const {
  if (socket_.state() == Socket::State::connecting) return socket_.connecting_events();
  const bool more = unsent() > 0 || (handshake_.allows_requests() && pipeline_.has_unencoded());
  return static_cast<short>(POLLIN | (more ? POLLOUT : 0));
}

void ServerConnection::proceed(short happened, SteadyTime now) {
  timing_.now = now;
  // Bytes that arrived while this process was paused are not late, so read them before checking the deadline.
  const bool came = now >= deadline_ && is_open() && (happened & POLLIN) != 0;
  if (came) read();
  if (came && (!busy() || now < deadline_)) return;
  if (now >= deadline_) return on_timeout();
  if (happened == 0) return;
  if (socket_.state() == Socket::State::connecting && !finish_connecting()) return;
  if ((happened & (POLLIN | POLLHUP | POLLERR)) != 0) read();
  if (busy()) write();
}

void ServerConnection::on_timeout() {
  const bool short_of_header = is_open() && received_bytes_ == 0 && pipeline_.sent() < binary_header;
  const bool over = options_.run && timing_.now >= options_.run->deadline();
  auto decision = handshake_.on_timeout(
      short_of_header, {.kind = ReplyFailure::Kind::unreachable,
                        .message = over ? "no reply: " + options_.run->why_over() : socket_.complaint(true),
                        .late = true});
  if (decision.action == Decision::Action::reconnect)
    deadline_ = options_.latest(timing_.now, std::min(options_.timeout, max_late_probe));
  carry_out(std::move(decision));
}

// Returns false if the connection is not open yet.
bool ServerConnection::finish_connecting() {
  const auto state = socket_.finish_connecting();
  if (state == Socket::State::closed) fail();
  if (state != Socket::State::open) return false;
  note_peer();
  if (!handshake_.is_probing()) expect_by(timing_.now);  // the protocol probe has a single timeout
  timing_.asked_at = timing_.now;
  const auto end = options_.certificate ? socket_.certificate_end() : std::nullopt;
  if (end) options_.certificate(index_, *end);
  return true;
}

// Encodes requests until the output is large enough.
void ServerConnection::encode_requests() {
  if (!handshake_.allows_requests()) return;
  const RequestFormat format = handshake_.format();
  while (pipeline_.has_unencoded() && unsent() < output_window) {
    const std::size_t before = output_.size();
    if (!pipeline_.encode_next(format, output_)) return;
    if (output_.size() == before) continue;
    if (handshake_.state() == Handshake::State::greeting_due) handshake_.greet(output_, before);
    const std::size_t begin = pipeline_.sent() + before - output_position_;
    pipeline_.lies_at(begin, pipeline_.sent() + unsent());
  }
}

void ServerConnection::write() {
  while (busy() && is_open()) {
    encode_requests();
    if (unsent() == 0) return;
    const bool in_records = socket_.has_records() && handshake_.allows_requests();
    const std::size_t most = in_records ? pipeline_.whole_commands(unsent(), tls::max_record_size) : unsent();
    const std::ptrdiff_t size = socket_.send(output_.data() + output_position_, most);
    if (size < 0) return read();  // the server may have replied before it closed
    if (size == 0) return;
    pipeline_.mark_sent(static_cast<std::size_t>(size));
    output_position_ += static_cast<std::size_t>(size);
    if (unsent() == 0) {
      if (handshake_.is_logging_in()) explicit_bzero(output_.data(), output_.size());  // it held the password
      output_.clear();
      output_position_ = 0;
      if (!pipeline_.has_unencoded()) return;
    } else if (output_position_ > output_window) {
      output_.erase(0, output_position_);
      output_position_ = 0;
    }
  }
}

// Reads a limited number of times, so that a fast server does not starve the others and the deadlines.
void ServerConnection::read() {
  for (int turn = 0; turn < max_receives; ++turn) {
    // Reserve space for the whole value: growth by doubling would hold it twice.
    if (pipeline_.wanted() > input_.capacity()) input_.reserve(pipeline_.wanted() + input_slack);
    const std::ptrdiff_t size = socket_.receive(input_);
    const bool closed = size < 0;
    if (handshake_.is_probing()) return carry_out(handshake_.read(input_, input_position_, closed));
    if (size > 0) {
      received_bytes_ += static_cast<std::size_t>(size);
      received_ += static_cast<std::size_t>(size);
      read_replies();
    }
    if (!busy() || !is_open() || handshake_.is_probing()) return;
    if (closed && socket_.denied()) return fail();
    if (closed) return carry_out(handshake_.read(input_, input_position_, closed));
    if (size < 4096) return;
  }
}

void ServerConnection::read_replies() {
  using Step = ReplyReader::Step;
  if (handshake_.awaits_answer()) {
    auto decision = handshake_.read(input_, input_position_, false);
    if (decision.action != Decision::Action::proceed) return carry_out(std::move(decision));
  }
  while (pipeline_.has_in_flight()) {
    const Step step = pipeline_.read(input_, input_position_);
    if (step == Step::need_more) break;
    if (step == Step::out_of_step || step == Step::turned_away)
      return carry_out(handshake_.on_invalid_reply(step == Step::turned_away));
    if (step == Step::no_meta) handshake_.on_no_meta();
    if (step != Step::progress) {
      handshake_.on_reply();
      pipeline_.finish_command(timing_);
    }
    renew_deadline();
  }
  const bool all_decoded = input_position_ == input_.size();
  if (!busy() && (!all_decoded || unsent() > 0)) {
    // Bytes after the last reply belong to no request. The server waits for the rest of a value that it has
    // refused, and would take the next request for it.
    socket_.close();
    handshake_.close();
  } else if (all_decoded) {
    input_.clear();
    if (input_.capacity() > 4 * input_slack) input_.shrink_to_fit();
    input_position_ = 0;
  } else if (input_position_ > input_slack) {
    input_.erase(0, input_position_);
    input_position_ = 0;
  }
}

void ServerConnection::fail(ReplyFailure failure) {
  if (failure.message.empty()) failure.message = socket_.complaint();
  failure = handshake_.close(std::move(failure));
  if (socket_.denied()) {
    pipeline_.rewind();
    failure = {ReplyFailure::Kind::denied, failure.message};
  }
  socket_.close();
  pipeline_.fail(failure, timing_);
}

void ServerConnection::give_up_flood() {
  fail({.kind = ReplyFailure::Kind::refused,
        .message = "the answers are larger than " + std::to_string(max_answers_size >> 20) +
                   " MiB in total, the limit for one batch; give fewer keys at once",
        .flood = true});
}

}  // namespace mcds::meta
