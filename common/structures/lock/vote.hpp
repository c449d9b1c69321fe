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

#include <string>

#include "common/structures/lock/copy.hpp"

namespace mcds {

class LockVote final : public LockExchange {
 public:
  // Driven after the exchange that adds the lock: what it finds was true when the lock was added.
  LockVote(std::size_t server, const std::string& key_prefix, Duration longest_ttl, const Clock& clock);
  // The server of an only copy, which is asked for nothing: it decides.
  static LockVote of_only_server(std::size_t server, const Clock& clock);
  std::vector<Request> requests() const override;
  void take(std::span<const Reply> replies, SteadyTime sent) override;

  bool votes() const { return votes_; }
  // It answered, but started too recently to vote.
  bool young() const { return young_; }
  // It answered, but has no statistics, as a proxy, or none of its uptime: it never votes.
  bool ageless() const { return ageless_; }
  // It was asked, and did not answer: why.
  const std::string& why() const { return why_; }
  // Votes: since when, in microseconds since 1970.
  std::uint64_t since() const { return since_; }

 private:
  void take_uptime(std::span<const Reply> replies);
  void take_sentinel(std::string_view value);

  enum class Step { look, ask, mark, settled } step_ = Step::look;
  std::size_t server_;
  std::string sentinel_;
  const Clock& clock_;
  std::uint64_t uptime_needed_s_;
  CasUnique cas_;
  bool votes_ = false;
  bool young_ = false;
  bool ageless_ = false;
  std::string why_;
  std::uint64_t since_ = 0;
};

}  // namespace mcds
