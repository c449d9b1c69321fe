// Pipeline: the requests on one connection, encoded and answered in order. It does no I/O.
//
//   added -> encoded -> sent -> answered    the usual path of a request; each step is taken in order
//   added -> answered                       it must not be sent: answered here, after those before it
//   encoded, sent -> lost -> failed         reconnect(): its connection is gone, and no reply will come
//   encoded, sent, lost -> added            rewind(): no server has applied it, so it is encoded again
//   any but answered -> failed              fail()
//
// A close or a timeout ends in fail(): a write that was sent whole may have been applied, so its outcome is
// unknown; all others are not applied. Lost requests count as sent, if they were. A server does not execute
// half a request. A lost reply is one of these: the replies after it would belong to other requests.
// Batches may follow each other without waiting; their requests are one sequence.
#pragma once

#include <deque>
#include <unordered_map>

#include "common/base/clock.hpp"
#include "common/cluster/wire/wire.hpp"

namespace mcds::meta {

// The cas tokens that one connection has fetched. Only these may be compared, because a restarted server
// numbers items from scratch. The first connection stores none: there is no earlier one.
//
// The high-water mark is the newest token that this connection's adds have produced. An item with a newer one
// was stored later, as long as one server issues all tokens; behind a proxy there may be several.
class CasTokens {
 public:
  explicit CasTokens(bool first_connection = true) : first_(first_connection) {}
  // Returns false if the request compares with a token that was not fetched on this connection.
  bool allow(const Request& request) const;
  // Records the token of `reply`, and forgets one that was used.
  void note(const Request& request, const Reply& reply);
  // Sets `created` of a run of add_and_get: an item that it stored has a newer token than all before.
  void report_created(const RequestFormat& format, std::span<Reply* const> replies);
  // Returns true if the tokens come from a single server: those of two would be out of order by then.
  bool are_in_order() const { return in_order_ && seen_ >= 16; }

 private:
  bool first_;
  std::unordered_map<std::string, std::uint64_t> known_;  // by key
  std::uint64_t newest_ = 0;                              // the high-water mark
  std::size_t seen_ = 0;
  bool in_order_ = true;
};

// The times that replies report of their exchange.
struct ReplyTiming {
  SteadyTime asked_at{};  // when the latest batch could first be sent
  SteadyTime now{};
  bool opened = false;  // the connection was opened for the latest batch
};

class Pipeline {
 public:
  // `server` is the index for replies. `protocol` must outlive the Pipeline.
  Pipeline(std::size_t server, const ServerProtocol& protocol) : server_(server), protocol_(protocol) {}

  // Starts a batch after those in flight. All of them must use the same form of incr_or_create. Requests and
  // replies must stay in place until they are answered. Returns true if nothing was in flight.
  bool begin_batch(IncrForm incr_form);
  void add(const Request& request, Reply& reply);
  bool busy() const { return answered_ < requests_.size(); }
  // Return the number of requests ever added, and how many of them are answered or failed.
  std::uint64_t added() const { return forgotten_ + requests_.size(); }
  std::uint64_t answered() const { return forgotten_ + answered_; }
  bool has_unencoded() const { return encoded_ < requests_.size(); }
  bool has_in_flight() const { return !in_flight_.empty(); }

  // Encodes the next command, or answers a request that must not be sent. Returns false if that has to wait
  // for the replies to earlier requests. If the output grew, lies_at() must follow.
  bool encode_next(RequestFormat format, std::string& output);
  // Records where the command begins and ends, as counts of bytes like sent().
  void lies_at(std::size_t begin, std::size_t end) {
    in_flight_.back().begin = begin;
    in_flight_.back().end = end;
  }
  // Returns the number of bytes sent since the connection was last idle.
  std::size_t sent() const { return sent_; }
  void mark_sent(std::size_t bytes) { sent_ += bytes; }
  // Returns how many of `left` bytes to send at once over TLS. A command that is longer than a record shares
  // none of its records with others, and no record ends within any other command. Before 1.6.40 memcached
  // would otherwise wait for more bytes to arrive while the rest of the decrypted data is unread.
  std::size_t whole_commands(std::size_t left, std::size_t max_record) const;

  // Reads a part of the reply to the first command in flight.
  ReplyReader::Step read(std::string_view input, std::size_t& position);
  // Returns the size of the input that contains the whole of the value announced last.
  std::size_t wanted() const { return reader_.wanted(); }
  // Completes the first command in flight, whose reply was read.
  void finish_command(const ReplyTiming& timing);

  // Moves to a new connection.
  void reconnect();
  // Records that no unanswered request was applied: they will be encoded again, or fail.
  void rewind();
  // Fails all unanswered requests. Those that were sent whole may have been applied, the others were not.
  void fail(const ReplyFailure& failure, const ReplyTiming& timing);

 private:
  std::size_t requests_sent() const;
  void stamp(Reply& reply, const ReplyTiming& timing) const;

  std::size_t server_;
  const ServerProtocol& protocol_;
  IncrForm incr_form_ = IncrForm::whole;
  std::uint64_t forgotten_ = 0;  // answered requests that were removed from requests_
  std::vector<const Request*> requests_;
  std::vector<Reply*> replies_;
  std::size_t encoded_ = 0;   // requests encoded so far, or answered without
  std::size_t answered_ = 0;  // requests with a complete reply; never more than encoded_
  std::size_t lost_ = 0;      // requests that were answered, or sent whole on earlier connections
  struct InFlight {
    Command command;
    std::size_t begin, end;  // in the same count as sent_
  };
  std::deque<InFlight> in_flight_;
  std::size_t sent_ = 0;
  ReplyReader reader_;
  std::size_t connections_ = 0;
  CasTokens tokens_;
};

}  // namespace mcds::meta
