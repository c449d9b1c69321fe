// Requests to bytes and bytes to replies: the text protocol of memcached 1.6 with its meta commands. Pure, no I/O.
//
// Storage goes by the classic commands on purpose: a meta `ms` in any mode deletes the old value when the new one is
// refused for size or memory, the classic add, replace, cas and append keep it. Meta serves what classic cannot do
// in one round trip: incr-or-create (ma), compare-and-delete (md), probes without touching the LRU (mg).
// Runs of plain gets travel as one multi-key get, the fastest read of 1.6.18 (half the cost of pipelined mg).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/cluster/reply.hpp"
#include "common/cluster/request.hpp"

namespace mcds::meta {

// How incr_or_create is sent: as `mg` and `ma`, which tell whether it created; or in two trips, first as `incr` (half
// the server's work where most keys exist; not_found means it is still to be created), then those as `ma` alone.
enum class IncrForm { whole, incr_only, create };

// One command on the wire and the requests it answers: several only for a run of gets.
struct Command {
  std::size_t first = 0;  // index into the lane's requests
  std::size_t count = 1;
  IncrForm incr_form = IncrForm::whole;
};

// Appends the command that starts at `first` to `out`; a run of gets is taken together as far as it fits.
Command encode(std::span<const Request* const> requests, std::size_t first, std::string& out,
               IncrForm incr_form = IncrForm::whole);

// Reads the replies to commands in order.
class ReplyReader {
 public:
  enum class Step {
    need_more,    // nothing complete yet
    progress,     // a part of a long answer was taken
    done,         // the command is answered
    out_of_step,  // what came is no answer to this command: the connection must not be used again
    no_meta,      // ERROR to a meta command: nothing of it was applied
    turned_away,  // the server is at its connection limit and closes: nothing was applied
  };
  // Takes from the front of `input` (advancing `position`) as much of the answer to `command` as is there;
  // `replies` are those of the command's requests, filled as they come.
  Step read(const Command& command, std::span<const Request* const> requests, std::span<Reply* const> replies,
            std::string_view input, std::size_t& position);
  // Forgets a half-read command.
  void reset();

 private:
  Step read_line_command(const Request& request, Reply& reply, std::string_view input, std::size_t& position);
  Step read_values(std::span<const Request* const> requests, std::span<Reply* const> replies,
                   std::string_view input, std::size_t& position);
  Step read_meta_get(const Request& request, Reply& reply, std::string_view input, std::size_t& position);
  Step read_meta_incr(const Request& request, Reply& reply, bool only_creates, std::string_view input,
                      std::size_t& position);
  Step read_stats(Reply& reply, std::string_view input, std::size_t& position);

  std::size_t answered_ = 0;  // of a run of gets: requests passed so far
  bool existed_ = false;      // incr_or_create: what the mg before it said
  bool half_ = false;         // incr_or_create: the mg is read, the ma is not
};

}  // namespace mcds::meta
