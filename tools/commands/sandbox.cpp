// Implements mcds sandbox: runs memcached processes during a command, on unix sockets or, for TLS, free
// ports.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <filesystem>

#include "common/structures/lock/lock.hpp"
#include "tools/commands/rehearsal.hpp"
#include "tools/commands/run_report.hpp"

namespace mcds {

namespace {

// Runs the small load of --load, so that monitoring commands have something to show.

constexpr std::size_t all_keys = 20'000;
constexpr std::size_t keys_per_trip = 20;
constexpr Duration between_trips = std::chrono::milliseconds(20);

struct Kind {
  const char* prefix;
  std::size_t size;  // of the smallest value
  std::int64_t ttl_s;
};
constexpr Kind kinds[] = {{"page:", 1500, 0}, {"session:", 200, 600}, {"query:", 400, 60}};

std::string load_key(std::size_t rank) {
  return kinds[rank % 3].prefix + std::to_string(rank);
}

Request load_store(std::size_t rank, WallTime now) {
  const Kind& kind = kinds[rank % 3];
  const Exptime ends =
      kind.ttl_s == 0 ? Exptime::never() : Exptime::after(std::chrono::seconds(kind.ttl_s), now);
  return Request::set(load_key(rank), std::string(kind.size + rank * 37 % 2000, 'x'), ends);
}

// Returns, for each rank, the sum of the weights up to it.
std::vector<double> zipf() {
  std::vector<double> sums;
  double sum = 0;
  for (std::size_t rank = 1; rank <= all_keys; ++rank) sums.push_back(sum += 1 / static_cast<double>(rank));
  return sums;
}

// Reads a thousand keys a second (Zipf), and stores the missing ones, until the servers are gone.
void run_sandbox_load(Session& session) {
  const std::vector<double> sums = zipf();
  Cluster& cluster = session.cluster();
  for (;;) {
    std::vector<std::size_t> ranks;
    std::vector<Request> reads, stores;
    for (std::size_t i = 0; i < keys_per_trip; ++i) {
      const double at = session.random().unit() * sums.back();
      ranks.push_back(static_cast<std::size_t>(std::ranges::lower_bound(sums, at) - sums.begin()));
      reads.push_back(Request::get(load_key(ranks.back())));
    }
    const std::vector<Reply> replies = cluster.execute(reads);
    for (std::size_t i = 0; i < replies.size(); ++i) {
      if (replies[i].outcome == Outcome::miss) stores.push_back(load_store(ranks[i], session.clock().wall()));
    }
    cluster.execute(stores);
    if (std::ranges::all_of(replies, &Reply::failed)) return;
    session.clock().sleep_for(between_trips);
  }
}

constexpr std::uint64_t max_servers = 64;
// The least memory with which memcached starts, because an item may have 1 MB.
constexpr std::uint64_t min_megabytes = 2, max_megabytes = 1 << 20;
constexpr Duration startup_limit = std::chrono::seconds(10);
constexpr Duration poll_interval = std::chrono::milliseconds(1);

struct SandboxOptions {
  std::uint64_t count = 3;
  std::uint64_t megabytes = 64;
  bool tls = false, login = false, load = false, rehearse = false;
  std::string fill;                  // the file of an item save
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
  const auto read = attempt([&] { return parse_pool("unix:" + name).front(); });
  if (read.failure() || read.value().socket_path != name)
    throw Failure(ErrorCode::system,
                  "TMPDIR has a character that a server list cannot have in a path; set it to another path");
  return name;
}

// Returns true if a server accepts connections at the socket.
bool answers(const std::string& path) {
  const Descriptor descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

void write_private(const std::string& path, const std::string& text) {
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file < 0 || !write_all(file, text))
    throw refused_by_system(ErrorCode::cannot_write, "cannot write " + path);
}

// Returns true if the process has ended. It is not reaped, so its process id stays reserved.
bool has_ended(pid_t pid) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

// Runs the servers. Ends them and removes their directory when it is destroyed.
class Sandbox {
 public:
  // `rehearsal` has the servers to start; if it is null, the sandbox starts servers of its own.
  Sandbox(std::string directory, const SandboxOptions& options, const Rehearsal* rehearsal,
          const CleanupProcess& cleanup, const HeldSignals& held)
      : directory_(std::move(directory)),
        options_(options),
        rehearsal_(rehearsal),
        cleanup_(cleanup),
        held_(held) {
    if (mkdir(directory_.c_str(), 0700) != 0)
      throw refused_by_system(ErrorCode::cannot_write, "cannot make " + directory_);
  }

