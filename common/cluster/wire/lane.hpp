// One server's side of the batches in flight: their requests in order, the bytes, the replies so far.
#pragma once

#include <deque>
#include <unordered_map>

#include "common/base/clock.hpp"
#include "common/cluster/cluster.hpp"
#include "common/cluster/credentials.hpp"
#include "common/cluster/transport.hpp"
#include "common/cluster/wire/greeting.hpp"
#include "common/cluster/wire/socket.hpp"
#include "common/cluster/wire/wire.hpp"

namespace mcds::meta {

// The connection outlives batches; everything else is of those that are not yet answered.
class Lane {
 public:
  Lane(const Server& server, std::size_t index, const ConnectOptions& options, const tls::Context* tls)
      : server_(server),
        index_(index),
        options_(options),
        socket_(server, tls),
        dialect_(ungreeted(options)) {}

  // A batch begins, after those that are in flight; all of them take the same form of incr_or_create.
  // Requests and replies stay where they are until they are answered.
  void begin(IncrForm incr_form);
  void add(const Request& request, Reply& reply);
  // Opens the connection, or finds the old one still good; sends what the kernel takes at once.
  void start(SteadyTime now);
  bool busy() const { return answered_ < requests_.size(); }
  // Requests that were ever added, and how many of them are answered.
  std::uint64_t added() const { return forgotten_ + requests_.size(); }
  std::uint64_t answered() const { return forgotten_ + answered_; }
  // The caller waits from now on: until then it was not the server that took the time.
  // Each reply has its timeout; all of them together as much again for every so many of them and every so
  // many bytes, so that a server that drips is given up.
  void expect_by(SteadyTime now);
  // Bytes that ever came.
  std::uint64_t heard_bytes() const { return heard_bytes_; }
  // More has come than is held of answers at a time.
  void give_up_flood();
  // No caller waits for the requests in flight.
  void drop() { abandon("the connection was closed because of another batch"); }
  // What to wait for, in poll's words, and how long at most.
  short events() const;
  SteadyTime deadline() const { return deadline_; }
  int descriptor() const { return socket_.descriptor(); }
  // Poll's answer (0: the deadline has passed).
  void proceed(short happened, SteadyTime now);

  // What a server supports before it was greeted: unknown, or given by the user.
  static Dialect ungreeted(const ConnectOptions& options);
  // What the server takes, as far as it was greeted.
  const Dialect& dialect() const { return dialect_; }

 private:
  bool open();
  void note_peer() const;
  Wording wording() const;
  bool answered_here(const Request& request, const Wording& wording, Reply& reply) const;
  bool is_stranger() const;
  bool may_wait_for_a_header() const;
  bool read_login(bool closed, SteadyTime now);
  void log_in_again(SteadyTime now);
  bool read_greeting();
  void inquire(SteadyTime now);
  void ask_next(SteadyTime now);
  std::size_t requests_sent() const;
  void read_answer(bool closed, SteadyTime now);
  void begin_again(SteadyTime now);
  void renew_deadline(SteadyTime now);
  void forget_answered();
  void write(SteadyTime now);
  std::size_t whole_commands() const;
  void read(SteadyTime now);
  void read_replies(SteadyTime now);
  void finish_command(const Command& command, SteadyTime now);
  void tell_created(const Command& command);
  // Fails everything unanswered: what was sent whole may have been applied, the rest was not.
  enum class Why { gone, late, nonsense, flood };
  void abandon(std::string why, Why kind = Why::gone);
  void fill_in(Reply& reply, SteadyTime now) const;
  // Fails everything unanswered, of which nothing was applied.
  void refuse_all(ReplyFailure::Kind kind, const std::string& why);
  bool known_unique(const Request& request) const;
  void note_unique(const Request& request, const Reply& reply);
  void remember_unique(const std::string& key, std::uint64_t unique);

  const Server& server_;
  std::size_t index_;
  const ConnectOptions& options_;
  Socket socket_;
  SystemClock clock_;  // for names, whose lookup blocks
  Dialect dialect_;
  std::optional<Greeting> greeting_;  // of this connection, until it is answered
  bool greets_ = false;               // before the next request is sent
  std::optional<Inquiry> inquiry_;    // what the server is, after it closed on the greeting or did not answer
  std::string overdue_;               // what is said if it shows nothing, after no answer came in time
  std::size_t sent_before_ = 0;       // requests that went out behind that greeting
  std::size_t connections_ = 0;       // ever begun to this server
  std::optional<LoginExchange> login_;  // of this connection, until it is done
  bool login_wanted_ = false;           // the server is known to refuse reads without one
  std::string login_closed_;            // what is said if it closed on the login, and shows nothing else
  bool heard_ = false;                  // this connection has received a reply
  bool met_ = false;                    // the server has, ever
  // Cas uniques this connection has fetched: only these may be compared with (a restarted server counts
  // anew). The first connection needs no memory of them: there is no other they could be of.
  std::unordered_map<std::string, std::uint64_t> uniques_;

  // The newest unique that this connection's adds are known to have made: what has a newer one was stored
  // later, as far as one server makes them all. Behind a proxy there may be several.
  struct Stamps {
    std::uint64_t newest = 0;
    std::size_t seen = 0;
    bool in_order = true;
  };
  Stamps stamps_;

  IncrForm incr_form_ = IncrForm::whole;
  std::uint64_t forgotten_ = 0;  // answered requests that are no longer in requests_
  std::vector<const Request*> requests_;
  std::vector<Reply*> replies_;
  std::size_t encoded_ = 0;   // requests put into output_ so far
  std::size_t answered_ = 0;  // requests whose reply is complete
  struct OnTheWay {
    Command command;
    std::size_t end;  // of its bytes, counted as sent_ is
  };
  std::deque<OnTheWay> on_the_way_;
  std::string output_;
  std::size_t output_position_ = 0;  // of output_: sent so far
  std::size_t sent_ = 0;             // bytes since the lane was last idle
  std::size_t produced_ = 0;
  std::string input_;
  std::size_t input_position_ = 0;
  ReplyReader reader_;
  bool idle_ = true;     // nothing was in flight when the latest batch began
  bool opened_ = false;  // the connection, for the latest batch
  SteadyTime now_{};     // when anything was last asked or looked at
  SteadyTime deadline_{};
  SteadyTime waited_since_{};
  std::uint64_t answered_before_ = 0;  // waited_since_
  std::size_t received_ = 0;           // bytes, since then
  std::uint64_t heard_bytes_ = 0;
  SteadyTime asked_at_{};  // when the latest batch could first be sent
};

}  // namespace mcds::meta
