#include "common/cluster/wire/pipeline.hpp"

#include <iterator>

#include "common/base/errors.hpp"

namespace mcds::meta {

namespace {

// The maximum of remembered tokens. Forgetting them costs callers another read, never a wrong comparison.
constexpr std::size_t max_cas_tokens = 65536;

bool compares(Op op) {
  return op == Op::cas || op == Op::remove_if;
}

}  // namespace

bool CasTokens::allow(const Request& request) const {
  if (first_ || !compares(request.op)) return true;
  const auto found = known_.find(request.key);
  return found != known_.end() && found->second == request.cas.value;
}

void CasTokens::note(const Request& request, const Reply& reply) {
  if (first_ || request.op == Op::add_and_get) return;
  const bool fetched = request.op == Op::gets || request.op == Op::probe;
  const bool shows_cas = fetched ? reply.outcome == Outcome::hit : reply.cas.value != 0;
  if (shows_cas) {
    if (known_.size() >= max_cas_tokens) known_.clear();
    known_[request.key] = reply.cas.value;
  }
  if (compares(request.op)) known_.erase(request.key);
}

void CasTokens::report_created(const RequestFormat& format, std::span<Reply* const> replies) {
  std::uint64_t newest = newest_;
  for (Reply* const reply : replies) {
    if (format.quiet) reply->created = reply->cas.value > newest_;
    reply->created = reply->created && reply->outcome == Outcome::hit;
    if (!reply->created || !format.shows_cas) continue;
    in_order_ = in_order_ && reply->cas.value > newest;
    newest = std::max(newest, reply->cas.value);
    ++seen_;
  }
  newest_ = newest;
}

bool Pipeline::begin_batch(IncrForm incr_form) {
  incr_form_ = incr_form;
  const auto answered = static_cast<std::ptrdiff_t>(answered_);
  requests_.erase(requests_.begin(), requests_.begin() + answered);
  replies_.erase(replies_.begin(), replies_.begin() + answered);
  for (InFlight& one : in_flight_) one.command.first -= answered_;
  encoded_ -= answered_;
  lost_ -= std::min(lost_, answered_);
  forgotten_ += std::exchange(answered_, 0);
  if (busy()) return false;
  sent_ = 0;
  return true;
}

void Pipeline::add(const Request& request, Reply& reply) {
  requests_.push_back(&request);
  replies_.push_back(&reply);
}

bool Pipeline::encode_next(RequestFormat format, std::string& output) {
  const Command* const last = has_in_flight() ? &in_flight_.back().command : nullptr;
  require(encoded_ == (last ? last->first + last->count : answered_),
          "requests are sent in order, each once");
  format.quiet = format.shows_cas && tokens_.are_in_order();
  format.incr_form = incr_form_;
  const bool outdated = !tokens_.allow(*requests_[encoded_]);
  const std::string_view why = unsupported_reason(format, *requests_[encoded_]);
  if (!outdated && why.empty()) {
    const Command command = encode(requests_, encoded_, output, format);
    encoded_ += command.count;
    in_flight_.push_back({command, 0, 0});
    return true;
  }
  if (last) return false;
  Reply& reply = *replies_[encoded_++];
  reply = outdated ? Reply::of(Outcome::exists, server_)
                   : Reply::failed_with(ReplyFailure::Kind::refused, std::string(why), server_);
  ++answered_;
  return true;
}

std::size_t Pipeline::whole_commands(std::size_t left, std::size_t max_record) const {
  const auto next = std::ranges::upper_bound(in_flight_, sent_, {}, &InFlight::end);
  if (next == in_flight_.end()) return left;
  if (next->begin > sent_) return next->begin - sent_;  // the one before it was answered before it was sent
  const auto fits = std::ranges::upper_bound(in_flight_, sent_ + max_record, {}, &InFlight::end);
  if (next->begin == sent_ && fits != next) return std::prev(fits)->end - sent_;
  const std::size_t read_back = next->end - next->command.read_back;
  return (sent_ < read_back ? read_back : next->end) - sent_;
}

ReplyReader::Step Pipeline::read(std::string_view input, std::size_t& position) {
  return reader_.read(in_flight_.front().command, requests_, replies_, input, position, protocol_.words);
}

void Pipeline::finish_command(const ReplyTiming& timing) {
  const Command& command = in_flight_.front().command;
  require(command.first == answered_, "requests are answered in order");
  for (std::size_t i = command.first; i < command.first + command.count; ++i) {
    stamp(*replies_[i], timing);
    tokens_.note(*requests_[i], *replies_[i]);
  }
  answered_ += command.count;
  if (requests_[command.first]->op == Op::add_and_get)
    tokens_.report_created(command.format, std::span(replies_).subspan(command.first, command.count));
  in_flight_.pop_front();
}

void Pipeline::stamp(Reply& reply, const ReplyTiming& timing) const {
  reply.round_trip = std::chrono::duration_cast<std::chrono::microseconds>(timing.now - timing.asked_at);
  reply.protocol = protocol_.words == ServerProtocol::CommandSet::classic ? Reply::Protocol::classic
                                                                          : Reply::Protocol::meta;
  reply.opened = timing.opened;
}

// Returns the number of requests that were answered or sent whole.
std::size_t Pipeline::requests_sent() const {
  std::size_t count = std::max(answered_, lost_);
  for (const InFlight& one : in_flight_) {
    if (one.end <= sent_) count = one.command.first + one.command.count;
  }
  return count;
}

void Pipeline::reconnect() {
  lost_ = requests_sent();
  in_flight_.clear();
  sent_ = 0;
  reader_.reset();
  if (connections_++ > 0) tokens_ = CasTokens(false);
}

void Pipeline::rewind() {
  in_flight_.clear();
  lost_ = 0;
  encoded_ = answered_;
}

void Pipeline::fail(const ReplyFailure& failure, const ReplyTiming& timing) {
  const std::size_t sent_requests = requests_sent();
  for (std::size_t i = answered_; i < requests_.size(); ++i) {
    Reply& reply = *replies_[i];
    // The first may have been refused by a known error line that was out of step.
    const bool answered = i == answered_ && reply.failure != nullptr;
    if (answered || reply.outcome == Outcome::hit) continue;
    ReplyFailure own = failure;
    if (i < sent_requests && !changes_nothing(requests_[i]->op)) {
      own.kind = ReplyFailure::Kind::unknown;
      own.message += may_be_applied;
    }
    reply = Reply::of(Outcome::failed, server_);
    reply.failure = std::make_shared<const ReplyFailure>(std::move(own));
    stamp(reply, timing);
  }
  encoded_ = answered_ = requests_.size();
  rewind();
}

}  // namespace mcds::meta
