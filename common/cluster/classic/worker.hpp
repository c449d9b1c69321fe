// The thread that owns one server's handle. A job it does not finish in time is taken from it: the caller
// goes on, the thread ends when libmemcached comes back, and the server gets a new thread and connection.
//
// libmemcached's own timeouts act on each poll, so a dripping server, and name resolution, hold a call for as
// long as they like; some replies make it abort the process (a storage command answered by END, OK, VALUE …
// or a number) or read at a wild address (a value length of 2^64-2). In these threads such a signal parks the
// thread for good instead of ending the process: its job ends as `unknown`, or `refused` if it changes
// nothing.
#pragma once

#include <memory>

#include "common/cluster/classic/job.hpp"
#include "common/cluster/cluster.hpp"

namespace mcds::classic {

class Worker {
 public:
  Worker(const Server& server, const ConnectOptions& options);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  void start(std::shared_ptr<Job> job);

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state);
  std::shared_ptr<State> state_;
};

}  // namespace mcds::classic
