// Greeting and ProtocolProbe: find out what a server is and what it supports. Both do no I/O.
//
// `mn` precedes every other command. A server with meta commands answers MN; others answer an error or close
// the connection, so the kind of server is known before any other reply is read. `version`, sent after it,
// shows the differences of that version. Both travel with the first requests and cost no round trip.
//
// If a server closes on the greeting, with or without an error line, the requests after it may have been
// executed: memcached answers line by line, and may have died after the first line. ProtocolProbe therefore
// sends questions, each on a separate connection. If the server closes on `mn` alone too, but answers a
// `get`, then `mn` closed the first connection and no later request was executed. Without a greeting
// (--protocol classic), a binary server silently waits for the rest of a header; ProtocolProbe detects that
// after the timeout.
#pragma once

#include "common/cluster/request.hpp"
#include "common/cluster/transport.hpp"

namespace mcds::meta {

// The header size of the binary protocol; such a server does not answer before it has a whole header.
constexpr std::size_t binary_header = 24;
// A binary request for the SASL mechanisms, which needs no login.
constexpr std::string_view binary_question{"\x80\x20\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
                                           binary_header};

// The meaning of an answer, or of its absence, for a connection and its requests.
struct Decision {
  enum class Action {
    wait,       // more bytes are needed
    proceed,    // the rest of the input belongs to the pipeline
    send,       // send `bytes`
    reconnect,  // open a new connection and call begin(); requests that were sent may have been applied
    resend,     // the same, but nothing was applied: encode all unanswered requests again
    refuse,     // nothing was applied: fail all requests with `failure`
    abandon,    // fail all requests with `failure`, which lacks a message if the socket has the reason
  };
  Action action = Action::wait;
  ReplyFailure failure = {};
  std::string bytes = {};
};

// Decides what an invalid answer means. `turned_away`: the server reports its connection limit, and closes.
Decision on_invalid_answer(bool turned_away);

class Greeting {
 public:
  // `follow` bytes are sent right after it. `mn` is repeated until both fill a binary header.
  explicit Greeting(std::size_t follow);
  const std::string& words() const { return words_; }

  // Reads the answer, which decides what `protocol` is. Another kind of server has applied nothing.
  Decision read(std::string_view input, std::size_t& position, ServerProtocol& protocol);
  // Returns true if it has answered nothing but errors: a close may then be the reply to `mn`.
  bool only_refused() const { return !got_reply_ || found_ == ServerProtocol::CommandSet::classic; }

 private:
  std::string words_;
  int again_ = 0;  // replies to repeated `mn` that are still expected
  bool got_reply_ = false;
  ServerProtocol::CommandSet found_ = ServerProtocol::CommandSet::unknown;
};

class ProtocolProbe {
 public:
  // The input on which the server closed. Servers of other protocols close on a login.
  enum class Begin { greeting, classic, other_protocols };
  explicit ProtocolProbe(Begin begin) : asked_(static_cast<int>(begin)) {}

  // Moves to the next question. Returns false if none is left.
  bool next();
  // Returns the bytes to send on the next connection.
  std::string_view question() const;

  enum class Finding {
    need_more,
    classic,   // it closes only on `mn`
    answered,  // it accepts `mn`, so the first connection was closed for another reason
    foreign,   // another kind of server, see failure()
    closed,    // no valid reply, or an error followed by a close: ask the next question
  };
  Finding read(std::string_view input, bool closed);
  const ReplyFailure& failure() const { return *failure_; }
  // Returns true if the question is a command of the text protocol, which a login may precede.
  bool asks_in_words() const { return asked_ > 0 && asked_ <= 2; }

 private:
  int asked_;
  std::optional<ReplyFailure> failure_;
};

}  // namespace mcds::meta
