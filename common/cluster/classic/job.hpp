// The part of a batch that one server gets, shared by the caller, who waits at most so long, and the thread
// that talks.
#pragma once

#include <semaphore.h>

#include <atomic>
#include <mutex>
#include <vector>

#include "common/base/clock.hpp"
#include "common/cluster/reply.hpp"
#include "common/cluster/request.hpp"

namespace mcds::classic {

class Job {
 public:
  explicit Job(std::size_t server) : server_(server) { sem_init(&ended_, 0, 0); }
  ~Job() { sem_destroy(&ended_); }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  std::size_t server() const { return server_; }
  void add(const Request& request) { requests_.push_back(request); }

  // The thread's side.
  const std::vector<Request>& requests() const { return requests_; }
  // Before anything of requests [first, first + count) is sent; false: the caller has gone, send nothing
  // more.
  bool begin(std::size_t first, std::size_t count = 1);
  void answer(std::size_t index, Reply reply);
  void note_progress();
  void prepare();
  void end() { sem_post(&ended_); }
  // The talking thread is stuck for good; async-signal-safe.
  void end_stuck() {
    stuck_.store(true);
    sem_post(&ended_);
  }

  // The caller's side: the replies, at the latest `patience` after the last progress. What is missing then is
  // unknown if its sending had begun and it changes something, else unreachable.
  // `latest`: not even then.
  std::vector<Reply> wait(Duration patience, SteadyTime latest);
  // The thread did not come back (in time): it and its connection must not be used again.
  bool lost() const { return lost_; }

 private:
  bool wait_until(Duration moment);
  std::uint64_t answered();
  void give_up();

  const std::size_t server_;
  std::vector<Request> requests_;
  sem_t ended_;
  std::atomic<bool> stuck_ = false;
  bool lost_ = false;
  std::mutex mutex_;
  std::atomic<std::int64_t> progress_ = 0;  // when anything last happened, CLOCK_MONOTONIC
  bool abandoned_ = false;
  std::size_t begun_ = 0;      // requests before this index may have been sent
  std::int64_t begun_at_ = 0;  // when the last of them began
  std::vector<bool> done_;
  std::vector<Reply> replies_;
};

}  // namespace mcds::classic
