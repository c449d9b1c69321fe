// Request and Reply: one operation of a batch and its result. Keys are validated and include the namespace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/clock.hpp"

namespace mcds {

// The longest key of memcached, and its longest value for such a key with the default item size.
constexpr std::size_t max_key_size = 250;
constexpr std::size_t max_value_size = (1 << 20) - 48 - 8 - (max_key_size + 1) - 2 - 4;

// An exptime as it is sent: seconds from now on the server's clock up to 30 days, beyond that UNIX time.
class Exptime {
 public:
  // The maximum: servers hold it in 32 signed bits, and expire items with a larger one at once.
  static constexpr std::int64_t latest = 0x7fffffff;
  static constexpr Exptime never() { return Exptime(0); }
  // Returns an absolute time in 1970, so that the item expires at once.
  static constexpr Exptime gone() { return Exptime(2'592'001); }
  // Returns `ttl`, which must be positive, rounded up to seconds. `now` is used beyond 30 days.
  static Exptime after(Duration ttl, WallTime now);
  // Returns the exptime for a ttl that a server reported: at least one second; -1 means never.
  static Exptime of_ttl(std::chrono::seconds ttl, WallTime now) {
    return ttl.count() < 0 ? never() : after(ttl, now);
  }
  // Returns the exptime for `boundary` on the clients' clocks, at least one second from now.
  static Exptime at(WallTime boundary, WallTime now) { return after(boundary - now, now); }
  // Converts UNIX seconds of the server's clock. Returns nullopt if the server would not read them as a time.
  static std::optional<Exptime> absolute(std::int64_t second);
  constexpr std::int64_t wire() const { return wire_; }
  bool operator==(const Exptime&) const = default;

 private:
  explicit constexpr Exptime(std::int64_t wire) : wire_(wire) {}
  std::int64_t wire_;
};

// The token that a server gives a value, for compare-and-set. It is valid only on the connection that fetched
// it, because a restarted server counts from 1 again. 0 is never valid; servers started with -C report it.
struct CasUnique {
  std::uint64_t value = 0;
  bool operator==(const CasUnique&) const = default;
};

enum class Op {
  get,    // value, flags
  gets,   // value, flags, cas
  probe,  // size, ttl, idle, cas, value; does not touch the LRU if the server supports that
  add,    // under meta also returns cas
  set,
  replace,
  cas,  // compares with Request::cas, which must come from this cluster's last gets or probe of the key
  append,
  incr,
  decr,
  touch,
  remove,
  remove_if,  // compare-and-delete with Request::cas
  // Add, then gets. The reply is a hit with the stored value, or a miss for any reason; only add reports why.
  // `created` is set if the stored bytes equal those of this add.
  add_and_get,
  incr_or_create,    // incr by delta; if missing, created as `initial` with exptime
  append_or_create,  // append value; if missing, created as `prefix` + value with exptime
  version,           // of Request::server
  stats,             // of Request::server; key is the argument (may be empty); value is lines "NAME VALUE\n"
};

struct Request {
  Op op = Op::get;
  std::string key = {};
  std::string value = {};
  std::string prefix = {};  // append_or_create only
  std::uint32_t flags = 0;
  Exptime exptime = Exptime::never();
  std::uint64_t delta = 0;
  std::uint64_t initial = 0;
  CasUnique cas = {};
  std::optional<std::size_t> server = {};  // overrides the key's placement
  bool must_expire = false;                // refused if items do not expire on the server
  bool creates = true;                     // incr_or_create: if false, a missing item is not created
  bool seems_missing = false;              // append_or_create: the item was just missing, so create it first
  bool must_compare = false;  // add: later changes compare it; refused if the server does not support cas
  // incr_or_create: leaves a value that is not a number unchanged; costs a trip with the classic protocol.
  bool checked = false;
  // The key that decides the server, for a key that belongs to another: a journal's segment, a chunk's part,
  // a lock's fence. The code that names the part sets it. If empty, the key itself decides.
  std::string with = {};

