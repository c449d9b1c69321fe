// Encodes requests and decodes replies: memcached's text protocol, with the meta commands of 1.6 where the
// server has them. No I/O is done here.
//
// Stores use the classic commands on purpose: a meta `ms` deletes the old value if the new one is refused for
// size or memory, while add, replace, cas and append keep it. Meta commands do what classic ones cannot do in
// one round trip: incr-or-create (ma), compare-and-delete (md), and probes that do not touch the LRU (mg). On
// servers without them, reads use gets, a cas with an expired exptime compares and deletes, and
// incr-or-create is not supported.
//
// A run of plain gets becomes one multi-key get, the fastest read of 1.6.18 (half the cost of pipelined mg).
// Runs with cas tokens do so only on memcached, where a missing item adds nothing to the reply. A run of
// add_and_get becomes adds and one multi-key get after them. If the cas tokens show which adds stored, the
// adds are sent with noreply, which halves their cost.
#pragma once

#include "common/cluster/request.hpp"
#include "common/cluster/transport.hpp"

namespace mcds::meta {

// The form in which incr_or_create is sent. `whole` is an `mg` and an `ma`, which show whether the item was
// created. In two trips, `incr_only` comes first: an `incr`, half the server's work where most keys exist;
// not_found means that the item must be created. `create` is the second trip, an `ma` alone.
enum class IncrForm { whole, incr_only, create };

// How requests are encoded for a server, depending on what it supports.
struct RequestFormat {
  bool meta = true;
  bool compares_in_md = true;
  bool long_lines = false;
  bool one_key_a_line = false;  // proxies return several in the order of their backends
  bool shows_cas = false;       // memcached: gets shows cas tokens, which grow with every store
  bool quiet = false;           // add_and_get without replies to the adds: the token shows which stored
  IncrForm incr_form = IncrForm::whole;
};

// One command on the wire and its requests: more than one only for a run of get, gets or add_and_get.
struct Command {
  std::size_t first = 0;  // index into the connection's requests
  std::size_t count = 1;
  RequestFormat format = {};
  bool in_base64 = false;
  std::size_t read_back = 0;  // add_and_get: the size of the line at the end, which reads what was stored
};

// Returns true for keys with spaces or control characters, as binary clients store; they go in base64.
bool is_in_base64(const Request& request);
// Returns the opaque that a read of such a key must be answered with. The key itself cannot serve: if the
// item was stored by the binary protocol, servers repeat its raw bytes, spaces and line ends included.
std::string opaque_of(const Request& request);
// Returns why the request cannot be encoded for this server, or an empty string if it can.
std::string_view unsupported_reason(const RequestFormat& format, const Request& request);

// Appends the command that starts at request `first`. A run of gets becomes one command if it fits.
Command encode(std::span<const Request* const> requests, std::size_t first, std::string& out,
               const RequestFormat& format = {});

// The maximum length of a line; no valid reply has a longer one.
constexpr std::size_t max_line_length = 2048;
// Returns the line at `position`, without its end, and moves past it; nullopt if it is incomplete.
std::optional<std::string_view> take_whole_line(std::string_view input, std::size_t& position);
// Returns true for ERROR, CLIENT_ERROR and SERVER_ERROR, also with a reason.
bool is_error(std::string_view line);

// Decodes the replies to commands, in order.
class ReplyReader {
 public:
  enum class Step {
    need_more,    // no complete part yet
    progress,     // a part of a long reply was decoded
    done,         // the reply is complete
    out_of_step,  // not a reply to this command: the connection must not be used again
    no_meta,      // an error to a meta command that the server lacks: nothing was applied
    turned_away,  // the server is at its connection limit and closes: nothing was applied
  };
  // Decodes as much of the reply to `command` as the front of `input` has, and advances `position`. `replies`
  // are those of the command's requests, filled as they come. If `words` is classic, meta commands that were
  // sent with the greeting are answered by errors.
  Step read(const Command& command, std::span<const Request* const> requests, std::span<Reply* const> replies,
            std::string_view input, std::size_t& position,
            ServerProtocol::CommandSet words = ServerProtocol::CommandSet::meta);
  // Returns the size of `input` that contains the whole of the value announced last.
  std::size_t wanted() const { return wanted_; }
  // Drops the state of a half-read command.
  void reset();

 private:
  struct Line;
  // The requests of a command, and their replies.
  struct Run {
    std::span<const Request* const> requests;
    std::span<Reply* const> replies;
  };
  Step read_line(const Command& command, const Run& run, Line& line, ServerProtocol::CommandSet words);
  Step read_without_meta(bool two_lines, Reply& reply, const Line& line);
  Step take_data(Line& line, std::uint64_t size, std::string& value);
  Step read_values(const Run& run, bool with_cas, Line& line);
  Step read_added(const Run& run, const RequestFormat& format, Line& line);
  Step read_item(std::string_view words, bool is_number, const Request& request, Reply& reply, Line& line);
  Step read_meta_get(const Request& request, Reply& reply, Line& line);
  Step read_meta_incr(const Request& request, Reply& reply, bool only_creates, Line& line);
  Step read_stats(const Request& request, Reply& reply, const Line& line);

  std::size_t wanted_ = 0;
  std::size_t answered_ = 0;  // of a run of gets: requests answered so far
  std::size_t reported_ = 0;  // of a run of add_and_get: adds answered so far
  bool half_ = false;         // incr_or_create: the mg is read, the ma is not
  bool existed_ = false;      // incr_or_create: the item existed when the mg was executed
  Reply before_;              // incr_or_create: the reply to the mg
};

}  // namespace mcds::meta
