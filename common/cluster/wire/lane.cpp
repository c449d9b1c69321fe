#include "common/cluster/wire/lane.hpp"

#include <poll.h>

#include <iterator>

#include "common/base/bounds.hpp"
#include "common/cluster/distinct.hpp"

namespace mcds::meta {

namespace {

using Kind = ReplyFailure::Kind;

// How much is encoded ahead of the kernel: enough to keep the pipe full, little enough to stay in the cache.
constexpr std::size_t output_window = 128 * 1024;
// Answered bytes are dropped from the front of the input once they are this many.
constexpr std::size_t input_slack = 256 * 1024;
// Forgetting some costs their callers another read, never a wrong comparison.
constexpr std::size_t most_uniques = 65536;
constexpr const char* nonsense_message =
    "the reply is not valid in the memcached protocol; is this a memcached server?";
constexpr const char* turned_away_message =
    "the server is at its connection limit; raise its -c or try again";
// What a server must do at least in one timeout, once it has begun to answer.
constexpr std::size_t slowest_replies = 64;
constexpr std::size_t slowest_bytes = 64 * 1024;
constexpr int most_receives = 64;
// Uniques of two servers are not in order for so long.
constexpr std::size_t enough_stamps = 16;
// For what a server is that has not answered in time.
constexpr Duration longest_late_inquiry = std::chrono::milliseconds(100);

bool compares(Op op) {
  return op == Op::cas || op == Op::remove_if;
}

}  // namespace

Dialect Lane::ungreeted(const ConnectOptions& options) {
  const bool classic = options.protocol == ConnectOptions::Protocol::classic;
  return {.words = classic ? Dialect::Words::classic : Dialect::Words::unknown};
}

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

// A new connection, with nothing sent on it but what is to precede everything.
bool Lane::open() {
  input_.clear();
  input_position_ = 0;
  output_.clear();
  output_position_ = sent_ = produced_ = 0;
  uniques_.clear();
  stamps_ = {};
  ++connections_;
  heard_ = false;
  greeting_.reset();
  greets_ = dialect_.words != Dialect::Words::classic && !inquiry_;
  const auto& login = credentials_of(server_).login;
  login_.reset();
  if (login && (!inquiry_ || inquiry_->asks_in_words()))
    output_ = login_.emplace(*login, login_wanted_).words();
  produced_ = output_.size();
  if (!socket_.start(options_.left(clock_, options_.connect_timeout))) return false;
  if (socket_.state() == Socket::State::open) note_peer();
  return true;
}

void Lane::note_peer() const {
  if (options_.peers) options_.peers->note(index_, peer_of(socket_.descriptor(), server_.socket_path));
}

// What the server says to the login, or that it closed. False: there is nothing more to read now.
bool Lane::read_login(bool closed, SteadyTime now) {
  using Step = LoginExchange::Step;
  if (!login_) return true;
  const Step said = login_->read(input_, input_position_);
  if (said == Step::done) {
    login_.reset();
    login_closed_.clear();
    return true;
  }
  const Step step = said == Step::need_more && closed ? login_->closed() : said;
  if (step == Step::send) {
    output_ += login_->words();
    produced_ = sent_ + output_.size() - output_position_;
  } else if (step == Step::reconnect) {
    log_in_again(now);
  } else if (step == Step::failed && step == said) {
    const std::string complaint = login_->complaint();
    refuse_all(login_->kind(), complaint);
  } else if (step == Step::failed && inquiry_) {
    ask_next(now);
  } else if (step == Step::failed) {
    // It may be a server of another protocol, which no login helps with.
    login_closed_ = login_->complaint();
    sent_before_ = 0;
    inquiry_.emplace(Inquiry::Begin::other_protocols);
    ask_next(now);
  }
  return false;
}

// The server refuses reads without a login.
void Lane::log_in_again(SteadyTime now) {
  login_wanted_ = true;
  socket_.close();
  if (!open()) return abandon(socket_.complaint());
  if (socket_.state() == Socket::State::open) write(now);
}

void Lane::start(SteadyTime now) {
  const bool idle = std::exchange(idle_, false);
  if (idle) opened_ = login_.has_value() || !socket_.usable_again();
  asked_at_ = now_ = now;
  if (idle && opened_ && !open()) return abandon(socket_.complaint());
  expect_by(now);
  if (socket_.state() == Socket::State::open) write(now);
}

Wording Lane::wording() const {
  const bool meta =
      dialect_.words != Dialect::Words::classic || options_.protocol == ConnectOptions::Protocol::meta;
  return {.meta = meta,
          .compares_in_md = dialect_.compares_in_md(),
          .long_lines = dialect_.takes_long_lines(),
          .one_key_a_line = dialect_.proxy,
          .stamps = dialect_.is_memcached(),
          .quiet = dialect_.is_memcached() && stamps_.in_order && stamps_.seen >= enough_stamps,
          .incr_form = incr_form_};
}

void Lane::expect_by(SteadyTime now) {
  waited_since_ = now;
  answered_before_ = answered();
  received_ = 0;
  deadline_ = options_.latest(
      now, socket_.state() == Socket::State::open ? options_.timeout : options_.connect_timeout);
}

void Lane::renew_deadline(SteadyTime now) {
  const auto earned = 1 + (answered() - answered_before_) / slowest_replies + received_ / slowest_bytes;
  const SteadyTime altogether = waited_since_ + options_.timeout * static_cast<std::int64_t>(earned);
  deadline_ = std::min(options_.latest(now, options_.timeout), altogether);
}

short Lane::events() const {
  if (socket_.state() == Socket::State::connecting) return socket_.connecting_events();
  const bool more =
      output_position_ < output_.size() || (!inquiry_ && !login_ && encoded_ < requests_.size());
  return static_cast<short>(POLLIN | (more ? POLLOUT : 0));
}

void Lane::proceed(short happened, SteadyTime now) {
  now_ = now;
  // What has come while this process stood still was not late.
  const bool came = now >= deadline_ && socket_.state() == Socket::State::open && (happened & POLLIN) != 0;
  if (came) read(now);
  if (came && (!busy() || now < deadline_)) return;
  if (now >= deadline_) {
    if (!may_wait_for_a_header()) return abandon(socket_.complaint(true), Why::late);
    overdue_ = socket_.complaint(true);
    deadline_ = options_.latest(now, std::min(options_.timeout, longest_late_inquiry));
    return inquire(now);
  }
  if (happened == 0) return;
  if (socket_.state() == Socket::State::connecting) {
    const auto state = socket_.finish_connecting();
    if (state == Socket::State::closed) return abandon(socket_.complaint());
    if (state == Socket::State::connecting) return;
    note_peer();
    if (!inquiry_) expect_by(now);  // one for all that is asked
    asked_at_ = now;
    const auto end = options_.certificate ? socket_.certificate_end() : std::nullopt;
    if (end) options_.certificate(index_, *end);
  }
  if ((happened & (POLLIN | POLLHUP | POLLERR)) != 0) read(now);
  if (busy() && socket_.state() == Socket::State::open) write(now);
}

bool Lane::known_unique(const Request& request) const {
  if (connections_ <= 1) return true;  // there was no earlier connection it could be of
  const auto found = uniques_.find(request.key);
  return found != uniques_.end() && found->second == request.cas.value;
}

// Without being sent: a cas unique of an earlier connection, and what the server has no words for.
bool Lane::answered_here(const Request& request, const Wording& wording, Reply& reply) const {
  if (compares(request.op) && !known_unique(request)) {
    reply.outcome = Outcome::exists;
    return true;
  }
  const std::string_view why = unsayable(wording, request);
  if (!why.empty()) reply = Reply::failed_with(Kind::refused, std::string(why), index_);
  return !why.empty();
}

// How much of the output goes at once. A record of TLS must not end within a command that the next record
// does not end with: memcached before 1.6.40 waits for more to arrive, with the rest of what it has decrypted
// left unread.
std::size_t Lane::whole_commands() const {
  const std::size_t left = output_.size() - output_position_;
  if (!socket_.has_records() || inquiry_ || login_) return left;
  const auto fits = std::ranges::upper_bound(on_the_way_, sent_ + tls::largest_record, {}, &OnTheWay::end);
  if (fits != on_the_way_.begin() && std::prev(fits)->end > sent_) return std::prev(fits)->end - sent_;
  return fits == on_the_way_.end() ? left : std::min(left, fits->end - sent_);
}

void Lane::write(SteadyTime now) {
  const Wording words = wording();
  while (busy()) {
    while (!inquiry_ && !login_ && encoded_ < requests_.size() &&
           output_.size() - output_position_ < output_window) {
      const Request& request = *requests_[encoded_];
      if (Reply here = Reply::of(Outcome::failed, index_); answered_here(request, words, here)) {
        // In order with the rest.
        if (!on_the_way_.empty()) break;
        *replies_[encoded_++] = std::move(here);
        ++answered_;
        continue;
      }
      const std::size_t before = output_.size();
      const Command command = encode(requests_, encoded_, output_, words);
      if (std::exchange(greets_, false)) {
        greeting_.emplace(output_.size() - before);
        output_.insert(before, greeting_->words());
      }
      produced_ += output_.size() - before;
      encoded_ += command.count;
      on_the_way_.push_back({command, produced_});
    }
    if (output_position_ == output_.size()) break;
    const std::ptrdiff_t size = socket_.send(output_.data() + output_position_, whole_commands());
    if (size < 0) return read(now);  // what the server said before it closed still counts
    if (size == 0) break;
    sent_ += static_cast<std::size_t>(size);
    output_position_ += static_cast<std::size_t>(size);
    if (output_position_ == output_.size()) {
      if (login_) explicit_bzero(output_.data(), output_.size());  // the password was sent
      output_.clear();
      output_position_ = 0;
      if (inquiry_ || login_ || encoded_ == requests_.size()) break;
    } else if (output_position_ > output_window) {
      output_.erase(0, output_position_);
      output_position_ = 0;
    }
  }
}

// It closed the connection on our first request ever.
bool Lane::is_stranger() const {
  if (socket_.denied()) return false;
  if (greeting_) return greeting_->only_refused() && dialect_.words == Dialect::Words::unknown;
  return !met_ && options_.protocol == ConnectOptions::Protocol::classic;
}

// Servers of the binary protocol take no less than a header, and say nothing before they have one. Only
// without a greeting: that is as long.
bool Lane::may_wait_for_a_header() const {
  return options_.protocol == ConnectOptions::Protocol::classic && !inquiry_ && !met_ && heard_bytes_ == 0 &&
         socket_.state() == Socket::State::open && sent_ < binary_header;
}

// Other servers and the deadlines have their turn too, however fast this one speaks.
void Lane::read(SteadyTime now) {
  for (int turn = 0; turn < most_receives; ++turn) {
    // Grown by doubling, it would be held twice.
    if (reader_.wanted() > input_.capacity()) input_.reserve(reader_.wanted() + input_slack);
    const std::ptrdiff_t size = socket_.receive(input_);
    if (inquiry_) return read_answer(size < 0, now);
    if (size > 0) {
      heard_bytes_ += static_cast<std::size_t>(size);
      received_ += static_cast<std::size_t>(size);
      read_replies(now);
    }
    if (!busy() || socket_.state() != Socket::State::open || inquiry_) return;
    if (size < 0 && login_ && !socket_.denied()) return static_cast<void>(read_login(true, now));
    if (size < 0 && is_stranger()) return inquire(now);
    if (size < 0) return abandon(socket_.complaint());
    if (size < 4096) return;
  }
}

// False: there is nothing more to read now.
bool Lane::read_greeting() {
  if (!greeting_) return true;
  switch (greeting_->read(input_, input_position_, dialect_)) {
    case Greeting::Step::done:
      greeting_.reset();
      heard_ = true;
      return true;
    case Greeting::Step::need_more: break;
    case Greeting::Step::turned_away: refuse_all(Kind::unreachable, turned_away_message); break;
    case Greeting::Step::foreign: refuse_all(greeting_->kind(), greeting_->complaint()); break;
    case Greeting::Step::nonsense: abandon(nonsense_message, Why::nonsense);
  }
  return false;
}

void Lane::inquire(SteadyTime now) {
  sent_before_ = requests_sent();
  inquiry_.emplace(greeting_ ? Inquiry::Begin::greeting : Inquiry::Begin::classic);
  ask_next(now);
}

// On a separate connection, within the deadline that began with the first.
void Lane::ask_next(SteadyTime now) {
  const auto question = inquiry_->next();
  if (!question && !login_closed_.empty()) return refuse_all(Kind::denied, login_closed_);
  if (!question) return abandon("the server closes every connection; is this a memcached server?");
  socket_.close();
  if (!open()) return abandon(socket_.complaint());
  output_ += *question;
  if (socket_.state() == Socket::State::open) write(now);
}

void Lane::read_answer(bool closed, SteadyTime now) {
  if (!read_login(closed, now)) return;
  const auto finding = inquiry_->read(std::string_view(input_).substr(input_position_), closed);
  const bool knows_words = finding == Inquiry::Finding::answered || finding == Inquiry::Finding::classic;
  if (knows_words && !login_closed_.empty()) return refuse_all(Kind::denied, login_closed_);
  switch (finding) {
    case Inquiry::Finding::need_more: return;
    case Inquiry::Finding::closed: return ask_next(now);
    case Inquiry::Finding::answered: return abandon(socket_.complaint());
    case Inquiry::Finding::foreign: return refuse_all(inquiry_->kind(), inquiry_->complaint());
    case Inquiry::Finding::classic:
      if (options_.protocol == ConnectOptions::Protocol::classic) return abandon(socket_.complaint());
      if (options_.protocol == ConnectOptions::Protocol::meta)
        return refuse_all(Kind::refused,
                          "the server closes the connection on meta commands; use --protocol auto");
      return begin_again(now);
  }
}

// It closed on the greeting: nothing behind that was executed, so everything is sent anew.
void Lane::begin_again(SteadyTime now) {
  dialect_ = {.words = Dialect::Words::classic, .proxy = true};
  inquiry_.reset();
  socket_.close();
  on_the_way_.clear();
  reader_.reset();
  encoded_ = answered_;
  if (!open()) return abandon(socket_.complaint());
  expect_by(now);
  if (socket_.state() == Socket::State::open) write(now);
}

void Lane::read_replies(SteadyTime now) {
  if (!read_login(false, now) || !read_greeting()) return;
  while (!on_the_way_.empty()) {
    const Command command = on_the_way_.front().command;
    const auto step = reader_.read(command, requests_, replies_, input_, input_position_, dialect_.words);
    if (step == ReplyReader::Step::need_more) break;
    if (step == ReplyReader::Step::progress) {
      renew_deadline(now);
      continue;
    }
    // A server turns away before it reads anything; later it would be no answer.
    if (step == ReplyReader::Step::turned_away && !heard_)
      return refuse_all(Kind::unreachable, turned_away_message);
    if (step == ReplyReader::Step::no_meta) dialect_.words = Dialect::Words::classic;
    if (step == ReplyReader::Step::out_of_step || step == ReplyReader::Step::turned_away)
      return abandon(nonsense_message, Why::nonsense);
    finish_command(command, now);
    renew_deadline(now);
    on_the_way_.pop_front();
  }
  if (input_position_ == input_.size()) {
    // Bytes beyond the last reply would be answers to nothing.
    input_.clear();
    if (input_.capacity() > 4 * input_slack) input_.shrink_to_fit();
    input_position_ = 0;
  } else if (on_the_way_.empty() && encoded_ == requests_.size()) {
    socket_.close();
  } else if (input_position_ > input_slack) {
    input_.erase(0, input_position_);
    input_position_ = 0;
  }
}

void Lane::finish_command(const Command& command, SteadyTime now) {
  for (std::size_t i = command.first; i < command.first + command.count; ++i) {
    fill_in(*replies_[i], now);
    note_unique(*requests_[i], *replies_[i]);
  }
  answered_ += command.count;
  heard_ = met_ = true;
  if (requests_[command.first]->op == Op::add_and_get) tell_created(command);
}

// What is known of the uniques on this connection.
void Lane::note_unique(const Request& request, const Reply& reply) {
  if (connections_ <= 1 || request.op == Op::add_and_get) return;
  const bool fetched = request.op == Op::gets || request.op == Op::probe;
  const bool stamped = fetched ? reply.outcome == Outcome::hit : reply.cas.value != 0;
  if (stamped) remember_unique(request.key, reply.cas.value);
  if (compares(request.op)) uniques_.erase(request.key);
}

// What this run stored is newer than anything before it.
void Lane::tell_created(const Command& command) {
  std::uint64_t newest = stamps_.newest;
  for (std::size_t i = command.first; i < command.first + command.count; ++i) {
    Reply& reply = *replies_[i];
    if (command.wording.quiet) reply.created = reply.cas.value > stamps_.newest;
    reply.created = reply.created && reply.outcome == Outcome::hit;
    if (!reply.created || !command.wording.stamps) continue;
    stamps_.in_order = stamps_.in_order && reply.cas.value > newest;
    newest = std::max(newest, reply.cas.value);
    ++stamps_.seen;
  }
  stamps_.newest = newest;
}

void Lane::fill_in(Reply& reply, SteadyTime now) const {
  reply.round_trip = std::chrono::duration_cast<std::chrono::microseconds>(now - asked_at_);
  reply.protocol =
      dialect_.words == Dialect::Words::classic ? Reply::Protocol::classic : Reply::Protocol::meta;
  reply.opened = opened_;
}

void Lane::remember_unique(const std::string& key, std::uint64_t unique) {
  if (uniques_.size() >= most_uniques) uniques_.clear();
  uniques_[key] = unique;
}

// Those that went out whole: half a request is not executed.
std::size_t Lane::requests_sent() const {
  std::size_t count = answered_;
  for (const OnTheWay& one : on_the_way_) {
    if (one.end <= sent_) count = one.command.first + one.command.count;
  }
  return count;
}

void Lane::abandon(std::string why, Why kind) {
  if (const std::string overdue = std::exchange(overdue_, {}); !overdue.empty()) {
    why = overdue;
    kind = Why::late;
  }
  if (socket_.denied()) return refuse_all(Kind::denied, why);
  const std::size_t sent_requests = inquiry_ ? sent_before_ : requests_sent();
  inquiry_.reset();
  socket_.close();
  for (std::size_t i = answered_; i < requests_.size(); ++i) {
    Reply& reply = *replies_[i];
    const bool answered =
        i == answered_ && reply.failure != nullptr;  // refused in words we know, then out of step
    if (answered || reply.outcome == Outcome::hit) continue;
    const bool maybe_applied = i < sent_requests && !changes_nothing(requests_[i]->op);
    const Kind failure = maybe_applied                                 ? Kind::unknown
                         : kind == Why::nonsense || kind == Why::flood ? Kind::refused
                                                                       : Kind::unreachable;
    reply = Reply::of(Outcome::failed, index_);
    reply.failure = std::make_shared<const ReplyFailure>(
        ReplyFailure{.kind = failure,
                     .message = maybe_applied ? why + std::string(may_be_applied) : why,
                     .late = kind == Why::late,
                     .flood = kind == Why::flood});
    fill_in(reply, now_);
  }
  encoded_ = answered_ = requests_.size();
  on_the_way_.clear();
}

void Lane::give_up_flood() {
  abandon("the answers are larger than " + std::to_string(largest_answers >> 20) +
              " MiB in total, the limit for one batch; ask for fewer keys at once",
          Why::flood);
}

void Lane::refuse_all(Kind kind, const std::string& why) {
  overdue_.clear();
  for (std::size_t i = answered_; i < requests_.size(); ++i) {
    *replies_[i] = Reply::failed_with(kind, why, index_);
    fill_in(*replies_[i], now_);
  }
  encoded_ = answered_ = requests_.size();
  on_the_way_.clear();
  inquiry_.reset();  // `why` may be its own
  socket_.close();
}

}  // namespace mcds::meta
