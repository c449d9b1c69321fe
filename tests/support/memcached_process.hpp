// Runs a real memcached, on a unix socket in a new directory or on a TCP port that the kernel chooses.
//
// The server is ready when the constructor returns. The destructor kills and reaps it; if the test dies, the
// kernel kills it when the starting thread ends, so start a server in a thread that lives as long as the
// server. The server's output is shown when an assertion fails.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "common/placement/pools/pool.hpp"

namespace mcds::test {

// A new directory in $TMPDIR, removed with its contents.
class TempDirectory {
 public:
  TempDirectory();
  ~TempDirectory();
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class MemcachedProcess {
 public:
  enum class Listen { unix_socket, tcp };
  // Starts memcached. `arguments` are added to the command line: {"-m", "1"}, {"-o", "…"}.
  explicit MemcachedProcess(std::vector<std::string> arguments = {}, Listen listen = Listen::unix_socket);
  ~MemcachedProcess();
  MemcachedProcess(const MemcachedProcess&) = delete;
  MemcachedProcess& operator=(const MemcachedProcess&) = delete;

  const Server& server() const { return server_; }
  std::string address() const;
  pid_t pid() const { return pid_; }
  bool running() const { return pid_ > 0; }
  std::string output() const;

  void stop();     // SIGSTOP, until it has stopped: connections stay open, no request is answered
  void resume();   // SIGCONT
  void kill();     // SIGKILL and reaped; the address stays reserved
  void restart();  // kills it if it runs, and starts it again on the same address

 private:
  void start();
  std::vector<std::string> command_line() const;
  bool accepts() const;
  void learn_port();

  std::vector<std::string> arguments_;
  TempDirectory directory_;
  Server server_;
  pid_t pid_ = -1;
};

// Returns the pool of these servers, named `m1`, `m2`, …, so that placement is the same in every run.
Pool pool_of(const std::vector<Server>& servers);

}  // namespace mcds::test
