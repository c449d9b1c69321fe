// Transport: a Cluster over a whole pool that also reports what each server supports.
//
// A transport checks each request (refusal_before_sending) and sends a batch to all servers in parallel, over
// one connection per server that it opens on first use. It returns within the deadlines whatever the servers
// do. After an unexpected reply it closes the connection, because requests and replies may no longer match. A
// cas token belongs to the connection that fetched it: cas and remove_if on a later connection are answered
// `exists` without being sent, so that the caller reads again.
#pragma once

#include "common/cluster/cluster.hpp"

namespace mcds {

// The abilities of one server, as its greeting shows them.
struct ServerProtocol {
  enum class CommandSet {
    unknown,  // not greeted yet
    meta,     // memcached 1.6: meta and classic commands on one connection
    classic,  // older memcached, and all other servers with its protocol
  };
  CommandSet words = CommandSet::unknown;
  std::string version = {};   // as reported; empty if not reported
  std::uint32_t release = 0;  // 10618 for 1.6.18; 0 if the version has another form
  // The server closes the connection on unknown commands, some after an error line. Its version is not that
  // of the backends, which store the items.
  bool proxy = false;

  void take_version(std::string text);
  // Returns true for memcached itself from 1.4 on. It expires items, and supports cas unless started with -C.
  bool is_memcached() const { return !proxy && release >= 10400 && release < 10700; }
  // Returns false for 1.6 before 1.6.13, where `md k C<unique>` answers EX even to the right token.
  bool compares_in_md() const { return release < 10600 || release >= 10613; }
  // Returns false for servers before 1.6.13, which may cut a line longer than 1 KiB in two.
  bool takes_long_lines() const { return words == CommandSet::meta && release >= 10613; }
};

class Transport : public Cluster {
 public:
  // Returns what is known of this server. A request that its protocol cannot express is `refused`.
  virtual const ServerProtocol& protocol(std::size_t server) const = 0;
};

// Returns a transport that supports every operation but append_or_create. It sends incr_or_create in one
// round trip, and refuses it for servers without meta commands and with ConnectOptions::protocol classic; put
// Composites around it there. Unless the protocol is meta, such servers get the others as classic commands.
std::unique_ptr<Transport> make_transport(std::shared_ptr<const Placement> placement,
                                          const ConnectOptions& options);

// Returns true if the operation is sent as a meta command to servers that support these.
bool needs_meta(Op op);

// Ends the message of a change with an unknown outcome.
constexpr std::string_view may_be_applied = "; it may have been applied";
// Returns true for operations that only read, so that a lost reply leaves nothing uncertain.
bool changes_nothing(Op op);

// Returns why this request must never be sent, or nullopt. Reasons are an empty, too long or unsafe key (a
// line break in a key runs as a command), cas 0, and a value above 64 MiB, which no server takes. A server's
// own lower limit is left to the server.
std::optional<std::string> refusal_before_sending(const Request& request);
// Returns true if a key with spaces or control characters can be sent in base64. Operations with a data block
// do so only if the server is known to support it: another server would execute the block as commands.
bool goes_in_base64(Op op);

}  // namespace mcds
