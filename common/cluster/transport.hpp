// What a transport is: a Cluster over a whole pool.
//
// A transport validates what it sends (refusal_before_sending), keeps one connection per server, opens it on
// first use, talks to all servers of a batch in parallel, and answers within the deadlines whatever the
// servers do. After anything unexpected it closes the connection: a connection that may be out of step is
// never used again. A cas unique belongs to the connection that fetched it: cas and remove_if on a later
// connection are answered `exists` without being sent, so that the caller reads again.
#pragma once

#include "common/cluster/cluster.hpp"

namespace mcds {

// What one server supports, as learned from its greeting.
struct Dialect {
  enum class Words {
    unknown,  // the server was not greeted yet
    meta,     // memcached 1.6: both, on one connection
    classic,  // older, and all other servers with memcached's protocol
  };
  Words words = Words::unknown;
  std::string version = {};   // as reported; empty: not reported
  std::uint32_t release = 0;  // 10618 for 1.6.18; 0: in another form
  // It closes the connection on unknown commands, some after an error line: the version is not its own, and
  // its backends store the items.
  bool proxy = false;

  void take_version(std::string text);
  // memcached itself, from 1.4 on: it honours exptimes, and supports cas unless it was started with -C.
  bool is_memcached() const { return !proxy && release >= 10400 && release < 10700; }
  // `md k C<unique>` answers EX to the right one, too, before 1.6.13.
  bool compares_in_md() const { return release < 10600 || release >= 10613; }
  // A line longer than 1 KiB may be cut in two before 1.6.13.
  bool takes_long_lines() const { return words == Words::meta && release >= 10613; }
};

class Transport : public Cluster {
 public:
  // What this server supports, as far as it is known. A request that its protocol cannot express is
  // `refused`, and nothing of it was applied.
  virtual const Dialect& dialect(std::size_t server) const = 0;
};

// Everything but append_or_create; incr_or_create in one round trip, refused by servers without meta
// commands, and by all when ConnectOptions::protocol is classic (put Composites around it). Unless protocol
// is meta, the former get the rest in classic words.
std::unique_ptr<Transport> make_transport(std::shared_ptr<const Placement> placement,
                                          const ConnectOptions& options);

// Whether it is sent as a meta command to a server that supports them.
bool needs_meta(Op op);

// Ends the message of a change whose outcome is unknown.
constexpr std::string_view may_be_applied = "; it may have been applied";
// Its lost reply leaves nothing uncertain.
bool changes_nothing(Op op);

// Why this request must never be put on a wire: an empty, too long or unsafe key (a line break in one runs as
// a command), cas 0, a value no server takes (over 64 MiB; smaller ones that pass a server's own limit it
// refuses itself).
std::optional<std::string> refusal_before_sending(const Request& request);
// Whether a key with spaces or control characters can be sent in base64. What has a data block goes so only
// to a server that is known to take it: another one would take the block for the next commands.
bool goes_in_base64(Op op);

}  // namespace mcds
