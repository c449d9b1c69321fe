// mcds sandbox: real memcached processes on unix sockets for the life of one command.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "common/base/errors.hpp"
#include "tools/cli/child.hpp"
#include "tools/cli/program.hpp"
#include "tools/cli/session.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

namespace {

constexpr std::uint64_t most_servers = 64;
constexpr std::uint64_t most_megabytes = 1 << 20;
constexpr Duration startup_limit = std::chrono::seconds(10);
constexpr Duration between_looks = std::chrono::milliseconds(1);

struct SandboxOptions {
  std::uint64_t count = 3;
  std::uint64_t megabytes = 64;
  std::vector<std::string> words;    // before --
  std::vector<std::string> command;  // after it
};

std::string new_directory_name(Random& random) {
  const char* base = std::getenv("TMPDIR");
  std::string name =
      std::string(base != nullptr && *base == '/' ? base : "/tmp") + "/mcds-sandbox-" + random.token();
  if (name.size() + sizeof "/m99.sock" > sizeof(sockaddr_un::sun_path)) {
    throw Failure(ErrorCode::system, "TMPDIR is too long for unix sockets; set it to a shorter path");
  }
  return name;
}

// Takes connections?
bool answers(const std::string& path) {
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const bool connected =
      connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(descriptor);
  return connected;
}

// Without reaping it: its process id stays ours.
bool has_ended(pid_t pid) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

// The servers and their directory; gone with it.
class Sandbox {
 public:
  Sandbox(std::string directory, const Guardian& guardian, const HeldSignals& held)
      : directory_(std::move(directory)), guardian_(guardian), held_(held) {
    if (mkdir(directory_.c_str(), 0700) != 0) {
      throw Failure(ErrorCode::cannot_write, "cannot make " + directory_ + ": " + std::strerror(errno));
    }
  }

  ~Sandbox() {
    for (const pid_t pid : pids_) ::kill(-pid, SIGKILL);
    for (const pid_t pid : pids_) {
      while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
      }
      guardian_.forget(pid);
    }
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  void start(const SandboxOptions& options) {
    for (std::size_t i = 1; i <= options.count; ++i) pids_.push_back(start_server(i, options.megabytes));
  }

  void wait_until_ready(Clock& clock) const {
    const SteadyTime limit = clock.steady() + startup_limit;
    for (std::size_t i = 1; i <= pids_.size(); ++i) {
      while (!answers(socket_of(i))) {
        if (has_ended(pids_[i - 1]) || clock.steady() > limit) give_up(i);
        clock.sleep_for(between_looks);
      }
    }
  }

  // `m1=unix:…,m2=unix:…`: the names are what keys are placed by, so placement is the same every time.
  std::string servers() const {
    std::string list;
    for (std::size_t i = 1; i <= pids_.size(); ++i) {
      list += (i == 1 ? "m" : ",m") + std::to_string(i) + "=unix:" + socket_of(i);
    }
    return list;
  }

  std::string pids() const {
    std::string list;
    for (const pid_t pid : pids_) list += (list.empty() ? "" : ",") + std::to_string(pid);
    return list;
  }

 private:
  std::string path_of(std::size_t number, const char* kind) const {
    return directory_ + "/m" + std::to_string(number) + kind;
  }
  std::string socket_of(std::size_t number) const { return path_of(number, ".sock"); }

  [[noreturn]] void give_up(std::size_t number) const {
    std::string line;
    std::ifstream log(path_of(number, ".log"));
    std::getline(log, line);
    throw Failure(ErrorCode::unavailable,
                  "memcached does not start: " + (line.empty() ? "it says nothing" : line));
  }

