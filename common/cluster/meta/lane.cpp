#include "common/cluster/meta/lane.hpp"

#include <poll.h>

#include <algorithm>
#include <utility>

namespace mcds::meta {

namespace {

using Kind = ReplyFailure::Kind;

// How much is encoded ahead of the kernel: enough to keep the pipe full, little enough to stay in the cache.
constexpr std::size_t output_window = 128 * 1024;
// Answered bytes are dropped from the front of the input once they are this many.
constexpr std::size_t input_slack = 256 * 1024;
// Forgetting some costs their callers another read, never a wrong comparison.
constexpr std::size_t most_uniques = 65536;

bool changes_nothing(Op op) {
  return op == Op::get || op == Op::gets || op == Op::probe || op == Op::version || op == Op::stats;
}

bool compares(Op op) {
  return op == Op::cas || op == Op::remove_if;
}

}  // namespace

void Lane::begin(IncrForm incr_form) {
  incr_form_ = incr_form;
  forget_answered();
  if (!requests_.empty()) return;
  on_the_way_.clear();
  output_.clear();
  output_position_ = sent_ = produced_ = 0;
  reader_.reset();
  idle_ = true;
}

void Lane::forget_answered() {
  const auto answered = static_cast<std::ptrdiff_t>(answered_);
  requests_.erase(requests_.begin(), requests_.begin() + answered);
  replies_.erase(replies_.begin(), replies_.begin() + answered);
  for (OnTheWay& one : on_the_way_) one.command.first -= answered_;
  encoded_ -= answered_;
  forgotten_ += answered_;
  answered_ = 0;
}

void Lane::add(const Request& request, Reply& reply) {
  requests_.push_back(&request);
  replies_.push_back(&reply);
}

void Lane::start(SteadyTime now) {
  if (std::exchange(idle_, false) && !socket_.usable_again()) {
    input_.clear();
    input_position_ = 0;
    uniques_.clear();
    ++connections_;
    heard_ = false;
    if (!socket_.start())
      return abandon("no connection: " + socket_.error() + "; is the server running?", false);
  }
  expect_by(now);
  asked_at_ = now;
  if (socket_.state() == Socket::State::open) write(now);
}

void Lane::expect_by(SteadyTime now) {
  deadline_ = now + (socket_.state() == Socket::State::open ? options_.timeout : options_.connect_timeout);
}

short Lane::events() const {
  if (socket_.state() == Socket::State::connecting) return POLLOUT;
  const bool more = output_position_ < output_.size() || encoded_ < requests_.size();
  return static_cast<short>(POLLIN | (more ? POLLOUT : 0));
}

void Lane::proceed(short happened, SteadyTime now) {
  if (now >= deadline_) {
    const bool connecting = socket_.state() == Socket::State::connecting;
    return abandon(connecting ? "no connection within the connect timeout; is the server reachable?"
                              : "no reply within the timeout; the server is stopped, overloaded or cut off",
                   false);
  }
  if (happened == 0) return;
  if (socket_.state() == Socket::State::connecting) {
    const auto state = socket_.finish_connecting();
    if (state == Socket::State::closed)
      return abandon("no connection: " + socket_.error() + "; is the server running?", false);
    if (state == Socket::State::connecting) return;
    deadline_ = now + options_.timeout;
    asked_at_ = now;
  }
  if ((happened & (POLLIN | POLLHUP | POLLERR)) != 0) read(now);
  if (busy() && socket_.state() == Socket::State::open) write(now);
}

bool Lane::known_unique(const Request& request) const {
  if (connections_ <= 1) return true;  // there was no earlier connection it could be of
  const auto found = uniques_.find(request.key);
  return found != uniques_.end() && found->second == request.cas.value;
}

void Lane::write(SteadyTime now) {
  while (busy()) {
    while (encoded_ < requests_.size() && output_.size() - output_position_ < output_window) {
      const Request& request = *requests_[encoded_];
      if (compares(request.op) && !known_unique(request)) {
        // Its unique is of an earlier connection: in order with the rest, but answered here.
        if (!on_the_way_.empty()) break;
        replies_[encoded_++]->outcome = Outcome::exists;
        ++answered_;
        continue;
      }
      const std::size_t before = output_.size();
      const Command command = encode(requests_, encoded_, output_, incr_form_);
      produced_ += output_.size() - before;
      encoded_ += command.count;
      on_the_way_.push_back({command, produced_});
    }
    if (output_position_ == output_.size()) break;
    const std::ptrdiff_t size =
        socket_.send(output_.data() + output_position_, output_.size() - output_position_);
    if (size < 0) return read(now);  // what the server said before it closed still counts
    if (size == 0) break;
    sent_ += static_cast<std::size_t>(size);
    output_position_ += static_cast<std::size_t>(size);
    if (output_position_ == output_.size()) {
      output_.clear();
      output_position_ = 0;
      if (encoded_ == requests_.size()) break;
    } else if (output_position_ > output_window) {
      output_.erase(0, output_position_);
      output_position_ = 0;
    }
  }
}

void Lane::read(SteadyTime now) {
  for (;;) {
    const std::ptrdiff_t size = socket_.receive(input_);
    if (size > 0) read_replies(now);
    if (!busy() || socket_.state() != Socket::State::open) return;
    if (size < 0) return abandon("the server closed the connection", false);
    if (size < 4096) return;
  }
}

void Lane::read_replies(SteadyTime now) {
  while (!on_the_way_.empty()) {
    const Command command = on_the_way_.front().command;
    const auto step = reader_.read(command, requests_, replies_, input_, input_position_);
    if (step == ReplyReader::Step::need_more) break;
    deadline_ = now + options_.timeout;
    if (step == ReplyReader::Step::progress) continue;
    // A server turns away before it reads anything; later it would be no answer.
    if (step == ReplyReader::Step::turned_away && !heard_) return turned_away();
    if (step == ReplyReader::Step::no_meta) speaks_meta_ = false;
    if (step == ReplyReader::Step::out_of_step || step == ReplyReader::Step::turned_away)
      return abandon("the server's answer is no memcached reply; is this a memcached?", true);
    finish_command(command, now);
    on_the_way_.pop_front();
  }
  if (input_position_ == input_.size()) {
    // Bytes beyond the last reply would be answers to nothing.
    input_.clear();
    input_position_ = 0;
  } else if (on_the_way_.empty() && encoded_ == requests_.size()) {
    socket_.close();
  } else if (input_position_ > input_slack) {
    input_.erase(0, input_position_);
    input_position_ = 0;
  }
}

void Lane::finish_command(const Command& command, SteadyTime now) {
  const auto elapsed = std::chrono::duration_cast<std::chrono::microseconds>(now - asked_at_);
  for (std::size_t i = 0; i < command.count; ++i) replies_[command.first + i]->round_trip = elapsed;
  answered_ += command.count;
  heard_ = true;
  const Request& request = *requests_[command.first];
  const Reply& reply = *replies_[command.first];
  const bool fetched = request.op == Op::gets || request.op == Op::probe;
  if (fetched && reply.outcome == Outcome::hit && connections_ > 1)
    remember_unique(request.key, reply.cas.value);
  if (compares(request.op)) uniques_.erase(request.key);
}

void Lane::remember_unique(const std::string& key, std::uint64_t unique) {
  if (uniques_.size() >= most_uniques) uniques_.clear();
  uniques_[key] = unique;
}

void Lane::abandon(const std::string& why, bool nonsense) {
  const std::size_t sent = sent_;
  socket_.close();
  std::size_t sent_requests = answered_;
  for (const OnTheWay& one : on_the_way_) {
    if (one.end <= sent) sent_requests = one.command.first + one.command.count;
  }
  for (std::size_t i = answered_; i < requests_.size(); ++i) {
    Reply& reply = *replies_[i];
    const bool answered =
        i == answered_ && reply.failure != nullptr;  // refused in words we know, then out of step
    if (answered || reply.outcome == Outcome::hit) continue;
    const bool maybe_applied = i < sent_requests && !changes_nothing(requests_[i]->op);
    const Kind kind = maybe_applied ? Kind::unknown : nonsense ? Kind::refused : Kind::unreachable;
    reply = Reply::failed_with(kind, why + (maybe_applied ? "; it may have been applied" : ""), index_);
  }
  encoded_ = answered_ = requests_.size();
  on_the_way_.clear();
}

void Lane::turned_away() {
  socket_.close();
  for (std::size_t i = answered_; i < requests_.size(); ++i) {
    *replies_[i] = Reply::failed_with(
        Kind::unreachable, "the server is at its connection limit; raise its -c or try again", index_);
  }
  encoded_ = answered_ = requests_.size();
  on_the_way_.clear();
}

}  // namespace mcds::meta
