// Runs forked processes for a test, and shares memory with them.
#pragma once

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <vector>

namespace mcds::test {

// A value-initialised T in memory shared by parent and children. T must be trivially destructible.
template <typename T>
class Shared {
 public:
  Shared()
      : value_(new (mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                   T{}) {}
  ~Shared() { munmap(value_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T& operator*() { return *value_; }
  T* operator->() { return value_; }

 private:
  T* value_;
};

// Child processes. The destructor kills and reaps them.
class Children {
 public:
  Children() = default;
  ~Children() {
    for (const pid_t pid : pids_) kill(pid, SIGKILL);
    wait_all();
  }
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  // Runs `body` in a child, which ends with status 0, or with 1 if `body` throws.
  template <typename Body>
  std::size_t spawn(Body body) {
    const pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      try {
        body();
      } catch (const std::exception& exception) {
        std::fprintf(stderr, "a child of the test ends: %s\n", exception.what());
        _exit(1);
      } catch (...) {
        _exit(1);
      }
      _exit(0);
    }
    pids_.push_back(pid);
    return pids_.size() - 1;
  }

  std::size_t size() const { return pids_.size(); }

  void kill_one(std::size_t index) {
    kill(pids_[index], SIGKILL);
    waitpid(pids_[index], nullptr, 0);
    pids_.erase(pids_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  // Waits for all children. Returns how many did not end with status 0.
  std::size_t wait_all() {
    std::size_t failed = 0;
    for (const pid_t pid : pids_) {
      int status = 0;
      waitpid(pid, &status, 0);
      failed += status == 0 ? 0 : 1;
    }
    pids_.clear();
    return failed;
  }

 private:
  std::vector<pid_t> pids_;
};

// Returns an amount of work, which an environment variable may override.
inline std::size_t amount(const char* variable, std::size_t usual) {
  const char* text = std::getenv(variable);
  return text == nullptr ? usual : static_cast<std::size_t>(std::strtoul(text, nullptr, 10));
}

}  // namespace mcds::test