  pid_t start_server(std::size_t number, std::uint64_t megabytes) {
    std::vector<std::string> line{"memcached", "-s", socket_of(number), "-m", std::to_string(megabytes)};
    if (geteuid() == 0) line.insert(line.end(), {"-u", "root"});
    const std::string log = path_of(number, ".log");
    int report[2];
    if (pipe2(report, O_CLOEXEC) != 0)
      throw Failure(ErrorCode::system, "cannot make a pipe; too many open files?");
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid == 0) become_server(line, log.c_str(), parent, report[1]);
    close(report[1]);
    if (pid > 0) guardian_.watch(pid);
    int error = pid < 0 ? errno : 0;
    static_cast<void>(!read(report[0], &error, sizeof error));
    close(report[0]);
    if (error == 0) return pid;
    if (pid > 0) waitpid(pid, nullptr, 0);
    if (error == ENOENT) {
      throw Failure(ErrorCode::unavailable,
                    "memcached is not installed or not in PATH; apt-get install memcached");
    }
    throw Failure(ErrorCode::unavailable, std::string("cannot run memcached: ") + std::strerror(error));
  }

  // A session of its own: signals of our terminal do not reach it.
  [[noreturn]] void become_server(const std::vector<std::string>& line, const char* log, pid_t parent,
                                  int report) {
    setsid();
    guardian_.watch(getpid());
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    const int null = open("/dev/null", O_RDONLY);
    const int output = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(null, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    // What the caller left open must not be held open by a server: keep only the report.
    dup2(report, STDERR_FILENO + 1);
    fcntl(STDERR_FILENO + 1, F_SETFD, FD_CLOEXEC);
    close_range(STDERR_FILENO + 2, UINT_MAX, 0);
    pthread_sigmask(SIG_SETMASK, &held_.before(), nullptr);
    std::vector<char*> words;
    for (const std::string& word : line) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    execvp(words.front(), words.data());
    const int error = errno;
    static_cast<void>(!write(STDERR_FILENO + 1, &error, sizeof error));
    _exit(127);
  }

  std::string directory_;
  const Guardian& guardian_;
  const HeldSignals& held_;
  std::vector<pid_t> pids_;
};

void check(const SandboxOptions& options) {
  if (options.count == 0 || options.count > most_servers) throw InvalidInput("-N: 1 to 64 servers");
  if (options.megabytes == 0 || options.megabytes > most_megabytes) {
    throw InvalidInput("-m: 1 to 1048576 megabytes for each server");
  }
}

std::vector<std::string> command_of(const SandboxOptions& options) {
  std::vector<std::string> command = options.words;
  command.insert(command.end(), options.command.begin(), options.command.end());
  if (!command.empty()) return command;
  const char* shell = std::getenv("SHELL");
  return {shell != nullptr && *shell != '\0' ? shell : "/bin/sh"};
}

ExitStatus run_sandbox(Session& session, const SandboxOptions& options) {
  check(options);
  const std::string directory = new_directory_name(session.random());
  const Guardian guardian(directory);
  const HeldSignals held;
  Sandbox sandbox(directory, guardian, held);
  sandbox.start(options);
  sandbox.wait_until_ready(session.clock());
  ChildOptions child{.command = command_of(options)};
  child.environment = {{"MCDS_SERVERS", sandbox.servers()},
                       {"MCDS_SANDBOX_DIR", directory},
                       {"MCDS_SANDBOX_PIDS", sandbox.pids()}};
  const ChildResult result = run_child(child, session.clock(), guardian, held);
  if (!result.message.empty()) session.output().error(Failure(ErrorCode::usage, result.message));
  return static_cast<ExitStatus>(result.exit_code());
}

}  // namespace

void declare_sandbox(Command& command) {
  auto options = std::make_shared<SandboxOptions>();
  command.itself()
      .example("mcds sandbox")
      .example("mcds sandbox -N 5 -- tests/my-test.sh")
      .example("mcds sandbox -- sh -c 'mcds counter incr hits; mcds servers'")
      .optional_argument("CMD", "what to run; $SHELL without it", &options->words)
      .option("-N,--count", "N", "how many servers; 3 without it", &options->count)
      .option("-m,--memory", "MB", "megabytes of memory for each; 64 without it", &options->megabytes)
      .child(options->command, false)
      .action([options](Session& session) { return run_sandbox(session, *options); });
}

}  // namespace mcds
