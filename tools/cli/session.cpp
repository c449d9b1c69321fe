#include "tools/cli/session.hpp"

#include <unistd.h>

#include <csignal>

#include "common/base/bytes.hpp"
#include "common/base/units.hpp"
#include "common/cluster/transport.hpp"
#include "common/primitives/key_names.hpp"
#include "tools/cli/servers_from.hpp"

namespace mcds {

namespace {

using Text = std::optional<std::string>;

OutputMode output_mode(const Text& word) {
  if (word == "value") return OutputMode::value;
  if (word == "openmetrics") return OutputMode::openmetrics;
  return word == "text" ? OutputMode::text : OutputMode::json;
}

// Returns the word if stdout is a terminal. Environment and configuration do not apply to pipes and files,
// whose output is the same everywhere.
Text terminal_output(const Text& word) {
  return isatty(STDOUT_FILENO) != 0 ? word : std::nullopt;
}

Duration positive(Duration duration, const char* what) {
  if (duration <= Duration::zero()) throw InvalidInput(std::string(what) + " must be longer than 0");
  return duration;
}

// Formats `mcds: 10.0.0.1:11211 ma counter:hits stored 120 us, meta, connection reused`.
std::string trace_line(const TracedRequest& traced, bool binary) {
  const Reply& reply = traced.reply;
  std::string line = "mcds: " + std::string(traced.address) + ' ' +
                     std::string(wire_name(traced.request.op, reply.protocol)) + ' ' +
                     (traced.request.key.empty() ? "-" : traced.request.key) + ' ' +
                     std::string(word_of(reply));
  if (reply.failure) line += " (" + reply.failure->message + ')';
  line += ' ' + std::to_string(traced.elapsed.count()) + " us";
  if (reply.protocol == Reply::Protocol::classic) return line + (binary ? ", binary" : ", classic");
  if (reply.protocol == Reply::Protocol::none) return line;
  return line + (reply.opened ? ", meta, connection opened" : ", meta, connection reused");
}

// The longest time until a signal is noticed.
constexpr Duration max_sleep = std::chrono::milliseconds(100);

// A clock that does not sleep beyond the deadline.
class RunClock final : public Clock {
 public:
  explicit RunClock(const RunLimits& limits) : limits_(limits) {}
  WallTime wall() const override { return clock_.wall(); }
  SteadyTime steady() const override { return clock_.steady(); }
  void sleep_for(Duration duration) override {
    const SteadyTime now = steady();
    for (Duration left = duration; left > Duration::zero() && !limits_.over(steady());
         left = duration - (steady() - now))
      clock_.sleep_for(std::min({left, max_sleep, limits_.deadline() - steady()}));
    limits_.check(steady());
  }

 private:
  const RunLimits& limits_;
  SystemClock clock_;
};

// Notes in `changed` that requests that change something were sent.
class ChangeWatch final : public Decorator {
 public:
  ChangeWatch(std::unique_ptr<Cluster> inner, std::shared_ptr<std::atomic<bool>> changed)
      : Decorator(std::move(inner)), changed_(std::move(changed)) {}
  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override {
    note(batch);
    return inner().execute(batch);
  }
  std::unique_ptr<Pending> begin(std::vector<Request> batch) override {
    note(batch);
    return inner().begin(std::move(batch));
  }

