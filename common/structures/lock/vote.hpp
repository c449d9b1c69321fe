// Whether a server may vote on locks with copies: only if it has been up for longer than the longest ttl of
// any of them. A server that restarted empty may have forgotten a lock that is still held; after that time,
// every lock it could have forgotten has expired.
//
//   lockserver:votes:<longest ttl in seconds> = V1 <microseconds since 1970>   no exptime; on each server
//
// This sentinel begins as `V0`. It becomes `V1 …` by cas once the uptime, requested after the item existed,
// is long enough. A restart loses the item, so a `V1` is never found on a server that has been up for less.
// It is read in the same trip as the lock, after it.
//
// The time is that of the change to `V1`, by that client's clock. It is above every fence the server can have
// forgotten, unless clocks differ by more than the longest ttl. The fence on the server may be smaller: a
// rival with a slow clock may have restarted it while the server was too young.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/primitives/context.hpp"

namespace mcds {

struct LockVote {
  bool votes = false;
  bool young = false;       // it answered, but started too recently to vote
  bool ageless = false;     // it answered, but has no statistics, as a proxy, or none of its uptime
  std::string why = {};     // it was asked, and did not answer
  std::uint64_t since = 0;  // votes: since when, in microseconds since 1970
};

// The sentinel's key, and whether its value says that the server votes.
std::string vote_key(const Context& context, Duration longest_ttl);
bool is_vote(std::string_view sentinel);

// Asked behind what adds the lock: what it finds was true when the lock was added.
LockVote vote_of(const Context& context, std::size_t server, Duration longest_ttl);

}  // namespace mcds
