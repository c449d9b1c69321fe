// One server's side of a batch: its requests in order, the bytes on their way, the replies so far.
#pragma once

#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/clock.hpp"
#include "common/cluster/cluster.hpp"
#include "common/cluster/meta/socket.hpp"
#include "common/cluster/meta/wire.hpp"

namespace mcds::meta {

// The connection outlives batches; everything else is of one batch.
class Lane {
 public:
  Lane(const Server& server, std::size_t index, const ConnectOptions& options)
      : server_(server), index_(index), options_(options), socket_(server) {}

  // A batch begins. `replies` outlive it.
  void begin(IncrForm incr_form);
  void add(const Request& request, Reply& reply);
  // Opens the connection, or finds the old one still good; sends what the kernel takes at once.
  void start(SteadyTime now);
  bool busy() const { return answered_ < requests_.size(); }
  // What to wait for, in poll's words, and how long at most.
  short events() const;
  SteadyTime deadline() const { return deadline_; }
  int descriptor() const { return socket_.descriptor(); }
  // Poll's answer (0: the deadline has passed).
  void proceed(short happened, SteadyTime now);

  // False once the server answered ERROR to a meta command.
  bool speaks_meta() const { return speaks_meta_; }

 private:
  void write(SteadyTime now);
  void read(SteadyTime now);
  void read_replies(SteadyTime now);
  void finish_command(const Command& command, SteadyTime now);
  // Ends the batch for everything unanswered: what was sent whole may have been applied, the rest was not.
  void abandon(const std::string& why, bool nonsense);
  void turned_away();
  bool known_unique(const Request& request) const;
  void remember_unique(const std::string& key, std::uint64_t unique);

  const Server& server_;
  std::size_t index_;
  const ConnectOptions& options_;
  Socket socket_;
  bool speaks_meta_ = true;
  std::size_t connections_ = 0;  // ever begun to this server
  bool heard_ = false;           // this connection has answered something
  // Cas uniques this connection has fetched: only these may be compared with (a restarted server counts anew). The
  // first connection needs no memory of them: there is no other they could be of.
  std::unordered_map<std::string, std::uint64_t> uniques_;

  IncrForm incr_form_ = IncrForm::whole;
  std::vector<const Request*> requests_;
  std::vector<Reply*> replies_;
  std::size_t encoded_ = 0;   // requests put into output_ so far
  std::size_t answered_ = 0;  // requests whose reply is complete
  struct OnTheWay {
    Command command;
    std::size_t end;  // of its bytes, counted from the batch's first byte
  };
  std::deque<OnTheWay> on_the_way_;
  std::string output_;
  std::size_t output_position_ = 0;  // of output_: sent so far
  std::size_t sent_ = 0;             // bytes since the batch began
  std::size_t produced_ = 0;
  std::string input_;
  std::size_t input_position_ = 0;
  ReplyReader reader_;
  SteadyTime deadline_{};
  SteadyTime asked_at_{};  // when this batch could first be sent
};

}  // namespace mcds::meta
