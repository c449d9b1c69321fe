// ServerConnection: the connection to one server. It owns the socket, the deadlines and the buffers, and
// moves bytes between two parts that do no I/O:
//   Handshake   decides what precedes the first request and what the server's answers to it mean
//   Pipeline    encodes requests in order and matches replies to them
//
//   closed -> connecting -> open    the Socket's states; each new connection begins a handshake
//   open -> open                    the next batch uses the connection again if the server has not closed it
//   open -> connecting              the handshake wants a new connection; the same requests wait for it
//   any -> closed                   fail(): every request is failed, and the next batch reconnects
//
// The handshake judges a close or a timeout of an open connection; before that, no request was sent on it. A
// lost reply is a timeout. Bytes that are left when all requests are answered close the connection.
#pragma once

#include "common/cluster/wire/handshake.hpp"
#include "common/cluster/wire/pipeline.hpp"
#include "common/cluster/wire/socket.hpp"

namespace mcds::meta {

// The time limit for a protocol probe after a timeout.
constexpr Duration max_late_probe = std::chrono::milliseconds(100);

// The connection outlives batches; all other state belongs to requests that are not yet answered.
class ServerConnection {
 public:
  ServerConnection(const Server& server, std::size_t index, const ConnectOptions& options,
                   const tls::Context* tls)
      : server_(server),
        index_(index),
        options_(options),
        socket_(server, tls),
        handshake_(server, options),
        pipeline_(index, handshake_.protocol()) {}

  // Starts a batch after those in flight. All of them must use the same form of incr_or_create. Requests and
  // replies must stay in place until they are answered.
  void begin(IncrForm incr_form) { idle_ = pipeline_.begin_batch(incr_form) || idle_; }
  void add(const Request& request, Reply& reply) { pipeline_.add(request, reply); }
  // Opens the connection unless the old one is still usable, and sends what the kernel accepts.
  void start(SteadyTime now);
  bool busy() const { return pipeline_.busy(); }
  // Return the number of requests ever added, and how many of them are answered.
  std::uint64_t added() const { return pipeline_.added(); }
  std::uint64_t answered() const { return pipeline_.answered(); }
  // Restarts the timeout: only time in which the caller waits counts against the server. Each reply has the
  // whole timeout, but all replies together only earn more time by progress (min_replies_per_s,
  // min_bytes_per_s), so that a server that trickles bytes times out.
  void expect_by(SteadyTime now);
  // Returns the number of bytes ever received.
  std::uint64_t received_bytes() const { return received_bytes_; }
  // Fails the batch because its replies exceed the memory limit.
  void give_up_flood();
  // Fails the requests in flight: their caller no longer waits for them.
  void drop() {
    fail({ReplyFailure::Kind::unreachable, "the connection was closed because of another batch"});
  }
  // Returns the events for poll(), and the time until which to wait for them.
  short events() const;
  SteadyTime deadline() const { return deadline_; }
  int descriptor() const { return socket_.descriptor(); }
  // Handles the result of poll(); `happened` is 0 if there was no event.
  void proceed(short happened, SteadyTime now);
  // Returns the server's abilities as far as it was greeted.
  const ServerProtocol& protocol() const { return handshake_.protocol(); }

 private:
  bool is_open() const { return socket_.state() == Socket::State::open; }
  std::size_t unsent() const { return output_.size() - output_position_; }
  bool open();
  void note_peer() const;
  void carry_out(Decision decision);
  void on_timeout();
  bool finish_connecting();
  void renew_deadline();
  void encode_requests();
  void write();
  void read();
  void read_replies();
  // Fails all unanswered requests and closes. The socket has the reason if the message is empty.
  void fail(ReplyFailure failure = {});

  const Server& server_;
  std::size_t index_;
  const ConnectOptions& options_;
  Socket socket_;
  SystemClock clock_;  // for name lookups, which block
  Handshake handshake_;
  Pipeline pipeline_;
  std::string output_;
  std::size_t output_position_ = 0;  // bytes of output_ that were sent
  std::string input_;
  std::size_t input_position_ = 0;
  bool idle_ = true;    // nothing was in flight when the latest batch began
  ReplyTiming timing_;  // its `now` is the time of the last start() or proceed()
  SteadyTime deadline_{};
  SteadyTime waited_since_{};
  std::uint64_t answered_before_ = 0;  // answered() at waited_since_
  std::size_t received_ = 0;           // bytes received since waited_since_
  std::uint64_t received_bytes_ = 0;   // without the answers to the protocol probe
};

}  // namespace mcds::meta