  static Request get(std::string key) { return {.op = Op::get, .key = std::move(key)}; }
  static Request gets(std::string key) { return {.op = Op::gets, .key = std::move(key)}; }
  static Request probe(std::string key, std::size_t server) {
    return {.op = Op::probe, .key = std::move(key), .server = server};
  }
  static Request add(std::string key, std::string value, Exptime exptime) {
    return {.op = Op::add, .key = std::move(key), .value = std::move(value), .exptime = exptime};
  }
  static Request add_and_get(std::string key, std::string value, Exptime exptime) {
    return {.op = Op::add_and_get, .key = std::move(key), .value = std::move(value), .exptime = exptime};
  }
  static Request set(std::string key, std::string value, Exptime exptime) {
    return {.op = Op::set, .key = std::move(key), .value = std::move(value), .exptime = exptime};
  }
  static Request replace(std::string key, std::string value, Exptime exptime) {
    return {.op = Op::replace, .key = std::move(key), .value = std::move(value), .exptime = exptime};
  }
  static Request compare_and_set(std::string key, std::string value, Exptime exptime, CasUnique cas) {
    return {.op = Op::cas, .key = std::move(key), .value = std::move(value), .exptime = exptime, .cas = cas};
  }
  static Request append(std::string key, std::string value) {
    return {.op = Op::append, .key = std::move(key), .value = std::move(value)};
  }
  static Request incr(std::string key, std::uint64_t delta) {
    return {.op = Op::incr, .key = std::move(key), .delta = delta};
  }
  static Request decr(std::string key, std::uint64_t delta) {
    return {.op = Op::decr, .key = std::move(key), .delta = delta};
  }
  static Request touch(std::string key, Exptime exptime) {
    return {.op = Op::touch, .key = std::move(key), .exptime = exptime};
  }
  static Request remove(std::string key) { return {.op = Op::remove, .key = std::move(key)}; }
  static Request remove_if(std::string key, CasUnique cas) {
    return {.op = Op::remove_if, .key = std::move(key), .cas = cas};
  }
  static Request incr_or_create(std::string key, std::uint64_t delta, std::uint64_t initial,
                                Exptime exptime) {
    return {.op = Op::incr_or_create,
            .key = std::move(key),
            .exptime = exptime,
            .delta = delta,
            .initial = initial};
  }
  // Returns an incr that leaves a value that is not a number unchanged, under meta also one that begins with
  // a number.
  static Request incr_existing(std::string key, std::uint64_t delta) {
    return {.op = Op::incr_or_create, .key = std::move(key), .delta = delta, .creates = false};
  }
  static Request append_or_create(std::string key, std::string prefix, std::string value, Exptime exptime) {
    return {.op = Op::append_or_create,
            .key = std::move(key),
            .value = std::move(value),
            .prefix = std::move(prefix),
            .exptime = exptime};
  }
  static Request version(std::size_t server) { return {.op = Op::version, .server = server}; }
  static Request stats(std::size_t server, std::string argument = {}) {
    return {.op = Op::stats, .key = std::move(argument), .server = server};
  }

  Request relying_on_expiry() && {
    must_expire = true;
    return std::move(*this);
  }
  Request relying_on_cas() && {
    must_compare = true;
    return std::move(*this);
  }

  Request creating_first(bool missing = true) && {
    seems_missing = missing;
    return std::move(*this);
  }

  const std::string& placed_by() const { return with.empty() ? key : with; }
  Request placed_with(std::string owner) && {
    with = std::move(owner);
    return std::move(*this);
  }
  // Returns this request for server `index` instead of its key's server.
  Request on(std::size_t index) && {
    server = index;
    return std::move(*this);
  }
};

// Returns the operation's name in traces and messages, such as `get` or `incr_or_create`.
const char* name_of(Op op);

// The result of one request.

enum class Outcome {
  hit,         // get, gets, probe, add_and_get, version, stats
  miss,        // get, gets, probe, add_and_get: the server does not have the item
  stored,      // add, set, replace, cas, append, incr, decr, touch and both composites
  not_stored,  // add: the item exists; replace: it is missing; append: it is missing or full, or no memory
               // is left (a get distinguishes); append_or_create: it is full or no memory is left
  exists,      // cas, remove_if: the item has changed
  not_found,   // cas, incr, decr, touch, remove, remove_if: missing
  deleted,     // remove, remove_if
  failed,      // Reply::failure says why
};

const char* name_of(Outcome outcome);

struct ReplyFailure {
  enum class Kind {
    unreachable,   // not sent: no connection, or the deadline passed first
    refused,       // not applied: the server answered out of memory, ERROR or too large
    denied,        // not applied: no login, a wrong login, or a certificate that cannot be verified
    not_a_number,  // not applied: incr or decr of a value that is not a number
    unknown,       // sent without a valid reply, or a proxy has none: it may be applied, now or later
  };
  Kind kind;
  std::string message;
  bool late = false;     // a deadline passed; otherwise the server or its machine reported the failure
  bool relayed = false;  // a proxy reported it, about a server behind it
  bool flood = false;    // the replies to one batch exceeded the memory limit: ask for fewer keys
};

// Filled by probe as far as the protocol reports it: meta commands both fields, classic commands neither.
struct ItemAge {
  std::optional<std::chrono::seconds> ttl;   // -1: never expires
  std::optional<std::chrono::seconds> idle;  // since the last read or write
};

struct Reply {
  Outcome outcome = Outcome::failed;
  bool created = false;      // composites, add_and_get: the item was missing
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
  // Returns the failure not_a_number for a value that was read: `value`.
  static Reply of_text(std::string value, std::size_t server);
};

}  // namespace mcds
