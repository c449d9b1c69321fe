// Requests to bytes and bytes to replies: memcached's text protocol, with the meta commands of 1.6 where the
// server has them. Pure, no I/O.
//
// Storage goes by the classic commands on purpose: a meta `ms` in any mode deletes the old value when the new
// one is refused for size or memory, the classic add, replace, cas and append keep it. Meta serves what
// classic cannot do in one round trip: incr-or-create (ma), compare-and-delete (md), probes without touching
// the LRU (mg). Where they are missing, gets reads and a cas that expires at once compares and deletes;
// incr-or-create is not to be had.
// Runs of plain gets travel as one multi-key get, the fastest read of 1.6.18 (half the cost of pipelined mg);
// those with a unique too where the server is memcached: nothing at all is said of what is missing.
// Runs of add_and_get travel as adds and one multi-key get behind them; where the uniques show what was
// stored, the adds are sent with noreply, which halves their cost.
#pragma once

#include "common/cluster/request.hpp"
#include "common/cluster/transport.hpp"

namespace mcds::meta {

// How incr_or_create is sent: as `mg` and `ma`, which show whether it created; or in two trips, first as
// `incr` (half the server's work where most keys exist; not_found means it is still to be created), then
// those as `ma` alone.
enum class IncrForm { whole, incr_only, create };

// How requests are put: by what the server takes.
struct Wording {
  bool meta = true;
  bool compares_in_md = true;
  bool long_lines = false;
  bool one_key_a_line = false;  // proxies answer several in the order of their backends
  bool stamps = false;          // memcached: its gets shows cas uniques, which grow with every store
  bool quiet = false;  // add_and_get: nothing is said to the adds; the caller knows what is new by its unique
  IncrForm incr_form = IncrForm::whole;
};

// One command on the wire and the requests it answers: several only for a run of get, gets or add_and_get.
struct Command {
  std::size_t first = 0;  // index into the lane's requests
  std::size_t count = 1;
  Wording wording = {};
  bool in_base64 = false;
};

// A key with spaces or control characters, which clients of the binary protocol can store. It goes in base64.
bool is_in_base64(const Request& request);
// What a read of such a key is to be answered with. Not the key: of one that was stored by the binary
// protocol servers repeat the raw bytes, spaces and line ends too.
std::string opaque_of(const Request& request);
// Why it cannot be put so at all; empty: it can.
std::string_view unsayable(const Wording& wording, const Request& request);

// Appends the command that starts at `first` to `out`; a run of gets is taken together as far as it fits.
Command encode(std::span<const Request* const> requests, std::size_t first, std::string& out,
               const Wording& wording = {});

// Longer lines are nobody's answer.
constexpr std::size_t longest_line = 2048;
// A line without its end, from where `position` moves behind it; nullopt: it is not whole yet.
std::optional<std::string_view> take_whole_line(std::string_view input, std::size_t& position);
// ERROR, CLIENT_ERROR or SERVER_ERROR; some say why: `ERROR no matching command`.
bool is_error(std::string_view line);

// Reads the replies to commands in order.
class ReplyReader {
 public:
  enum class Step {
    need_more,    // nothing complete yet
    progress,     // a part of a long answer was taken
    done,         // the command is answered
    out_of_step,  // this is not a reply to the command: the connection must not be used again
    no_meta,      // an error to a meta command the server does not know: nothing of it was applied
    turned_away,  // the server is at its connection limit and closes: nothing was applied
  };
  // Takes from the front of `input` (advancing `position`) as much of the answer to `command` as is there;
  // `replies` are those of the command's requests, filled as they come. After the greeting said that there
  // are no meta commands, those that were sent behind it are answered by errors.
  Step read(const Command& command, std::span<const Request* const> requests, std::span<Reply* const> replies,
            std::string_view input, std::size_t& position, Dialect::Words words = Dialect::Words::meta);
  // How large the input must become before a value in it is whole, as far as one was announced.
  std::size_t wanted() const { return wanted_; }
  // Forgets a half-read command.
  void reset();

 private:
  Step read_line_command(const Request& request, bool meta, Reply& reply, std::string_view input,
                         std::size_t& position);
  Step read_values(std::span<const Request* const> requests, std::span<Reply* const> replies, bool with_cas,
                   std::string_view input, std::size_t& position);
  Step read_added(std::span<const Request* const> requests, std::span<Reply* const> replies,
                  const Wording& wording, std::string_view input, std::size_t& position);
  Step read_meta_get(const Request& request, Reply& reply, std::string_view input, std::size_t& position);
  Step read_meta_incr(const Request& request, Reply& reply, bool only_creates, std::string_view input,
                      std::size_t& position);
  Step read_without_meta(bool two_lines, Reply& reply, std::string_view input, std::size_t& position);
  // Its value, flags and ttl are those that were there, `number` and `cas` what there is now: to be put back.
  void counted_text(const Reply& after, Reply& reply);
  Step read_stats(const Request& request, Reply& reply, std::string_view input, std::size_t& position);

  std::size_t wanted_ = 0;
  std::size_t answered_ = 0;  // of a run of gets: requests passed so far
  std::size_t told_ = 0;      // of a run of add_and_get: adds of which it was said what became of them
  bool half_ = false;         // incr_or_create: the mg is read, the ma is not
  bool existed_ = false;      // what the mg said
  Reply before_;              // what it showed
};

}  // namespace mcds::meta
