// LineStream: base class for one server's long reply, read line by line over a separate connection. It
// connects, logs in and keeps the time limits; subclasses send the command and interpret the lines. If the
// server closes or is silent before its first line, an ordinary request follows: if that finds another kind
// of server, or one that denies access, its failure is reported.
#pragma once

#include "common/base/clock.hpp"
#include "common/cluster/cluster.hpp"
#include "common/cluster/credentials.hpp"
#include "common/cluster/request.hpp"
#include "common/cluster/wire/server_connection.hpp"
#include "common/placement/pools/pool.hpp"

namespace mcds {

struct LineStreamOptions {
  Duration timeout = std::chrono::seconds(1);  // maximum silence of one server
  Duration connect_timeout = std::chrono::milliseconds(500);
  std::optional<Duration> longest = {};  // total time, even if the servers keep answering; unset: no limit
  Duration patience = std::chrono::seconds(10);    // how long a busy server is retried
  std::shared_ptr<const RunLimits> run = nullptr;  // its deadline applies too

  // Throws Failure(refused) for the binary protocol, which has no such commands.
  static LineStreamOptions of(const ConnectOptions& options) {
    if (options.protocol == ConnectOptions::Protocol::binary)
      throw Failure(ErrorCode::refused,
                    "the binary protocol cannot list or watch keys; omit --protocol binary (a server with -B "
                    "binary or -S supports nothing else)");
    return {.timeout = options.timeout, .connect_timeout = options.connect_timeout, .run = options.run};
  }
};

class LineStream {
 public:
  LineStream(const Server& server, const LineStreamOptions& options, const tls::Context* tls)
      : server_(server), options_(options), tls_(tls), socket_(server, tls) {}
  virtual ~LineStream() = default;
  LineStream(const LineStream&) = delete;
  LineStream& operator=(const LineStream&) = delete;

  void start(SteadyTime now);
  bool busy() const { return busy_; }
  // Return the descriptor, events and time limit for poll(); descriptor -1 means the time limit only.
  int descriptor() const {
    return paused_ ? -1 : question_ ? question_->connection.descriptor() : socket_.descriptor();
  }
  short events() const;
  SteadyTime wakes_at() const {
    return question_ ? question_->connection.deadline() : std::min(deadline_, acts_at_);
  }
  // Handles the result of poll(); `happened` is 0 if there was no event.
  void proceed(short happened, SteadyTime now);
  // Called when options.longest, or the deadline of the run, has passed.
  virtual void time_is_up() = 0;
  // Returns the failure: unreachable (no connection), denied, refused (not supported), unknown (broken off).
  const std::shared_ptr<const ReplyFailure>& failure() const { return failure_; }

 protected:
  using Kind = ReplyFailure::Kind;

  // Called when connected and logged in. It must send() the command and may set a deadline.
  virtual void ask(SteadyTime now) = 0;
  // `line` is without its line end.
  virtual void take_line(std::string_view line, SteadyTime now) = 0;
  // Called after bytes arrived and their complete lines were handled.
  virtual void received(SteadyTime) {}
  // Called when the server has closed the connection.
  virtual void take_close() = 0;
  // Called when the deadline has passed.
  virtual void take_late() = 0;
  // Called when the time set by act_at() has come; that time is unset again.
  virtual void act(SteadyTime) {}

  void send(std::string_view text);
  void set_deadline(SteadyTime when) { deadline_ = when; }
  void act_at(SteadyTime when) { acts_at_ = when; }
  // Reads nothing until act() is called at `when`.
  void pause_until(SteadyTime when);
  void finish();
  void fail(Kind kind, std::string message);
  const LineStreamOptions& options() const { return options_; }
  // Returns why the run is over, after a colon, or `otherwise` if it is not.
  std::string why_over(const char* otherwise) const {
    const bool over = options_.run && SystemClock().steady() >= options_.run->deadline();
    return over ? ": " + options_.run->why_over() : otherwise;
  }
  std::size_t received_bytes() const { return received_; }

 private:
  // The ordinary request that finds out what the server is.
  struct Question {
    Question(const Server& server, const tls::Context* tls, const ConnectOptions& limits)
        : options(limits), connection(server, 0, options, tls) {
      connection.begin(meta::IncrForm::whole);
      connection.add(request, reply);
    }
    ConnectOptions options;
    Request request = Request::version(0);
    Reply reply;
    meta::ServerConnection connection;
  };

  void connected(SteadyTime now);
  void finish_connecting(SteadyTime now);
  void fail_connecting() { fail(socket_.denied() ? Kind::denied : Kind::unreachable, socket_.complaint()); }
  void send_more();
  void find_cause(SteadyTime now, Duration longest);
  void finish_question();
  void read(SteadyTime now);
  void read_lines(SteadyTime now);
  bool read_login(std::size_t& position, bool closed, SteadyTime now);

  const Server& server_;
  const LineStreamOptions& options_;
  const tls::Context* tls_;
  meta::Socket socket_;
  bool busy_ = true;
  bool answered_ = false;               // a line has arrived, not counting those of the login
  std::optional<LoginExchange> login_;  // set until this connection's login is done
  bool login_wanted_ = false;           // the server is known to refuse reads without a login
  bool paused_ = false;
  std::string unsent_;
  SteadyTime deadline_{};
  SteadyTime acts_at_ = SteadyTime::max();
  std::size_t received_ = 0;
  std::string input_;
  std::shared_ptr<const ReplyFailure> failure_;
  std::unique_ptr<Question> question_;
};

// Runs all streams concurrently until they finish. Ends them early after options.longest, or when `goes_on`
// returns false; it is called several times a second.
void run_streams(std::span<LineStream* const> streams, const LineStreamOptions& options, const Clock& clock,
                 const std::function<bool()>& goes_on = {});
// Runs one stream for each server of the pool, created by `make`, and returns their results.
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

// Decodes a key that a server has percent-encoded, into `buffer`. Returns false if the encoding is invalid.
bool decode_key(std::string_view& key, std::string& buffer);

}  // namespace mcds
