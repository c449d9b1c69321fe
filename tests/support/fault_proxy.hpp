// A server that stands before a real one and lies: loses, delays, cuts, corrupts and drips replies, answers
// garbage, refuses, falls silent. Also counts the round trips it sees.
//
// One fault is chosen per round trip: when a client sends something after its last reply. (While a client
// still sends a large pipeline the server may already answer, so a pipeline above some 100 KiB may count as
// several trips.)
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/placement/pools/pool.hpp"

namespace mcds::test {

enum class Fault {
  none,
  lose_request,    // swallowed: never reaches the server, never answered
  lose_reply,      // the server executes it; the reply is swallowed
  cut_request,     // half of it reaches the server, then both connections close
  cut_reply,       // half of the reply, then both connections close
  truncate_reply,  // half of the reply, then silence
  corrupt_reply,   // one byte of the reply is another
  delay_reply,     // by delay()
  drip_reply,      // one byte every delay()
  hang_up,         // closed when the request arrives; the server does not see it
  no_meta,         // a server of old: ERROR to each meta line
  answer_garbage,  // garbage() instead of the server's answer; the server does not see the request
};

class FaultProxy {
 public:
  explicit FaultProxy(const Server& upstream, std::uint64_t seed = 1);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  // Where clients connect.
  const Server& server() const;

  void always(Fault fault);                    // every trip from now on; none: an honest proxy again
  void after(std::size_t trips, Fault fault);  // once: trip number `trips` (0: the next), then none
  void randomly(double probability, std::vector<Fault> any);  // each trip, one of these
  void delay(std::chrono::milliseconds delay);
  void garbage(std::string reply);

  void refuse(bool on);  // connections are refused (those that exist stay)
  void silent(bool on);  // connections are taken by the kernel, nobody ever reads
  void cut();            // all connections, now

  std::size_t trips() const;
  std::size_t connections() const;  // ever accepted
  std::size_t faults() const;       // trips that were not honest
  std::string received() const;     // everything clients sent, up to 1 MiB

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace mcds::test