  ~Sandbox() {
    if (load_ > 0) pids_.push_back(load_);
    for (const pid_t pid : pids_) ::kill(-pid, SIGKILL);
    for (const pid_t pid : pids_) {
      reap(pid);
      cleanup_.forget(pid);
    }
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  // Starts the servers. They require `login` if it is set.
  void start(Clock& clock, const std::optional<Login>& login) {
    if (login) {
      user_ = login->user;
      write_private(directory_ + "/password", login->password);
      write_private(directory_ + "/users", user_ + ':' + login->password + '\n');
    }
    servers_ = rehearsal_ != nullptr ? rehearsal_->servers() : own_servers();
    if (rehearsal_ != nullptr) rehearsal_->finish(directory_);
    if (has_tls()) make_certificate(clock);
    for (std::size_t i = 0; i < servers_.size(); ++i) pids_.push_back(start_server(i));
    wait_until_ready(clock);
    if (rehearsal_ == nullptr) let_servers_vote();
    if (options_.load) load_ = start_inside(run_sandbox_load);
  }

  const Pool& servers() const { return servers_; }

  // Returns the variables that an mcds in the sandbox needs to find its servers and log in. Variables that
  // the caller set for other servers are overridden.
  std::vector<std::pair<std::string, std::string>> environment() const {
    return {{"MCDS_SERVERS", joined(servers_, ",", list_entry)},
            {"MCDS_POOL", ""},
            {"MCDS_TLS_CA", has_tls() ? certificate() : ""},
            {"MCDS_USER", user_},
            {"MCDS_PASSWORD", ""},
            {"MCDS_PASSWORD_FILE", !user_.empty() ? directory_ + "/password" : ""},
            {"MCDS_SANDBOX_DIR", directory_},
            {"MCDS_SANDBOX_PIDS", joined(numbers_, ",", [](pid_t pid) { return std::to_string(pid); })}};
  }

 private:
  std::string path_of(std::size_t number, const char* kind) const {
    return directory_ + "/m" + std::to_string(number) + kind;
  }
  std::string socket_of(std::size_t number) const { return path_of(number, ".sock"); }
  std::string certificate() const { return directory_ + "/certificate.pem"; }
  std::string key() const { return directory_ + "/key.pem"; }
  bool has_tls() const { return std::ranges::any_of(servers_, &Server::tls); }

  // Returns the servers of the sandbox. Keys are placed by their names, so placement is the same every time.
  Pool own_servers() const {
    Pool servers(options_.count);
    for (std::size_t i = 1; i <= servers.size(); ++i) {
      Server& server = servers[i - 1];
      server.name = "m" + std::to_string(i);
      server.tls = options_.tls;
      server.host = options_.tls ? "127.0.0.1" : "";
      if (options_.tls) server.port = 0;  // the kernel's choice
      if (!options_.tls) server.socket_path = socket_of(i);
    }
    return servers;
  }

  // Reads the port from memcached's port file, `TCP INET: 37123`. Returns 0 if it does not listen yet.
  std::uint16_t port_of(std::size_t number) const {
    const std::string text = text_in(path_of(number, ".port"));
    const std::size_t at = text.find(": ");
    return at == std::string::npos ? 0 : static_cast<std::uint16_t>(std::atoi(text.c_str() + at + 2));
  }

  void wait_until_ready(Clock& clock) {
    const SteadyTime limit = clock.steady() + startup_limit;
    for (std::size_t i = 1; i <= pids_.size(); ++i) {
      Server& server = servers_[i - 1];
      while (server.is_unix() ? !answers(socket_of(i)) : port_of(i) == 0) {
        if (has_ended(pids_[i - 1]) || clock.steady() > limit) give_up("memcached", path_of(i, ".log"));
        clock.sleep_for(poll_interval);
      }
      if (server.port == 0) server.port = port_of(i);
      if (server.is_unix() && rehearsal_ != nullptr)
        rehearsal_->link_socket(server.socket_path, socket_of(i));
    }
  }

  [[noreturn]] void give_up(const std::string& program, const std::string& log) const {
    const std::string text = text_in(log);
    throw Failure(ErrorCode::unavailable,
                  program + " does not start: " +
                      (text.empty() ? "no message was printed" : text.substr(0, text.find('\n'))));
  }

  pid_t start_server(std::size_t index) {
    const Server& server = servers_[index];
    std::vector<std::string> line{"memcached", "-m", std::to_string(options_.megabytes)};
    if (geteuid() == 0) line.insert(line.end(), {"-u", "root"});
    if (!user_.empty()) line.insert(line.end(), {"-Y", directory_ + "/users"});
    if (server.is_unix()) {
      line.insert(line.end(), {"-s", socket_of(index + 1)});
    } else {
      const bool is_v6 = server.host.find(':') != std::string::npos;
      line.insert(line.end(), {"-l", is_v6 ? '[' + server.host + ']' : server.host, "-U", "0", "-p",
                               server.port == 0 ? "-1" : std::to_string(server.port)});
    }
    if (server.tls)
      line.insert(line.end(), {"-Z", "-o", "ssl_chain_cert=" + certificate() + ",ssl_key=" + key()});
    const pid_t pid = start_program(line, path_of(index + 1, ".log"), path_of(index + 1, ".port"));
    numbers_.push_back(number_);
    return pid;
  }

  // Starts a child process that does `work` in a session with this sandbox's environment.
  template <typename Work>
  pid_t start_inside(const Work& work) {
    const pid_t parent = parent_of_children();
    const pid_t pid = fork_process();
    if (pid > 0) {
      cleanup_.watch(pid);
      return pid;
    }
    detach(path_of(0, ".log").c_str(), parent);
    for (const auto& [name, value] : environment())
      value.empty() ? unsetenv(name.c_str()) : setenv(name.c_str(), value.c_str(), 1);
    try {
      Session session{GlobalOptions{}};
      session.begin();
      work(session);
    } catch (...) {
      _exit(1);  // the sandbox continues without it
    }
    _exit(0);
  }

  // Lets the servers vote on locks with copies at once: they cannot have forgotten locks.
  void let_servers_vote() {
    const pid_t pid = start_inside([](Session& session) {
      const Context context{session.cluster(), session.clock(), session.random(), session.key_prefix()};
      let_new_servers_vote(context, session.longest_lock_ttl());
    });
    reap(pid);
    cleanup_.forget(pid);
  }

  // Returns our process id as children see it: 0 if they are in another process namespace.
  pid_t parent_of_children() const { return rehearsal_ != nullptr ? 0 : getpid(); }

  // Makes a self-signed certificate, which is also the CA.
  void make_certificate(Clock& clock) {
    const std::string log = directory_ + "/openssl.log";
    std::string names = "subjectAltName=IP:127.0.0.1,DNS:localhost";
    if (rehearsal_ != nullptr) names += rehearsal_->certificate_names();
    const pid_t pid =
        start_program({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                       "-nodes", "-subj", "/CN=mcds sandbox", "-addext", names, "-days", "30", "-keyout",
                       key(), "-out", certificate()},
                      log, "");
    const SteadyTime limit = clock.steady() + startup_limit;
    while (!has_ended(pid) && clock.steady() < limit) clock.sleep_for(poll_interval);
    ::kill(-pid, SIGKILL);
    const int status = reap(pid);
    cleanup_.forget(pid);
    if (status != 0) give_up("openssl", log);
  }

  pid_t start_program(const std::vector<std::string>& line, const std::string& log,
                      const std::string& ports) {
    Pipe report = Pipe::make();
    const pid_t parent = parent_of_children();
    const pid_t pid = fork_process();
    if (pid == 0) become_server(line, log.c_str(), ports.c_str(), parent, report.write_end);
    report.write_end.reset();
    cleanup_.watch(pid);
    int error = 0;
    static_cast<void>(!read(report.read_end, &number_, sizeof number_));
    static_cast<void>(!read(report.read_end, &error, sizeof error));
    if (error == 0) return pid;
    reap(pid);
    if (error == ENOENT) {
      throw Failure(ErrorCode::unavailable,
                    line.front() + " is not installed or not in PATH; apt-get install " + line.front());
    }
    throw refused_by_system(ErrorCode::unavailable, "cannot run " + line.front(), error);
  }

  // Starts a new session, so that signals of our terminal do not reach the server.
  void detach(const char* log, pid_t parent) const {
    setsid();
    cleanup_.watch(getpid());
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    const int null = open("/dev/null", O_RDONLY);
    const int output = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(null, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
  }

  [[noreturn]] void become_server(const std::vector<std::string>& line, const char* log, const char* ports,
                                  pid_t parent, int report) {
    const pid_t number = getpid();
    static_cast<void>(!write(report, &number, sizeof number));
    detach(log, parent);
    // A server must not keep the caller's descriptors open, so only the report stays open.
    dup2(report, STDERR_FILENO + 1);
    fcntl(STDERR_FILENO + 1, F_SETFD, FD_CLOEXEC);
    close_range(STDERR_FILENO + 2, UINT_MAX, 0);
    pthread_sigmask(SIG_SETMASK, &held_.before(), nullptr);
    setenv("MEMCACHED_PORT_FILENAME", ports, 1);
    const int error = execute(line);
    static_cast<void>(!write(STDERR_FILENO + 1, &error, sizeof error));
    _exit(127);
  }

  std::string directory_;
  const SandboxOptions& options_;
  const Rehearsal* rehearsal_;
  const CleanupProcess& cleanup_;
  const HeldSignals& held_;
  Pool servers_;
  std::string user_;
  std::vector<pid_t> pids_, numbers_;  // of the servers: as we see them, and as they see themselves
  pid_t number_ = 0;                   // as the program started last sees itself
  pid_t load_ = 0;
};

void check(const SandboxOptions& options, const GlobalOptions& globals) {
  if (options.count == 0 || options.count > max_servers)
    throw InvalidInput("-N: give a number of servers from 1 to 64");
  if (options.megabytes < min_megabytes || options.megabytes > max_megabytes) {
    throw InvalidInput("-m: give 2 to 1048576 megabytes for each server");
  }
  if (options.rehearse && (options.tls || options.count != SandboxOptions().count))
    throw InvalidInput(
        "--rehearse cannot be combined with -N or --tls: it takes the servers and tls:// from the list");
  if (options.rehearse) return;
  if (globals.servers || globals.servers_from || globals.pool)
    throw InvalidInput(
        "a sandbox starts its own servers; omit the list and use -N for their number, or add --rehearse");
  if (globals.profile || globals.key_prefix || globals.copies)
    throw InvalidInput("give --as, --namespace and --copies to the commands that run in the sandbox");
}

std::vector<std::string> command_of(const SandboxOptions& options) {
  std::vector<std::string> command = options.words;
  command.insert(command.end(), options.command.begin(), options.command.end());
  if (!command.empty()) return command;
  return {environment("SHELL").value_or("/bin/sh")};
}

// Returns the login that the list of this run has.
std::optional<Login> login_of_list(Session& session) {
  std::optional<Login> login;
  for (const Server& server : session.pool().pool) {
    if (!login) login = credentials_of(server).login;
  }
  if (login && login->form != Login::Form::ascii)
    throw InvalidInput("--rehearse: its servers log in as memcached -Y does; set auth to ascii, or omit it");
  return login;
}

// Puts this program first in PATH.
void add_path(ChildOptions& child, const std::string& program) {
  child.environment.emplace_back("PATH", std::filesystem::path(program).parent_path().string() + ":" +
                                             environment("PATH").value_or("/bin"));
}

// Shows the sandbox in the prompt of $SHELL; in bash, which reads it from a file, when it is first shown.
void add_prompt(ChildOptions& child, const std::string& where) {
  if (std::filesystem::path(child.command.front()).filename() == "bash")
    child.environment.emplace_back("PROMPT_COMMAND", "PS1='(" + where + ") '$PS1; unset PROMPT_COMMAND");
  else
    child.environment.emplace_back("PS1", "(" + where + ") " + environment("PS1").value_or("$ "));
}

// Loads the file with a run of `program`, which reads a list from a file again: it may have more than
// servers.
ExitStatus fill(Session& session, const std::string& program, const std::string& file, ChildOptions child,
                const CleanupProcess& cleanup, const HeldSignals& held) {
  child.command = {program, "--quiet", "item", "load", file};
  if (const auto& deadline = session.options().deadline)
    child.command.insert(child.command.begin() + 1, {"--deadline", format_duration(*deadline)});
  if (session.settings().servers_from() && !session.settings().asks_network())
    child.command.insert(child.command.begin() + 1, {"--servers-from", *session.settings().servers_from()});
  return static_cast<ExitStatus>(run_child(child, session.clock(), cleanup, held).exit_code());
}

ExitStatus run_sandbox(Session& session, const SandboxOptions& options) {
  check(options, session.options());
  const std::string directory = new_directory_name(session.random());
  std::error_code ignored;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const bool shell = options.words.empty() && options.command.empty() && isatty(STDIN_FILENO) != 0;
  std::optional<Login> login;
  std::optional<Rehearsal> rehearsal;
  if (options.rehearse) {
    login = login_of_list(session);
    rehearsal.emplace(session.pool().pool);
  }
  // Servers with TLS get a login because other users of this machine can reach their ports.
  if (!login && (options.login || options.tls))
    login = Login{.user = "sandbox", .password = session.random().token()};
  const CleanupProcess cleanup(directory);
  const HeldSignals held;
  Sandbox sandbox(directory, options, rehearsal ? &*rehearsal : nullptr, cleanup, held);
  sandbox.start(session.clock(), login);
  ChildOptions child{.command = command_of(options), .environment = sandbox.environment()};
  if (options.rehearse)
    child.environment.insert(child.environment.end(),
                             {{"MCDS_SERVERS", joined(session.pool().pool, ",", list_entry)},
                              {"MCDS_PROFILE", session.profile_name()},
                              {"MCDS_NAMESPACE", session.key_prefix()}});
  add_path(child, program);
  if (shell) add_prompt(child, options.rehearse ? "rehearsal" : "mcds sandbox");
  const ChildTime its_own(session);
  if (!options.fill.empty()) {
    const ExitStatus filled = fill(session, program, options.fill, child, cleanup, held);
    if (filled != ExitStatus::ok) return filled;
  }
  if (shell)
    session.output().note("mcds: this shell has " + std::to_string(sandbox.servers().size()) +
                          " memcached server(s) of its own; exit to leave it and remove them");
  const ChildResult result = run_child(child, session.clock(), cleanup, held);
  report_failure(session.output(), result);
  return static_cast<ExitStatus>(result.exit_code());
}

}  // namespace

void declare_sandbox(Command& command) {
  command.exits(
      "69 memcached or openssl is not installed or does not start|71 operating system error; --rehearse: "
      "namespaces are forbidden here|73 the directory cannot be created|126|127");
  auto options = std::make_shared<SandboxOptions>();
  command.itself()
      .example("mcds sandbox")
      .example("mcds sandbox -N 5 -- tests/my-test.sh")
      .example("mcds sandbox --tls --auth -- mcds servers")
      .example("mcds sandbox --load -- mcds item hot --for 1s -n 5 -o text")
      .example("mcds -s 10.0.0.1,10.0.0.2 sandbox --rehearse -- tests/my-test.sh")
      .example("mcds sandbox -- sh -c 'mcds counter incr hits; mcds servers'")
      .optional_argument("CMD", "the command to run; default $SHELL", dash(&options->words))
      .option("-N,--count", "N", "number of servers, 1 to 64; default 3", &options->count)
      .option("-m,--memory", "MB", "memory of each server in megabytes, at least 2; default 64",
              &options->megabytes)
      .flag("--tls",
            "start servers with TLS and a login on local TCP ports, with a certificate for this sandbox; "
            "needs openssl",
            options->tls)
      .flag("--auth", "start servers that require a login, with a password for this sandbox", options->login)
      .flag("--rehearse", "start the servers of the list at their own addresses, in a private network",
            options->rehearse)
      .option("--fill", "FILE",
              "first load a file of item save, each key where the profile places it; if that fails, the "
              "command is not run",
              &options->fill)
      .flag("--load",
            "read and write some keys all the time, so that item hot and servers --every show something",
            options->load)
      .child(options->command, false)
      .action(run_sandbox, options);
}

}  // namespace mcds
