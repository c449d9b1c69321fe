// Implements mcds item keep: saves what a server holds, runs a command that restarts it, and loads it again.
#include <unistd.h>

#include "tools/commands/item/saving.hpp"
#include "tools/commands/run_report.hpp"

namespace mcds {

namespace {

constexpr Duration usual_ttl = std::chrono::minutes(10);
constexpr Duration usual_wait = std::chrono::minutes(1);
constexpr Duration poll_interval = std::chrono::milliseconds(100);
// The command may end before the server that it stops has ended.
constexpr Duration may_linger = std::chrono::seconds(2);

// Returns the folder for files that must outlive this process and that only this user may read. It is not the
// temporary folder, which a restart may empty.
std::string state_folder() {
  std::string folder = users_file("XDG_STATE_HOME", "/.local/state", "/mcds");
  if (folder.empty() || folder.starts_with("//")) folder = "/var/lib/mcds";  // a service's home may be /
  for (std::size_t end = 0; end != std::string::npos;) {
    end = folder.find('/', end + 1);
    static_cast<void>(mkdir(folder.substr(0, end).c_str(), 0700));  // opening the file reports what is wrong
  }
  return folder;
}

// Identifies a server start.
struct Process {
  ServerStart start{};
  std::uint64_t items = 0, flushes = 0;
  static std::optional<Process> of(const Reply& statistics) {
    if (statistics.failed()) return std::nullopt;
    const auto start = ServerStart::of(statistics.value);
    const auto items = statistic_number(statistics.value, "curr_items");
    if (!start || !items) return std::nullopt;
    return Process{*start, *items, statistic_number(statistics.value, "cmd_flush").value_or(0)};
  }
  // Returns true if this is the same server start. If the restart took place within a second of the start
  // before, only the lower number of items shows it.
  bool is(const Process& before) const {
    return start.is(before.start) && (start.start <= before.start.start || items >= before.items);
  }
};

class ItemKeeper {
 public:
  ItemKeeper(Session& session, const ItemOptions& options)
      : session_(session),
        options_(options),
        on_(*server_of(session, options)),
        file_(options.file.empty() ? state_folder() + "/kept-" + session.random().token() + ".saved"
                                   : options.file) {
    load_.selection.key_prefix = session.key_prefix();
    load_.on = on_;
    load_.while_room = true;
    if (options.rate) load_.rate = rate_of(*options.rate);
    if (!options.full_ttl)
      load_.max_ttl = std::chrono::ceil<std::chrono::seconds>(options.max_ttl.value_or(usual_ttl));
    line_.bytes("server", session.server_address(on_));
  }

  ExitStatus run() {
    save();
    const SteadyTime stopped = session_.clock().steady();
    session_.end_by_signals();  // not while the command runs: then signals are passed on to it
    const ChildResult child = run_alone(session_, {.command = options_.command, .may_go_on = true});
    if (child.exit_code() != 0) return report_kept(child);
    try {
      return restore(stopped);
    } catch (const Failure& failure) {
      return report_left(failure);
    }
  }

 private:
  // Reports a failure of the server, with the command that loads what is saved. `why` ends before the file's
  // name.
  ExitStatus report_saved(ErrorCode code, const std::string& why) {
    session_.output().error(Failure(code, why + file_ + ": " + load_command(), session_.server_address(on_)));
    return status_of(code);
  }

  ExitStatus report_left(const Failure& failure) {
    return report_saved(failure.code(), std::string(failure.what()) + "; the items not loaded are in ");
  }

  ExitStatus restore(SteadyTime stopped) {
    const std::optional<Process> after = wait();
    if (!after)
      return report_saved(ErrorCode::unavailable, "the server does not answer " +
                                                      format_duration(options_.wait.value_or(usual_wait)) +
                                                      " after the command ended; its saved items are in ");
    const bool restarted = !after->is(before_);
    line_.boolean("restarted", restarted);
    line_.raw("away_s",
              format_fixed(std::chrono::duration<double>(session_.clock().steady() - stopped).count(), 3));
    return load(restarted || after->flushes != before_.flushes);
  }

  void save() {
    const auto before = Process::of(session_.cluster().execute(Request::stats(on_)));
    const auto refuse = [&](const std::string& why) {
      throw Failure(ErrorCode::unavailable, "nothing was done: " + why, session_.server_address(on_));
    };
    if (!before) refuse("the server does not answer, or reports no statistics");
    before_ = *before;
    SavingFile file(file_);
    const SaveDone done = save_items(session_, options_, &file);
    const SavedServer all = done.report.sum();
    if (!done.report.dumps[on_].complete) refuse("not all keys of the server could be listed");
    if (all.failed != 0) refuse(std::to_string(all.failed) + " items could not be saved");
    file.keep();
    line_.number("before", before_.items).number("saved", all.saved).number("torn", done.report.torn.size());
    add_skipped(line_, done.report.skipped);
    report_lacking(done.report);
  }

