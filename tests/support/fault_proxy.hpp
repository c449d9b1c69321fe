// A proxy in front of a real server that injects faults: it loses, delays, cuts, corrupts and drips replies,
// answers garbage, refuses, or stops answering. It also counts the round trips it sees.
//
// One fault is chosen per round trip, which begins when a client sends bytes after its last reply. A server
// may answer while a client still sends a large pipeline, so a pipeline above some 100 KiB may count as
// several trips.
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
  truncate_reply,  // half of the reply, then nothing more
  corrupt_reply,   // one byte of the reply is changed
  delay_reply,     // by delay()
  drip_reply,      // one byte every delay()
  hang_up,         // closed when the request arrives; the server does not see it
  no_meta,         // an old server: ERROR to each meta line
  answer_garbage,  // garbage() instead of the server's answer; the server does not see the request
};

class FaultProxy {
 public:
  explicit FaultProxy(const Server& upstream, std::uint64_t seed = 1);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  // Returns the address for clients.
  const Server& server() const;

  void always(Fault fault);                    // every trip from now on; none: an honest proxy again
  void after(std::size_t trips, Fault fault);  // once: trip number `trips` (0: the next), then none
  void randomly(double probability, std::vector<Fault> any);  // each trip, one of these
  void delay(std::chrono::milliseconds delay);
  void garbage(std::string reply);

  void refuse(bool on);  // connections are refused; open ones stay
  void silent(bool on);  // the kernel accepts connections, and no bytes are read
  void cut();            // closes all connections now

  std::size_t trips() const;
  std::size_t connections() const;  // accepted in total
  std::size_t faults() const;       // trips with a fault
  std::string received() const;     // all bytes that clients sent, up to 1 MiB

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace mcds::test
