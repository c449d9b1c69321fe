// The first words on a connection, and what a server's answer to them shows. Pure, no I/O.
//
// `mn` goes in front of everything: what knows meta commands answers MN, what does not answers an error or
// closes the connection, and is known before the answer to anything else is read. `version` after it shows
// what that version does differently. Both travel in the same write as the first requests, so they cost no
// round trip.
//
// A server that closes on the greeting, with an error line or without one, leaves open whether what came
// behind was executed: memcached answers line by line, and may have died behind the first. Inquiry asks
// again, each question on a separate connection: when `mn` alone is closed on as well, and a `get` is
// answered, it was the `mn` that closed the first connection, and nothing behind it was executed. Where
// nothing greets (--protocol classic), a server of the binary protocol waits for the rest of a header
// instead: Inquiry finds that out after the timeout.
#pragma once

#include "common/cluster/request.hpp"
#include "common/cluster/transport.hpp"

namespace mcds::meta {

// A server of the binary protocol says nothing before it has a whole header.
constexpr std::size_t binary_header = 24;

class Greeting {
 public:
  // `follow`: how many bytes are sent with it. Until they fill a binary header there is one `mn` more.
  explicit Greeting(std::size_t follow);
  const std::string& words() const { return words_; }

  enum class Step {
    need_more,
    done,         // the dialect is known
    turned_away,  // the server is at its connection limit and closes: nothing was applied
    foreign,      // complaint() says what it is instead; nothing was applied
    nonsense,     // no answer to this
  };
  Step read(std::string_view input, std::size_t& position, Dialect& dialect);
  // Whether it has answered nothing but errors: if it closes now, that may be its answer to `mn`.
  bool only_refused() const { return !heard_ || found_ == Dialect::Words::classic; }
  const std::string& complaint() const { return complaint_; }
  ReplyFailure::Kind kind() const { return kind_; }

 private:
  std::string words_;
  int again_ = 0;  // answers to `mn` that are still to come behind the first
  bool heard_ = false;
  Dialect::Words found_ = Dialect::Words::unknown;
  ReplyFailure::Kind kind_ = ReplyFailure::Kind::refused;
  std::string complaint_;
};

class Inquiry {
 public:
  // What the server closed on: a greeting; classic words; a login, which servers of other protocols close on.
  enum class Begin { greeting, classic, other_protocols };
  explicit Inquiry(Begin begin) : asked_(static_cast<int>(begin)) {}

  // What to send on the next connection; nullopt: there is nothing left to ask.
  std::optional<std::string_view> next();

  enum class Finding {
    need_more,
    classic,   // it closes on `mn` only
    answered,  // it takes `mn`: what closed the first connection was something else
    foreign,   // complaint() says what it is instead
    closed,    // no answer to this, or an error behind which it closed: ask the next
  };
  Finding read(std::string_view input, bool closed);
  const std::string& complaint() const { return complaint_; }
  ReplyFailure::Kind kind() const { return kind_; }
  // Whether what next() gave is memcached's text: then a login may stand in front of it.
  bool asks_in_words() const { return asked_ > 0 && asked_ <= 2; }

 private:
  int asked_;
  ReplyFailure::Kind kind_ = ReplyFailure::Kind::refused;
  std::string complaint_;
};

}  // namespace mcds::meta
