// What one server said to one request, or why it said nothing.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/cluster/request.hpp"

namespace mcds {

enum class Outcome {
  hit,         // get, gets, probe, add_and_get, version, stats
  miss,        // get, gets, probe, add_and_get: the server has no such item
  stored,      // add, set, replace, cas, append, incr, decr, touch and both composites
  not_stored,  // add: exists; replace: missing; append: missing, or full, or no memory (ask with get);
               // append_or_create: the item is full or the server without memory
  exists,      // cas, remove_if: the item has changed
  not_found,   // cas, incr, decr, touch, remove, remove_if: missing
  deleted,     // remove, remove_if
  failed,      // Reply::failure says how
};

const char* name_of(Outcome outcome);

struct ReplyFailure {
  enum class Kind {
    unreachable,   // not sent: no connection, or the deadline passed before sending
    refused,       // the server answered and applied nothing: out of memory, ERROR, too large
    denied,        // no login, a wrong one, or a certificate that cannot be verified: nothing was applied
    not_a_number,  // incr, decr of a value that is not a number: nothing applied
    unknown,       // sent, no valid reply, or one of a proxy that has none: it may be applied, now or later
  };
  Kind kind;
  std::string message;
  bool late = false;     // a deadline passed; otherwise the server or its machine sent something
  bool relayed = false;  // a proxy answers, about a server behind it
  bool flood = false;    // the answers to one batch exceeded the memory limit: ask for fewer keys
};

// Filled by probe as far as the protocol reports it: meta all, classic only size and cas.
struct ItemAge {
  std::optional<std::chrono::seconds> ttl;   // -1: never expires
  std::optional<std::chrono::seconds> idle;  // since last read or written
};

struct Reply {
  Outcome outcome = Outcome::failed;
  bool created = false;      // composites, add_and_get: it was missing
  std::size_t server = 0;    // index into the pool
  std::uint64_t number = 0;  // incr, decr, incr_or_create: the new value
  std::uint32_t flags = 0;
  CasUnique cas;  // gets, probe; after a store only under meta, else 0; add_and_get: not to be compared with
  std::string value;  // of incr_or_create: the old value if it is not a number
  ItemAge age;
  enum class Protocol : std::uint8_t { none, meta, classic } protocol = Protocol::none;
  bool opened = false;  // its connection was opened for this batch
  std::optional<std::chrono::microseconds>
      round_trip;                               // since its server was asked, if the transport reports it
  std::shared_ptr<const ReplyFailure> failure;  // set exactly when outcome is failed

  bool failed() const { return outcome == Outcome::failed; }
  bool is(ReplyFailure::Kind kind) const { return failure && failure->kind == kind; }
  // It may have been applied: the caller must find out or report it.
  bool unknown() const { return is(ReplyFailure::Kind::unknown); }

  static Reply of(Outcome outcome, std::size_t server) {
    Reply reply;
    reply.outcome = outcome;
    reply.server = server;
    return reply;
  }
  static Reply failed_with(ReplyFailure::Kind kind, std::string message, std::size_t server,
                           bool late = false);
  // not_a_number, of a value that was seen: `value`.
  static Reply of_text(std::string value, std::size_t server);
};

}  // namespace mcds