 private:
  void note(std::span<const Request> batch) {
    if (!*changed_ && !std::ranges::all_of(batch, changes_nothing, &Request::op)) *changed_ = true;
  }
  std::shared_ptr<std::atomic<bool>> changed_;
};

}  // namespace

Session::Session(GlobalOptions options)
    : options_(std::move(options)),
      output_(output_mode(options_.output ? options_.output : terminal_output(environment("MCDS_OUTPUT")))),
      clock_(std::make_unique<RunClock>(*limits_)) {}

// Selects the output mode. The configuration is read for this even if nothing else needs it.
void Session::resolve_output() {
  const Text word = environment("MCDS_OUTPUT");
  if (word && *word != "json" && *word != "value" && *word != "text")
    throw InvalidInput("MCDS_OUTPUT: write json, value or text");
  if (!options_.output && !word && isatty(STDOUT_FILENO) != 0)
    output_.use_mode(output_mode(config().text("", "output")));
}

void Session::begin() {
  if (options_.quiet) output_.be_quiet();
  if (options_.null) output_.end_lines_with('\0');
  if (options_.deadline) limits_->set_deadline(clock().steady() + positive(*options_.deadline, "--deadline"));
  bound_input(limits_);
  output_.bound(limits_, changed_);
  resolve_output();
  if (options_.errors) output_.keep_errors(*options_.errors);
}

void Session::end_by_signals() {
  static std::shared_ptr<RunLimits> limits;  // of the one session that has such a command
  if (limits == limits_) return;
  limits = limits_;
  limits->expect_signals();
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    if (sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    // The first signal may arrive twice: timeout(1) and a terminal both send it to us and to our group.
    action.sa_handler = [](int signal) {
      static SteadyTime first;
      const SteadyTime now = SystemClock().steady();
      if (limits->signal() == 0) first = now;
      if (now - first < std::chrono::seconds(1)) return limits->interrupt(signal);
      std::signal(signal, SIG_DFL);
      std::raise(signal);
    };
    sigaction(number, &action, nullptr);
  }
}

const Config& Session::config() {
  if (!config_) config_ = load_config(options_.config);
  return *config_;
}

ConnectOptions Session::connect_options() {
  ConnectOptions result;
  // Text of an option would be rounded.
  const auto duration = [&](const std::optional<Duration>& option, const SettingName& name) {
    return option ? positive(*option, name.setting.option) : parse_duration(*settings().text(name), "");
  };
  result.timeout = duration(options_.timeout, "timeout");
  result.connect_timeout = duration(options_.connect_timeout, "connect_timeout");
  const std::string protocol = *settings().text("protocol");
  if (protocol == "classic") result.protocol = ConnectOptions::Protocol::classic;
  if (protocol == "meta") result.protocol = ConnectOptions::Protocol::meta;
  if (protocol == "binary") result.protocol = ConnectOptions::Protocol::binary;
  result.run = limits_;
  if (options_.verbose) {
    const bool binary = protocol == "binary";
    result.trace = [this, binary](const TracedRequest& traced) { output_.note(trace_line(traced, binary)); };
  }
  return result;
}

const Settings& Session::settings() {
  if (!settings_) settings_.emplace(options_, config());
  return *settings_;
}

// Returns the list. Its credentials are chosen at the same time.
const PoolFile& Session::pool() {
  if (pool_) return *pool_;
  const Settings& from = settings();
  Access access = resolve_credentials(from, from.list(), output_);
  expect_trusted(config(), access);
  FoundServers servers;
  if (from.servers_from()) {
    servers = find_servers(*from.servers_from(), access, connect_options(), clock());
    access.tls_for_all = access.tls_for_all || servers.tls;
    log_in_as_listed(access, servers.file);
    if (access.credentials.tls.name.empty()) access.credentials.tls.name = servers.certificate_name;
  } else {
    if (from.list() == Origin::builtin)
      output_.hint_at_servers(" No servers were given: use --servers or MCDS_SERVERS");
    servers.file.pool = parse_pool(*from.text("servers"));
  }
  Pool& pool = servers.file.pool;
  give(pool, access, {.discovered = servers.discovered, .main_list_has_tls = main_list_has_tls_});
  const Text others = from.said_by(Origin::environment, "servers");
  if (from.list() == Origin::options && others) {
    Pool theirs = parse_pool(*others);
    give(theirs, resolve_credentials(from, Origin::environment, output_), {});
    share_credentials(theirs);
  }
  take_over(pool, known_);
  output_.call_servers(pool);
  return pool_.emplace(std::move(servers.file));
}

PlacementOptions Session::placement_options() {
  const std::string& prefix = key_prefix().empty() ? pool().key_prefix : key_prefix();
  const auto& login = credentials_of(pool().pool.front()).login;
  return {.resolver = system_resolver(limits_),
          .key_prefix = prefix,
          .hash_tag = pool().hash_tag,
          .password = login ? login->password : "",
          .routes = pool().routes,
          .operation = operation_,
          .asked = pool().asked};
}

std::string Session::profile_name() {
  const std::string& from_file = pool().profile;
  return settings().text("profile").value_or(from_file.empty() ? "ketama" : from_file);
}

const std::shared_ptr<const Placement>& Session::placement() {
  if (!placement_) placement_ = placement_as(profile_name());
  return placement_;
}

const std::string& Session::key_prefix() {
  if (!key_prefix_) {
    key_prefix_ = *settings().text("namespace");
    check_key_prefix(*key_prefix_);
  }
  return *key_prefix_;
}

std::unique_ptr<Cluster> Session::connect_with(std::shared_ptr<const Placement> placement,
                                               const ConnectOptions& options) const {
  return std::make_unique<ChangeWatch>(connect(std::move(placement), options), changed_);
}

Cluster& Session::cluster() {
  if (!cluster_) cluster_ = connect_to(placement());
  return *cluster_;
}

// Returns the number of servers to which the pool's routes write every key. Data stored on fewer servers
// would be missed by readers of the others.
std::uint64_t Session::copies_of_pool() {
  if (options_.profile || pool().routes == nullptr || !placement()->replicates()) return 1;
  const Owners owners = placement()->owners_of(key_prefix() + "key");
  if (owners.policy != Policy::all) return 1;
  std::set<std::size_t> servers;
  for (const Owner& owner : owners.list) {
    if (owner.must) servers.insert(owner.server);
  }
  return std::max<std::uint64_t>(servers.size(), 1);
}

std::size_t Session::copies() {
  if (copies_) return *copies_;
  const Text text = settings().text("copies");
  const std::uint64_t copies = text ? parse_u64(*text).value_or(0) : copies_of_pool();
  if (copies == 0) throw InvalidInput("--copies must be at least 1");
  const std::size_t servers = without_repeats(pool().pool).size();
  if (copies > servers) {
    throw InvalidInput("--copies " + std::to_string(copies) + " exceeds the " + std::to_string(servers) +
                       " servers of the pool; use fewer copies");
  }
  copies_ = copies;
  return copies;
}

Duration Session::longest_lock_ttl() {
  return parse_duration(*settings().text("longest_lock_ttl"), "");
}

Context Session::context_with_copies() {
  const std::size_t number = copies();
  if (!watch_) watch_.emplace(has_single_copy(number) ? cluster() : distinct_servers(), key_prefix());
  return {*watch_, *clock_, random_, key_prefix(), number};
}

bool Session::report_lost() {
  if (!has_lost()) return false;
  std::set<std::string> names;
  for (const std::string& key : watch_->lost()) {
    const auto ours = structure_in(key, key_prefix());
    names.insert(ours ? std::string(ours->name.structure) + ' ' + std::string(ours->name.name) : key);
  }
  output_.warning(
      *names.begin() +
      (names.size() > 1 ? " and " + std::to_string(names.size() - 1) + " more were" : " was") +
      " lost or dropped while this command ran, and created again; changes acknowledged earlier may be gone");
  return true;
}

Cluster& Session::distinct_servers() {
  if (!several_) {
    ConnectOptions options = connect_options();
    const auto open = [this, options](const std::vector<Request>& requests) {
      return connect(placement(), options)->execute(requests);
    };
    options.peers = std::make_shared<Peers>();
    several_ = std::make_unique<DistinctServers>(connect_with(placement(), options), options.peers, open);
  }
  return *several_;
}

const std::string& Session::server_address(std::size_t server) {
  if (addresses_.empty()) {
    for (const Server& one : without_repeats(pool().pool)) addresses_.push_back(one.address());
  }
  return addresses_.at(server);
}

const std::string& Session::server_field(std::size_t server) {
  auto& fields = server_fields_;
  if (fields.size() <= server) fields.resize(server + 1);
  if (fields[server].empty()) {
    const std::string object = JsonObject("server", server_address(server)).text();
    fields[server] = object.substr(1, object.size() - 2);
  }
  return fields[server];
}

ChildTime::ChildTime(Session& session)
    : session_(session), deadline_(session.deadline()), started_(session.clock().steady()) {
  session_.set_deadline(SteadyTime::max());
}

ChildTime::~ChildTime() {
  const bool bounded = deadline_ != SteadyTime::max();
  if (bounded) session_.set_deadline(deadline_ + (session_.clock().steady() - started_));
}

std::vector<Reply> CreationWatch::execute(std::span<const Request> batch) {
  std::vector<Reply> replies = inner().execute(batch);
  note(batch, replies);
  return replies;
}

std::unique_ptr<Pending> CreationWatch::begin(std::vector<Request> batch) {
  return settled_later(
      inner().begin(std::move(batch)),
      [this](std::span<const Request> sent, std::vector<Reply>& replies) { note(sent, replies); });
}

void CreationWatch::note(std::span<const Request> batch, std::span<const Reply> replies) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Request& request = batch[i];
    const bool appends = request.op == Op::append || request.op == Op::append_or_create;
    if (replies[i].outcome != Outcome::stored) continue;
    const bool creates = (replies[i].created && (appends || request.op == Op::incr_or_create)) ||
                         (request.op == Op::add && is_counter(request));
    if (!creates && !appends) continue;
    const std::size_t hash = std::hash<std::string>()(request.key) + replies[i].server;
    const bool is_new = known_.size() < max_known ? known_.insert(hash).second : !known_.contains(hash);
    if (creates && !is_new && is_judged(request)) lost_.insert(request.key);
  }
}

// Returns true if the key is a counter's. Elements and claims are added too, but may be removed at any time.
bool CreationWatch::is_counter(const Request& request) const {
  const auto ours = structure_in(request.key, key_prefix_);
  return ours && ours->name.structure == "counter";
}

bool CreationWatch::is_judged(const Request& request) const {
  const auto ours = structure_in(request.key, key_prefix_);
  const bool is_counter = !ours || ours->name.structure == "counter";
  if (is_counter && !(request.exptime == Exptime::never())) return false;
  return !ours || !(ours->name.in_several() || ours->name.structure == "lock");
}

}  // namespace mcds
