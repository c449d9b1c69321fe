// Handshake: what precedes the first request on a connection, and what the server's answers to it mean. It
// does no I/O: ServerConnection reports what arrived, closed or timed out, and carries out the Decision.
//
//   closed -> logging_in -> greeting_due -> greeting -> ready  the usual path; logging_in only with a login
//   closed, logging_in -> unconfirmed -> ready                 the protocol is classic: there is no greeting
//   logging_in -> closed                                       a login is required: reconnect, log in first
//   logging_in, greeting, unconfirmed -> probing               what is this server? Asks on new connections
//   probing -> probing_login -> probing                        the next question follows a login
//   probing -> closed                                          only `mn` was rejected: resend as classic
//   any -> closed                                              the connection must not be used any more
//
// A close begins the probe in logging_in, in greeting if nothing but errors came, and in unconfirmed if the
// user chose the classic protocol and the server never replied. Elsewhere the requests in flight fail.
// A timeout begins the probe if a binary server may be waiting for a whole header, and reports the timeout
// unless the probe finds another protocol. Otherwise the requests in flight fail.
// A lost reply is a timeout or a close: the pipeline reports an unknown outcome for each write that was sent.
#pragma once

#include "common/cluster/credentials.hpp"
#include "common/cluster/wire/greeting.hpp"
#include "common/cluster/wire/wire.hpp"

namespace mcds::meta {

class Handshake {
 public:
  enum class State {
    closed,
    logging_in,     // the login was sent; requests wait for its answer
    greeting_due,   // the greeting goes out with the first request
    greeting,       // the greeting was sent, requests follow in the same write; the protocol is unknown
    unconfirmed,    // requests may be sent without a greeting; the server has not replied on this connection
    ready,          // the server has replied to the greeting or to a request on this connection
    probing,        // a question of the protocol probe was sent, or is the next to be sent
    probing_login,  // a login was sent before the question, and is not answered yet
  };

  // Both must outlive the Handshake.
  Handshake(const Server& server, const ConnectOptions& options)
      : server_(server), options_(options), protocol_(ungreeted(options)) {}

  // Returns a server's abilities before the greeting: unknown, or given by the user.
  static ServerProtocol ungreeted(const ConnectOptions& options);
  // Returns the server's abilities as far as it was greeted.
  const ServerProtocol& protocol() const { return protocol_; }
  // Returns the part of the format that depends on the server.
  RequestFormat format() const;

  State state() const { return state_; }
  bool is_logging_in() const { return state_ == State::logging_in || state_ == State::probing_login; }
  bool is_probing() const { return state_ == State::probing || state_ == State::probing_login; }
  bool allows_requests() const { return state_ >= State::greeting_due && state_ <= State::ready; }
  // Returns true if the input must be given to read() before it is read as replies.
  bool awaits_answer() const { return state_ == State::greeting || state_ == State::logging_in; }

  // Starts on a new connection. Returns the bytes to send first.
  std::string begin();
  // Inserts the greeting before the first request, which is the output from `request` on.
  void greet(std::string& output, std::size_t request);

  // Reads an answer, and advances `position`. `closed`: no more bytes will follow.
  Decision read(std::string_view input, std::size_t& position, bool closed);
  // Decides what a timeout means. `short_of_header`: the connection is open, the server has never sent
  // anything, and got less than a binary header.
  Decision on_timeout(bool short_of_header, ReplyFailure late);
  // Decides what an invalid reply to a request means. A server reports its connection limit before it reads
  // anything; a later report is not a valid reply.
  Decision on_invalid_reply(bool reports_limit) const {
    return on_invalid_answer(reports_limit && state_ != State::ready);
  }
  // Records that a request was answered, or that the server lacks a meta command.
  void on_reply();
  void on_no_meta() { protocol_.words = ServerProtocol::CommandSet::classic; }

  // Ends the connection. Returns the failure to report: `failure`, or the earlier timeout that led to it.
  ReplyFailure close(ReplyFailure failure = {});

 private:
  void enter(State next);  // throws std::logic_error if the drawing above lacks this transition
  State after_login() const;
  Decision read_login(std::string_view input, std::size_t& position, bool closed);
  Decision read_greeting(std::string_view input, std::size_t& position, bool closed);
  Decision read_answer(std::string_view input, bool closed);
  Decision on_close();
  Decision probe(ProtocolProbe::Begin begin, std::optional<ReplyFailure> reason = {});
  Decision ask_next();
  Decision found_nothing(std::string why = {}) const;

  const Server& server_;
  const ConnectOptions& options_;
  State state_ = State::closed;
  ServerProtocol protocol_;
  std::optional<LoginExchange> login_;           // in logging_in and probing_login
  std::optional<Greeting> greeting_;             // in greeting
  std::optional<ProtocolProbe> probe_;           // in probing and probing_login
  std::optional<ReplyFailure> pending_failure_;  // why it probes, to be reported if the probe finds nothing
  bool login_required_ = false;                  // the server is known to refuse reads without a login
  bool answered_once_ = false;                   // the server has ever answered a request
};

}  // namespace mcds::meta
