// A transport for servers that accept only the binary protocol (-B binary) or a SASL login (-S). It loads
// libmemcached, because the protocol is deprecated and not worth an implementation of our own.
//
// One child process per server calls the library (library.hpp). If an assertion of the library ends that
// process, the reply is missing. Only one request is in flight at a time, over all servers, so this transport
// is slow. The protocol cannot report the remaining ttl (probe has none), compare while it removes (remove_if
// stores an expired item by cas), or create while it counts (put Composites around it).
//
// Each connection starts with two requests that change nothing: version, and an append of no bytes to a
// missing key. They come first because a denied read looks like an empty value. After a result that the table
// below lacks, the connection is closed; the next request opens another.
//
// A change is sent once: neither the library nor this transport resends it. The table translates the
// library's results; `really` is the text protocol's reply in the same case.
#pragma once

#include <array>

#include "common/cluster/libmemcached/library.hpp"
#include "common/cluster/transport.hpp"

namespace mcds::libmemcached {

enum class Asked { read, add, replace, append, compare, other };

struct Word {
  Asked asked;
  memcached_return_t said;
  Outcome outcome;  // failed: see `kind`
  ReplyFailure::Kind kind;
  const char* really;
};

using Failed = ReplyFailure::Kind;
inline constexpr std::array words{
    Word{Asked::read, MEMCACHED_NOTFOUND, Outcome::miss, Failed::unknown, "END"},
    Word{Asked::add, MEMCACHED_DATA_EXISTS, Outcome::not_stored, Failed::unknown, "NOT_STORED"},
    Word{Asked::replace, MEMCACHED_NOTFOUND, Outcome::not_stored, Failed::unknown, "NOT_STORED"},
    Word{Asked::append, MEMCACHED_NOTSTORED, Outcome::not_stored, Failed::unknown, "NOT_STORED"},
    Word{Asked::compare, MEMCACHED_DATA_EXISTS, Outcome::exists, Failed::unknown, "EXISTS"},
    Word{Asked::compare, MEMCACHED_NOTFOUND, Outcome::not_found, Failed::unknown, "NOT_FOUND"},
    Word{Asked::other, MEMCACHED_NOTFOUND, Outcome::not_found, Failed::unknown, "NOT_FOUND"},
    // The following results can come from every operation.
    Word{Asked::other, MEMCACHED_E2BIG, Outcome::failed, Failed::refused,
         "SERVER_ERROR object too large for cache: raise -I of the server, or store less"},
    Word{Asked::other, MEMCACHED_MEMORY_ALLOCATION_FAILURE, Outcome::failed, Failed::refused,
         "SERVER_ERROR out of memory storing object: the server has no memory left (-m, -M)"},
    Word{Asked::other, MEMCACHED_AUTH_FAILURE, Outcome::failed, Failed::denied,
         "CLIENT_ERROR unauthenticated"},
    // Results that the table cannot translate: incr and decr of text give MEMCACHED_UNKNOWN_READ_FAILURE, as
    // garbage does, so the value is read first. A wrong password, or a login that the server does not
    // support, gives MEMCACHED_SOME_ERRORS, and MEMCACHED_SERVER_MARKED_DEAD on the next try. The
    // connection's first request then fails, with the cause in the library's message. A denied get gives
    // MEMCACHED_SUCCESS without a value; the second request of the connection detects it.
};
// Returns the matching row, or nullptr if there is none; then a change may have been applied.
const Word* word_for(Op op, memcached_return_t said);

// Throws Failure(configuration) if the library is not installed.
std::unique_ptr<Transport> make_binary_transport(std::shared_ptr<const Placement> placement,
                                                 const ConnectOptions& options);

}  // namespace mcds::libmemcached
