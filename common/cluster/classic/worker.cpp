#include "common/cluster/classic/worker.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "common/cluster/classic/handle.hpp"

namespace mcds::classic {

namespace {

thread_local Job* talking = nullptr;
struct sigaction earlier_abort, earlier_fault;

void park_or_pass_on(int signal) {
  if (Job* job = talking) {
    job->end_stuck();
    for (;;) pause();
  }
  sigaction(signal, signal == SIGABRT ? &earlier_abort : &earlier_fault, nullptr);
  raise(signal);
}

// Again for every thread: somebody else may have taken the signals since.
void install_trap() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  for (const int signal : {SIGABRT, SIGSEGV}) {
    struct sigaction current {};
    sigaction(signal, nullptr, &current);
    if (current.sa_handler == park_or_pass_on) continue;
    (signal == SIGABRT ? earlier_abort : earlier_fault) = current;
    struct sigaction ours {};
    ours.sa_handler = park_or_pass_on;
    sigemptyset(&ours.sa_mask);
    sigaction(signal, &ours, nullptr);
  }
}

// Signals go to the program's own threads: one during libmemcached's poll would start its timeout anew.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (const int own : {SIGABRT, SIGSEGV}) sigdelset(&all, own);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

struct Worker::State {
  Server server;
  ConnectOptions options;
  std::mutex mutex;
  std::condition_variable wake;
  std::shared_ptr<Job> job;
  bool ending = false;
};

Worker::Worker(const Server& server, const ConnectOptions& options) : state_(std::make_shared<State>()) {
  library();
  install_trap();
  state_->server = server;
  state_->options = options;
  const SignalsBlocked inherited;
  std::thread([state = state_] { run(state); }).detach();
}

Worker::~Worker() {
  const std::lock_guard lock(state_->mutex);
  state_->ending = true;
  state_->wake.notify_one();
}

void Worker::start(std::shared_ptr<Job> job) {
  const std::lock_guard lock(state_->mutex);
  state_->job = std::move(job);
  state_->wake.notify_one();
}

void Worker::run(const std::shared_ptr<State>& state) {
  Handle handle(state->server, state->options);
  for (;;) {
    std::shared_ptr<Job> job;
    {
      std::unique_lock lock(state->mutex);
      state->wake.wait(lock, [&] { return state->ending || state->job; });
      if (!state->job) return;
      job = std::move(state->job);
    }
    talking = job.get();
    handle.execute(*job);
    talking = nullptr;
    job->end();
  }
}

}  // namespace mcds::classic
