#include "tests/support/memcached_process.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>
#include <stdexcept>

#include "tests/support/sockets.hpp"

namespace mcds::test {

namespace {

constexpr auto startup_limit = std::chrono::seconds(20);

std::mutex living_mutex;
std::set<const MemcachedProcess*> living;

// Shows the output of running servers as soon as an assertion fails.
struct OutputShower : doctest::IReporter {
  explicit OutputShower(const doctest::ContextOptions&) {}
  void log_assert(const doctest::AssertData& data) override {
    if (!data.m_failed) return;
    const std::lock_guard lock(living_mutex);
    for (const MemcachedProcess* process : living) {
      const std::string output = process->output();
      if (!output.empty())
        fprintf(stderr, "--- memcached at %s printed:\n%s", process->address().c_str(), output.c_str());
    }
  }
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_start(const doctest::TestCaseData&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};
DOCTEST_REGISTER_LISTENER("servers", 1, OutputShower);

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Runs in the child between fork and exec, so it makes only async-signal-safe calls.
[[noreturn]] void become(char* const* argv, const char* output_path, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int output = open(output_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
  const int null = open("/dev/null", O_RDONLY);
  dup2(null, 0);
  dup2(output, 1);
  dup2(output, 2);
  execvp(argv[0], argv);
  _exit(127);
}

}  // namespace

TempDirectory::TempDirectory() {
  const char* base = getenv("TMPDIR");
  path_ = std::string(base ? base : "/tmp") + "/mcds-test-XXXXXX";
  if (!mkdtemp(path_.data())) throw std::runtime_error("mkdtemp " + path_ + ": " + strerror(errno));
}

TempDirectory::~TempDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

MemcachedProcess::MemcachedProcess(std::vector<std::string> arguments, Listen listen)
    : arguments_(std::move(arguments)) {
  if (listen == Listen::unix_socket) {
    server_.socket_path = directory_.path() + "/s";
  } else {
    server_.host = "127.0.0.1";
    server_.port = 0;
  }
  start();
  const std::lock_guard lock(living_mutex);
  living.insert(this);
}

MemcachedProcess::~MemcachedProcess() {
  {
    const std::lock_guard lock(living_mutex);
    living.erase(this);
  }
  kill();
}

std::string MemcachedProcess::output() const {
  return read_file(directory_.path() + "/output");
}

std::vector<std::string> MemcachedProcess::command_line() const {
  std::vector<std::string> line = {"memcached", "-U", "0"};
  if (server_.is_unix())
    line.insert(line.end(), {"-s", server_.socket_path});
  else
    line.insert(line.end(), {"-l", server_.host, "-p", server_.port ? std::to_string(server_.port) : "-1"});
  if (geteuid() == 0) line.insert(line.end(), {"-u", "root"});
  line.insert(line.end(), arguments_.begin(), arguments_.end());
  return line;
}

void MemcachedProcess::start() {
  const std::vector<std::string> line = command_line();
  std::vector<char*> argv;
  for (const std::string& word : line) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const std::string output_path = directory_.path() + "/output";
  setenv("MEMCACHED_PORT_FILENAME", (directory_.path() + "/port").c_str(), 1);
  unlink(server_.socket_path.c_str());
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error(std::string("fork: ") + strerror(errno));
  if (pid_ == 0) become(argv.data(), output_path.c_str(), parent);

  const auto limit = std::chrono::steady_clock::now() + startup_limit;
  while (!accepts()) {
    int status = 0;
    const bool ended = waitpid(pid_, &status, WNOHANG) == pid_;
    if (ended) pid_ = -1;
    if (ended || std::chrono::steady_clock::now() > limit) {
      kill();
      throw std::runtime_error("memcached does not start (is it installed?): " + output());
    }
    poll(nullptr, 0, 1);
    learn_port();
  }
}

// Reads the port from memcached's file, which has `TCP INET: 37123` once it listens.
void MemcachedProcess::learn_port() {
  if (server_.is_unix() || server_.port) return;
  const std::string text = read_file(directory_.path() + "/port");
  const std::size_t colon = text.find("INET: ");
  if (colon != std::string::npos) server_.port = static_cast<std::uint16_t>(atoi(text.c_str() + colon + 6));
}

bool MemcachedProcess::accepts() const {
  if (!server_.is_unix() && !server_.port) return false;
  const int fd = connect_to(server_);
  if (fd < 0) return false;
  close(fd);
  return true;
}

std::string MemcachedProcess::address() const {
  return server_.is_unix() ? "unix:" + server_.socket_path
                           : server_.host + ':' + std::to_string(server_.port);
}

void MemcachedProcess::stop() {
  ::kill(pid_, SIGSTOP);
  // None of its threads works after this wait.
  waitpid(pid_, nullptr, WUNTRACED);
}
void MemcachedProcess::resume() {
  ::kill(pid_, SIGCONT);
}

void MemcachedProcess::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void MemcachedProcess::restart() {
  kill();
  start();
}

Pool pool_of(const std::vector<Server>& servers) {
  Pool pool = servers;
  for (std::size_t i = 0; i < pool.size(); ++i) pool[i].name = "m" + std::to_string(i + 1);
  return pool;
}

}  // namespace mcds::test