  // Reports what the file lacks and the server will lose. Locks and votes must be lost with the server.
  void report_lacking(const SaveReport& report) {
    std::string lacking;
    const auto add = [&](std::uint64_t count, const std::string& what) {
      append_all(lacking, {lacking.empty() ? "" : ", ", std::to_string(count), " ", what});
    };
    for (const auto& [why, count] : report.skipped) {
      if (why != "locks" && why != "votes") add(count, "keys (" + why + ")");
    }
    if (report.unselected != 0) add(report.unselected, "keys (outside the namespace)");
    if (!report.torn.empty()) add(report.torn.size(), "structures that changed while they were read");
    lacks_ = !lacking.empty();
    if (lacks_) session_.output().warning("not saved in " + file_ + ", but on the server: " + lacking);
  }

  ExitStatus report_kept(const ChildResult& child) {
    session_.output().error(
        Failure(child.message.empty() ? ErrorCode::system : ErrorCode::usage,
                (child.message.empty() ? "the command failed with " + std::to_string(child.exit_code())
                                       : child.message) +
                    "; nothing was loaded, and the saved items are in " + file_ + ": " + load_command()));
    return static_cast<ExitStatus>(child.exit_code());
  }

  // Waits until the server answers again. Returns nullopt if it does not in time.
  std::optional<Process> wait() {
    session_.try_always();
    const SteadyTime began = session_.clock().steady();
    for (;;) {
      // Each attempt opens a new connection: an old one may still lead to the old process.
      cluster_ = session_.connect_to(session_.placement());
      const auto now = Process::of(cluster_->execute(Request::stats(on_)));
      const Duration waited = session_.clock().steady() - began;
      if (now && (!now->is(before_) || waited > may_linger)) return now;
      if (!now && waited > options_.wait.value_or(usual_wait)) return std::nullopt;
      session_.clock().sleep_for(poll_interval);
    }
  }

  ExitStatus load(bool lost) {
    LoadDone done;
    if (lost) {
      const auto loaded = attempt([&] { load_items(session_, *cluster_, load_, file_, done); });
      if (const auto& failure = loaded.failure()) return report_left(*failure);
    } else {
      done.status = ExitStatus::problem;
      session_.output().warning(
          "the server was not restarted, so nothing was loaded; if it is restarted later: " + load_command());
    }
    const LoadedServer all = done.report.sum();
    line_.number("loaded", all.loaded).number("written_meanwhile", all.there);
    add_structures(line_, done.report);
    line_.number("expired", done.report.expired).number("failed", all.failed + all.unknown);
    line_.number("no_room", done.report.no_room);
    const auto after = Process::of(cluster_->execute(Request::stats(on_)));
    line_.raw("after", after ? std::to_string(after->items) : "null");
    if (done.report.no_room != 0)
      session_.output().warning(std::to_string(done.report.no_room) + " items had no room; they are in " +
                                file_ + ": " + load_command());
    report_there(done.report.other_structures);
    if (lacks_) done.status = worse(done.status, ExitStatus::problem);
    const bool kept = !options_.file.empty() || done.status != ExitStatus::ok || done.report.no_room != 0;
    if (kept) line_.bytes("file", file_);
    session_.output().answer(line_, std::to_string(all.loaded));
    if (!kept) unlink(file_.c_str());
    return done.status;
  }

  void report_there(const std::set<std::string>& structures) {
    constexpr std::size_t max_named = 20;
    if (structures.empty()) return;
    const auto count = static_cast<std::ptrdiff_t>(std::min(structures.size(), max_named));
    const auto end = std::next(structures.begin(), count);
    std::string names = joined(std::ranges::subrange(structures.begin(), end), ", ");
    if (structures.size() > max_named) names += ", ...";
    session_.output().warning(std::to_string(structures.size()) +
                              " structures were written to before they could be loaded and were left as they "
                              "are; their saved contents are in " +
                              file_ + ": " + names);
  }

  std::string load_command() const {
    const std::string bound =
        load_.max_ttl ? " --max-ttl " + std::to_string(load_.max_ttl->count()) + 's' : std::string();
    const std::string file = visible(file_) == file_ ? shell_path(file_) : "FILE";  // not all can be shown
    return printed_command_on(session_, session_.placement()->pool()[on_], "item load " + file + bound);
  }

  Session& session_;
  const ItemOptions& options_;
  const std::size_t on_;
  const std::string file_;
  LoadOptions load_;
  Process before_;
  bool lacks_ = false;  // the file lacks something that is lost with the server
  std::unique_ptr<Cluster> cluster_;
  JsonObject line_;
};

}  // namespace

ExitStatus item_keep(Session& session, const ItemOptions& options) {
  if (!options.on) throw InvalidInput("--on: name the server that the command restarts");
  if (options.full_ttl && options.max_ttl) throw InvalidInput("--max-ttl and --full-ttl cannot be combined");
  if (options.max_ttl && *options.max_ttl <= Duration::zero())
    throw InvalidInput("--max-ttl must be longer than 0");
  return ItemKeeper(session, options).run();
}

}  // namespace mcds
