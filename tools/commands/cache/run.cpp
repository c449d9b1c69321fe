// Implements mcds cache run: replays the output of a command, or runs the command and stores its output.
#include <poll.h>
#include <unistd.h>

#include <array>
#include <bitset>

#include "tools/commands/cache/options.hpp"
#include "tools/commands/lock/lease_keeper.hpp"
#include "tools/commands/run_report.hpp"

namespace mcds {

namespace {

using ExitCodes = std::bitset<256>;

ExitCodes exit_codes(std::string_view list) {
  ExitCodes codes;
  for (const std::string_view range : split(list, ',')) {
    const std::size_t dash = range.find('-');
    const auto first = parse_u64(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_u64(range.substr(dash + 1));
    if (!first || !last || *last > 255 || *first > *last) {
      throw InvalidInput("--cache-codes: '" + std::string(range) +
                         "' is not a list of exit codes, such as 0,3-5");
    }
    for (std::uint64_t code = *first; code <= *last; ++code) codes.set(code);
  }
  return codes;
}

CacheTerms terms_of(const CacheOptions& options) {
  CacheTerms terms = options.terms;
  terms.tags = distinct_tags(options);
  terms.wait = options.wait == "inf" ? Duration::max() : parse_duration(options.wait, "--wait");
  if (options.on_busy == "fail") terms.wait = Duration::zero();
  terms.holder = holder_here();
  return terms;
}

// Returns the size of the largest output to store, which is a little less than an item.
std::size_t most_bytes(const CacheOptions& options) {
  const std::uint64_t bytes = parse_size(options.max_bytes, "--max-bytes");
  if (bytes > 1 << 20) throw InvalidInput("--max-bytes: an entry is one item of at most 1M; give 1M or less");
  return std::min<std::uint64_t>(bytes, max_cached_size);
}

// Returns true if the command can run without the cache.
bool fails_open(const Failure& failure) {
  return may_pass(failure.code()) || failure.code() == ErrorCode::access_denied ||
         failure.code() == ErrorCode::bad_data;
}

// Returns the reason why the output is not stored.
const char* reason_of(const Failure& failure) {
  if (failure.code() == ErrorCode::bad_data) return "bad_data";
  if (failure.code() != ErrorCode::refused) return "down";
  return std::string_view(failure.what()).find("too large") == std::string_view::npos ? "refused"
                                                                                      : "too_large";
}

// Passes a child's output on as it arrives, and keeps a copy.
//
// It never blocks while the child runs: a slow reader of ours slows the child down, as it would without us.
// If stdout is closed or full, the child continues as long as the copy is useful.
class OutputTee final : public ChildOutput {
 public:
  // Keeps at most `max_kept` bytes of both streams together.
  explicit OutputTee(std::size_t max_kept) : max_kept_(max_kept) {}

  bool take(int stream, std::string_view bytes) override {
    Stream& to = of(stream);
    keep(to, bytes);
    if (to.error != 0) return !overflow_;
    to.pending.erase(0, to.passed);
    to.passed = 0;
    to.pending += bytes;
    proceed(stream);
    return true;
  }

  int waits_for(int stream) const override {
    const Stream& to = streams_[stream == 1 ? 0 : 1];
    return to.error == 0 && to.passed < to.pending.size() ? stream : -1;
  }

  void proceed(int stream) override {
    Stream& to = of(stream);
    while (waits_for(stream) >= 0 && writable(stream, 0)) {
      const std::size_t size = std::min(to.pending.size() - to.passed, safe_write);
      const ssize_t written = write(stream, to.pending.data() + to.passed, size);
      if (written >= 0) to.passed += static_cast<std::size_t>(written);
      if (written < 0 && errno == EAGAIN) return;
      if (written < 0 && errno != EINTR) to.error = errno;
    }
  }

  // Returns true if the copies are complete.
  bool complete() const { return !overflow_; }
  // Returns the copy of stream 1 or 2.
  std::string& kept(int stream) { return of(stream).kept; }

  // Passes on the rest after the child has ended. Throws ClosedPipe or Failure(output_failed) for stdout as
  // Output does, even if the failure happened while the child ran.
  void finish() {
    for (const int stream : {2, 1}) {
      while (waits_for(stream) >= 0) {
        writable(stream, -1);
        proceed(stream);
      }
    }
    if (of(1).error != 0) throw_output_failed(of(1).error);
  }

 private:
  struct Stream {
    std::string pending;  // bytes from `passed` on are not passed on yet
    std::size_t passed = 0;
    std::string kept;
    int error = 0;  // errno of our stream: nothing more can be passed on
  };
  // POLLOUT guarantees that a write of this size does not block.
  static constexpr std::size_t safe_write = PIPE_BUF;

  static bool writable(int descriptor, int patience) {
    pollfd ready{descriptor, POLLOUT, 0};
    return poll(&ready, 1, patience) > 0;
  }

  Stream& of(int stream) { return streams_[stream == 1 ? 0 : 1]; }

  void keep(Stream& stream, std::string_view bytes) {
    if (!overflow_ && streams_[0].kept.size() + streams_[1].kept.size() + bytes.size() <= max_kept_) {
      stream.kept += bytes;
      return;
    }
    overflow_ = true;
    for (Stream& one : streams_) std::string().swap(one.kept);
  }

  std::size_t max_kept_;
  bool overflow_ = false;
  std::array<Stream, 2> streams_;
};

class CachedRun {
 public:
  CachedRun(Session& session, const CacheOptions& options)
      : session_(session),
        options_(options),
        codes_(exit_codes(options.cache_codes)),
        max_bytes_(most_bytes(options)),
        terms_(terms_of(options)),
        report_(report_in(options.report)),
        key_(cache_key(options)),
        cache_(context_with_one_copy(session, "--copies", "a cache entry"), key_.name) {
    record_.bytes("cache", key_.name);
  }

  ExitStatus run() {
    auto answer = ask();
    if (!answer) return finish(run_alone(session_, child_options()));
    switch (answer->kind) {
      case Cache::Answer::Kind::fresh: return replay(*answer->record, "fresh");
      case Cache::Answer::Kind::rebuild: return rebuild(*answer->rebuild);
      case Cache::Answer::Kind::busy: break;
    }
    if (options_.on_busy == "run") return run_plainly("busy");
    const bool may_be_stale = options_.on_busy == "stale" && options_.terms.stale > Duration::zero();
    if (answer->record && may_be_stale) return replay(*answer->record, "stale");
    return busy(answer->holder);
  }

 private:
  // Reads the entry. Returns nullopt if the command must run without the cache.
  std::optional<Cache::Answer> ask() {
    try {
      constexpr Duration to_answer = std::chrono::milliseconds(100);  // the old output, before the deadline
      terms_.wait = std::min(terms_.wait, std::max(session_.time_left() - to_answer, Duration::zero()));
      const Waiting waiting(session_, "waiting for the rebuild");
      return cache_.ask(terms_);
    } catch (const Failure& failure) {
      const bool is_rebuilt = cache_.has_waited() && session_.is_too_late();
      if (!fails_open(failure) || options_.if_down == "fail" || is_rebuilt) throw;
      session_.output().warning(std::string("running without the cache: ") + failure.what());
      not_stored(reason_of(failure));
      return std::nullopt;
    }
  }

  ExitStatus replay(const CacheRecord& record, const char* state) {
    record_.bytes("replayed", state).time("made_at", record.made_at);
    record_.number("exit_code", static_cast<std::uint64_t>(record.exit_code));
    const ExitStatus status = write_report(static_cast<ExitStatus>(record.exit_code));
    session_.output().raw_error(record.err);
    session_.output().raw(record.out);
    return status;
  }

  ExitStatus busy(const std::string& holder) {
    record_.boolean("busy", true);
    if (!holder.empty()) record_.raw("holder", holder);
    static_cast<void>(write_report(ExitStatus::try_again));
    throw Failure(
        ErrorCode::try_again,
        key_.name + " is being rebuilt by " + describe_holder(holder, "; its command failed") +
            (options_.terms.refresh
                 ? "; wait longer with --wait"
                 : " and there is no output to replay; wait longer with --wait, or use --on-busy run"),
        session_.server_address(cache_.server()));
  }

  ChildOptions child_options() const {
    ChildOptions child{.command = options_.command};
    child.input = key_.input;
    return child;
  }

  // Runs the command without storing its output.
  ExitStatus run_plainly(const char* why) {
    not_stored(why);
    return finish(run_alone(session_, child_options()));
  }

  ExitStatus rebuild(CacheRebuild& rebuild) {
    OutputTee tee(max_bytes_);
    const ExitStatus status = [&] {
      const HeldSignals held;
      const ChildResult result = run_child_under(rebuild, tee, held);
      store(rebuild, tee, result);
      end(rebuild, is_kept(result));
      return finish(result);
    }();
    // Signals end us again from here on. The rebuild has ended, so other clients do not wait for our reader.
    tee.finish();
    return status;
  }

  ChildResult run_child_under(CacheRebuild& rebuild, OutputTee& tee, const HeldSignals& held) {
    try {
      return run_child_renewing(rebuild, tee, held);
    } catch (...) {
      end(rebuild, true);
      throw;
    }
  }

  ChildResult run_child_renewing(CacheRebuild& rebuild, OutputTee& tee, const HeldSignals& held) {
    const CleanupProcess cleanup;
    ChildOptions child = child_options();
    child.output = &tee;
    const ChildTime its_own(session_);
    // A lost lock does not end the command: its output is still wanted, and is stored only if allowed.
    LeaseKeeper keeper(rebuild.lock(), rebuild.lease().value_or(Lease()),
                       {.ttl = rebuild.lease_ttl(),
                        .grace = Duration::zero(),
                        .stop_child = false,
                        .warn = [](std::string_view) {},
                        .renewed = [&] { rebuild.keep(); }},
                       session_.clock(), cleanup);
    const ChildResult result = run_child(child, session_.clock(), cleanup, held, &keeper);
    Lease lease = keeper.finish();
    if (rebuild.lease()) rebuild.lease() = std::move(lease);
    return result;
  }

  bool is_kept(const ChildResult& result) const {
    return result.reason == ChildResult::Reason::ended && result.signal == 0 &&
           codes_.test(static_cast<std::size_t>(result.code) & 255);
  }

  void store(CacheRebuild& rebuild, OutputTee& tee, const ChildResult& result) {
    if (!is_kept(result)) return not_stored("exit_code");
    if (!tee.complete()) return not_stored("too_large");
    CacheRecord record;
    record.exit_code = result.code;
    record.out = std::move(tee.kept(1));
    record.err = std::move(tee.kept(2));
    try {
      const auto stored = rebuild.store(std::move(record));
      if (stored != CacheRebuild::Stored::stored)
        return not_stored(stored == CacheRebuild::Stored::superseded ? "superseded" : "too_large");
      record_.boolean("stored", true);
    } catch (const Failure& failure) {
      session_.output().warning(std::string("the output could not be stored: ") + failure.what());
      not_stored(reason_of(failure));
    }
  }

  void not_stored(const char* why) { record_.boolean("stored", false).bytes("reason", why); }

  // Ends the rebuild. A failure is ignored: the lock expires anyway.
  static void end(CacheRebuild& rebuild, bool succeeded) {
    static_cast<void>(attempt([&] { rebuild.end(succeeded); }));
  }

  ExitStatus finish(const ChildResult& result) {
    report_failure(session_.output(), result);
    add_result(record_, result);
    return write_report(static_cast<ExitStatus>(result.exit_code()));
  }

  ExitStatus write_report(ExitStatus status) {
    record_.bytes("server", session_.server_address(cache_.server()));
    return mcds::write_report(report_, record_, session_.output(), status);
  }

  Session& session_;
  const CacheOptions& options_;
  ExitCodes codes_;
  std::size_t max_bytes_;
  CacheTerms terms_;
  OutputFile report_;
  CacheKey key_;
  Cache cache_;
  JsonObject record_;
};

}  // namespace

ExitStatus run_cached(Session& session, const CacheOptions& options) {
  return CachedRun(session, options).run();
}

}  // namespace mcds
