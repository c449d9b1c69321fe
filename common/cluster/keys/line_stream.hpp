// One server's long answer, line by line, over a connection of its own. Connecting, TLS, the login and the
// time limits are here; what is asked and what the lines mean is for those who derive from it to say.
#pragma once

#include "common/base/clock.hpp"
#include "common/cluster/cluster.hpp"
#include "common/cluster/credentials.hpp"
#include "common/cluster/request.hpp"
#include "common/cluster/wire/socket.hpp"
#include "common/placement/pools/pool.hpp"

namespace mcds {

struct LineStreamOptions {
  Duration timeout = std::chrono::seconds(1);  // longest silence of one server
  Duration connect_timeout = std::chrono::milliseconds(500);
  std::optional<Duration> longest = {};  // of the whole, however lively the servers are; unset: no limit
  Duration patience = std::chrono::seconds(10);    // how long a server that is busy is asked again
  std::shared_ptr<const RunLimits> run = nullptr;  // the whole ends at its deadline, too

  // Throws Failure(refused) for the binary protocol, which has no such thing.
  static LineStreamOptions of(const ConnectOptions& options) {
    if (options.protocol == ConnectOptions::Protocol::binary)
      throw Failure(ErrorCode::refused,
                    "the binary protocol cannot list keys or watch; leave out --protocol binary, which works "
                    "unless the "
                    "server runs with -B binary or -S");
    return {.timeout = options.timeout, .connect_timeout = options.connect_timeout, .run = options.run};
  }
};

class LineStream {
 public:
  LineStream(const Server& server, const LineStreamOptions& options, const tls::Context* tls)
      : server_(server), options_(options), socket_(server, tls) {}
  virtual ~LineStream() = default;
  LineStream(const LineStream&) = delete;
  LineStream& operator=(const LineStream&) = delete;

  void start(SteadyTime now);
  bool busy() const { return busy_; }
  // What to wait for, in poll's words, and how long at most; descriptor -1: the time alone.
  int descriptor() const { return paused_ ? -1 : socket_.descriptor(); }
  short events() const;
  SteadyTime wakes_at() const { return std::min(deadline_, acts_at_); }
  // Poll's answer (0: nothing happened).
  void proceed(short happened, SteadyTime now);
  // The time for all of them is over.
  virtual void time_is_up() = 0;
  // Set when it failed: unreachable (no connection), denied, refused (this server does not do it), unknown
  // (it broke off).
  const std::shared_ptr<const ReplyFailure>& failure() const { return failure_; }

 protected:
  using Kind = ReplyFailure::Kind;

  // Connected and logged in: to send(), and to set a deadline.
  virtual void ask(SteadyTime now) = 0;
  // Without its line end.
  virtual void take_line(std::string_view line, SteadyTime now) = 0;
  // Bytes came, and all whole lines of them were taken.
  virtual void received(SteadyTime) {}
  // The server has closed the connection.
  virtual void take_close() = 0;
  // The deadline has passed.
  virtual void take_late() = 0;
  // The time set by act_at() has come; it is not set any more.
  virtual void act(SteadyTime) {}

  void send(std::string_view text);
  void set_deadline(SteadyTime when) { deadline_ = when; }
  void act_at(SteadyTime when) { acts_at_ = when; }
  // Nothing is read until act().
  void pause_until(SteadyTime when);
  void finish();
  void fail(Kind kind, std::string message);
  const LineStreamOptions& options() const { return options_; }
  std::size_t received_bytes() const { return received_; }

 private:
  void connected(SteadyTime now);
  void finish_connecting(SteadyTime now);
  void fail_connecting() { fail(socket_.denied() ? Kind::denied : Kind::unreachable, socket_.complaint()); }
  void send_more();
  void read(SteadyTime now);
  void read_lines(SteadyTime now);
  bool read_login(std::size_t& position, bool closed, SteadyTime now);

  const Server& server_;
  const LineStreamOptions& options_;
  meta::Socket socket_;
  bool busy_ = true;
  std::optional<LoginExchange> login_;  // of this connection, until it is done
  bool login_wanted_ = false;           // the server is known to refuse reads without one
  bool paused_ = false;
  std::string unsent_;
  SteadyTime deadline_{};
  SteadyTime acts_at_ = SteadyTime::max();
  std::size_t received_ = 0;
  std::string input_;
  std::shared_ptr<const ReplyFailure> failure_;
};

// Runs all of them side by side to their ends, which are after options.longest at the latest, and as soon as
// `goes_on`, asked several times a second, says false.
void run_streams(std::span<LineStream* const> streams, const LineStreamOptions& options, const Clock& clock,
                 const std::function<bool()>& goes_on = {});
// One for each server of the pool, made by `make`; their results.
template <typename Stream, typename Make>
auto run_on_all(const Pool& pool, const LineStreamOptions& options, const Clock& clock,
                const std::function<bool()>& goes_on, const Make& make) {
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<LineStream*> all;
  for (std::size_t i = 0; i < pool.size(); ++i) all.push_back(streams.emplace_back(make(pool[i], i)).get());
  run_streams(all, options, clock, goes_on);
  std::vector<decltype(streams.front()->result())> results;
  for (const auto& stream : streams) results.push_back(stream->result());
  return results;
}

// Of a key that a server has percent-encoded the bytes, which are in `buffer` then. False: it is none.
bool decode_key(std::string_view& key, std::string& buffer);

}  // namespace mcds
