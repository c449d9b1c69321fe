#include "common/cluster/wire/handshake.hpp"

#include "common/base/errors.hpp"

namespace mcds::meta {

namespace {

using Kind = ReplyFailure::Kind;
using Action = Decision::Action;
using Protocol = ConnectOptions::Protocol;
using CommandSet = ServerProtocol::CommandSet;

bool leads_to(Handshake::State from, Handshake::State next) {
  using enum Handshake::State;
  switch (from) {
    case closed: return next == logging_in || next == greeting_due || next == unconfirmed || next == closed;
    case logging_in: return next == greeting_due || next == unconfirmed || next == probing || next == closed;
    case greeting_due: return next == greeting || next == closed;
    case greeting:
    case unconfirmed: return next == ready || next == probing || next == closed;
    case ready: return next == closed;
    case probing: return next == probing || next == probing_login || next == closed;
    case probing_login: return next == probing || next == closed;
  }
  return false;
}

}  // namespace

ServerProtocol Handshake::ungreeted(const ConnectOptions& options) {
  return {.words = options.protocol == Protocol::classic ? CommandSet::classic : CommandSet::unknown};
}

RequestFormat Handshake::format() const {
  return {.meta = protocol_.words != CommandSet::classic || options_.protocol == Protocol::meta,
          .compares_in_md = protocol_.compares_in_md(),
          .long_lines = protocol_.takes_long_lines(),
          .one_key_a_line = protocol_.proxy,
          .shows_cas = protocol_.is_memcached()};
}

void Handshake::enter(State next) {
  require(leads_to(state_, next), "a connection takes the steps of its handshake in order");
  state_ = next;
}

Handshake::State Handshake::after_login() const {
  if (is_probing()) return State::probing;
  return protocol_.words == CommandSet::classic ? State::unconfirmed : State::greeting_due;
}

std::string Handshake::begin() {
  const bool probes = is_probing();
  const auto& login = credentials_of(server_).login;
  const bool logs_in = login && (!probes || probe_->asks_in_words());
  enter(!logs_in ? after_login() : probes ? State::probing_login : State::logging_in);
  std::string bytes = logs_in ? login_.emplace(*login, login_required_).words() : std::string();
  if (probes) bytes += probe_->question();
  return bytes;
}

void Handshake::greet(std::string& output, std::size_t request) {
  enter(State::greeting);
  greeting_.emplace(output.size() - request);
  output.insert(request, greeting_->words());
}

Decision Handshake::read(std::string_view input, std::size_t& position, bool closed) {
  if (is_logging_in()) return read_login(input, position, closed);
  if (is_probing()) return read_answer(input.substr(position), closed);
  if (state_ == State::greeting) return read_greeting(input, position, closed);
  return closed ? on_close() : Decision{Action::proceed};
}

Decision Handshake::read_login(std::string_view input, std::size_t& position, bool closed) {
  using Step = LoginExchange::Step;
  const Step read = login_->read(input, position);
  const bool cut_off = closed && read == Step::need_more;
  switch (cut_off ? login_->closed() : read) {
    case Step::need_more: return {};
    case Step::send: return {.action = Action::send, .bytes = login_->words()};
    case Step::reconnect:
      login_required_ = true;
      enter(is_probing() ? State::probing : State::closed);
      return {Action::reconnect};
    case Step::done:
      enter(after_login());
      return is_probing() ? read_answer(input.substr(position), closed) : Decision{Action::proceed};
    case Step::failed: break;
  }
  ReplyFailure failure{login_->kind(), login_->complaint()};
  if (!cut_off) return {Action::refuse, std::move(failure)};
  if (is_probing()) return ask_next();
  // This may be a server of another protocol, where a login is no help.
  return probe(ProtocolProbe::Begin::other_protocols, std::move(failure));
}

Decision Handshake::read_greeting(std::string_view input, std::size_t& position, bool closed) {
  Decision decision = greeting_->read(input, position, protocol_);
  if (decision.action == Action::wait && closed) return on_close();
  if (decision.action == Action::proceed) enter(State::ready);
  return decision;
}

// Begins the probe if the server closed on the first exchange, so that its protocol is unknown.
Decision Handshake::on_close() {
  if (state_ == State::greeting && greeting_->only_refused() && protocol_.words == CommandSet::unknown)
    return probe(ProtocolProbe::Begin::greeting);
  const bool first = state_ == State::unconfirmed && !answered_once_;
  if (first && options_.protocol == Protocol::classic) return probe(ProtocolProbe::Begin::classic);
  return {Action::abandon};
}

// A binary server silently waits for a whole header. That happens only without a greeting, which is as long.
Decision Handshake::on_timeout(bool short_of_header, ReplyFailure late) {
  const bool first = (state_ == State::unconfirmed || state_ == State::logging_in) && !answered_once_;
  if (short_of_header && first && options_.protocol == Protocol::classic)
    return probe(ProtocolProbe::Begin::classic, std::move(late));
  return {Action::abandon, std::move(late)};
}

void Handshake::on_reply() {
  require(state_ == State::unconfirmed || state_ == State::ready, "requests are answered after the greeting");
  answered_once_ = true;
  if (state_ == State::unconfirmed) enter(State::ready);
}

Decision Handshake::probe(ProtocolProbe::Begin begin, std::optional<ReplyFailure> reason) {
  pending_failure_ = std::move(reason);
  probe_.emplace(begin);
  return ask_next();
}

// Asks the next question on a new connection.
Decision Handshake::ask_next() {
  enter(State::probing);
  if (probe_->next()) return {Action::reconnect};
  return found_nothing("the server closes every connection; is this a memcached server?");
}

// Ends a probe that has found no other protocol: if it began at a login, the server rejects this login.
Decision Handshake::found_nothing(std::string why) const {
  if (pending_failure_ && !pending_failure_->late) return {Action::refuse, *pending_failure_};
  return {Action::abandon, {Kind::unreachable, std::move(why)}};
}

Decision Handshake::read_answer(std::string_view input, bool closed) {
  using Finding = ProtocolProbe::Finding;
  const Finding finding = probe_->read(input, closed);
  if (finding == Finding::need_more) return {};
  if (finding == Finding::closed) return ask_next();
  if (finding == Finding::foreign) return {Action::refuse, probe_->failure()};
  const bool explains = finding == Finding::classic && options_.protocol != Protocol::classic;
  if (!explains || pending_failure_) return found_nothing();
  if (options_.protocol == Protocol::meta)
    return {Action::refuse,
            {Kind::refused, "the server closes the connection on meta commands; use --protocol auto"}};
  // The server closes on `mn` and executed nothing after the greeting.
  protocol_ = {.words = CommandSet::classic, .proxy = true};
  close();
  return {Action::resend};
}

ReplyFailure Handshake::close(ReplyFailure failure) {
  const bool explains = pending_failure_ && pending_failure_->late && failure.kind == Kind::unreachable;
  if (explains) failure = *std::move(pending_failure_);
  enter(State::closed);
  probe_.reset();
  pending_failure_.reset();
  return failure;
}

}  // namespace mcds::meta
