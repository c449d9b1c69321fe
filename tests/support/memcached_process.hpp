// A real memcached of our own: on a unix socket in a fresh directory, or on a TCP port the kernel chose.
//
// Ready when the constructor returns; killed and reaped by the destructor, and by the kernel should the test
// die. (The kernel's promise hangs on the starting thread: start servers in the thread that lives as long as
// they do.) What the server printed is shown when an assertion fails.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "common/placement/pools/pool.hpp"

namespace mcds::test {

// A fresh directory in $TMPDIR, removed with all it holds.
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
  // `arguments` are added to the command line: {"-m", "1"}, {"-o", "…"}.
  explicit MemcachedProcess(std::vector<std::string> arguments = {}, Listen listen = Listen::unix_socket);
  ~MemcachedProcess();
  MemcachedProcess(const MemcachedProcess&) = delete;
  MemcachedProcess& operator=(const MemcachedProcess&) = delete;

  const Server& server() const { return server_; }
  std::string address() const;
  pid_t pid() const { return pid_; }
  bool running() const { return pid_ > 0; }
  std::string output() const;

  void stop();     // SIGSTOP, and it has stopped: connections stay, nothing is answered
  void resume();   // SIGCONT
  void kill();     // SIGKILL and reaped; the address stays ours
  void restart();  // kill, if it runs, and start again on the same address

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

// The pool of these servers, named `m1`, `m2`, …: placement is then the same in every run.
Pool pool_of(const std::vector<Server>& servers);

}  // namespace mcds::test
