// Servers that speak the binary protocol alone (-B binary), or want a SASL login (-S): through
// libmemcached, which is loaded for that. The protocol is deprecated, so nothing of it is written here.
//
// A child process per server calls the library (child.hpp): an assertion of the library, which ends its
// process, is a reply that did not come. One request is on the way at a time, over all servers: no speed is
// promised. What the protocol cannot do: show how long an item still lives (probe has no ttl), compare when
// it removes (remove_if stores an item that has expired, by cas), create while it counts (put Composites
// around it).
//
// A connection begins with two questions that change nothing: the version, and an append of nothing to a
// key that is not there. Only then are requests sent, because a read that is denied is not told from an
// empty value. After a word that is not in the table below, the connection is closed, and the next request
// makes another.
//
// A change is sent once: the library does not resend, nor does this. What it says is translated by this
// table; `really` is what the same server says in text.
#pragma once

#include <array>

#include "common/cluster/libmemcached/library.hpp"
#include "common/cluster/transport.hpp"

namespace mcds::libmemcached {

enum class Asked { read, add, replace, append, compare, other };

struct Word {
  Asked asked;
  memcached_return_t said;
  Outcome outcome;  // failed: `kind`
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
    // These of every operation.
    Word{Asked::other, MEMCACHED_E2BIG, Outcome::failed, Failed::refused,
         "SERVER_ERROR object too large for cache: raise -I of the server, or store less"},
    Word{Asked::other, MEMCACHED_MEMORY_ALLOCATION_FAILURE, Outcome::failed, Failed::refused,
         "SERVER_ERROR out of memory storing object: the server has no memory left (-m, -M)"},
    Word{Asked::other, MEMCACHED_AUTH_FAILURE, Outcome::failed, Failed::denied,
         "CLIENT_ERROR unauthenticated"},
    // `incr` and `decr` of text say MEMCACHED_UNKNOWN_READ_FAILURE, as garbage does: the value is looked at
    // first. A wrong password, and a login where there is none, say MEMCACHED_SOME_ERRORS and, asked again,
    // MEMCACHED_SERVER_MARKED_DEAD: the library's message has the cause, and the connection's first
    // question fails. A denied get says MEMCACHED_SUCCESS, with no value, as an empty item does: the second
    // question shows it.
};
// Null: it is none of them, and a change may have been applied.
const Word* word_for(Op op, memcached_return_t said);

// Throws Failure(configuration) when the library is not here.
std::unique_ptr<Transport> make_binary_transport(std::shared_ptr<const Placement> placement,
                                                 const ConnectOptions& options);

}  // namespace mcds::libmemcached
