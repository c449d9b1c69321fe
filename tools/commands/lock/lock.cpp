// Implements mcds lock: parsing and printing; the algorithm is in lock.hpp, `run` in run.cpp.

#include "tools/commands/lock/lease_keeper.hpp"
#include "tools/commands/lock/options.hpp"

namespace mcds {

namespace {

constexpr std::size_t locks_per_window = 1000;

void add_holder(JsonObject& answer, const std::string& holder) {
  if (!holder.empty()) answer.raw("holder", holder);
}

void add_lease(JsonObject& answer, const Lease& lease, Duration ttl) {
  answer.bytes("token", lease.token);
  add_seconds(answer, "ttl_s", ttl);
  answer.time("expires_at", lease.expires_at);
  answer.signed_number("expires_at_s", whole_seconds(lease.expires_at));
  if (lease.fence) answer.bytes("fence", std::to_string(*lease.fence));
}

// Returns when the holder acquired the lock, if it recorded that.
std::optional<WallTime> acquired_at(const std::string& holder, WallTime now) {
  const auto since = json_field(holder, "acquired_at");
  const auto time = since ? json_unquote(*since) : std::nullopt;
  const auto began = attempt([&] { return parse_time(time.value_or(""), now, "acquired_at"); });
  return began.failure() ? std::nullopt : std::optional(began.value());
}

// Explains why a lock whose holder's time seems to be over is still busy; empty if that does not apply.
std::string if_over(const std::string& holder, WallTime now) {
  const auto ttl = parse_double(json_field(holder, "ttl_s").value_or(""));
  const auto began = acquired_at(holder, now);
  if (!ttl || !(*ttl < 1e9) || !began) return {};
  const WallTime end = *began + std::chrono::microseconds(static_cast<std::int64_t>(*ttl * 1e6));
  if (now < end || now > end + std::chrono::seconds(3)) return {};
  return "the lock ended at " + format_time(end) +
         " unless it was renewed, and its key is kept up to two seconds longer";
}

ExitStatus acquire(Session& session, const LockOptions& options) {
  const Duration ttl = options.ttl.value_or(usual_lock_ttl);
  Lock::AcquireOptions acquire_options = acquire_options_of(options, ttl, options.fence);
  acquire_options.wait = std::min(acquire_options.wait, session.time_left());
  HeldSignals held;
  InterruptibleClock clock(session.clock(), held);
  LockSlots slots = slots_of(session, options, clock);
  const auto [answer, slot] = (Waiting(session, "waiting for the lock"), slots.acquire(acquire_options));
  JsonObject line("lock", options.name);
  line.boolean("acquired", answer.lease.has_value());
  add_slot(line, options, slot);
  if (answer.lease)
    add_lease(line, *answer.lease, ttl);
  else
    add_holder(line, answer.holder);
  const std::string over = answer.lease ? "" : if_over(answer.holder, session.clock().wall());
  if (!over.empty()) line.bytes("message", over);
  const AnswerFrom from{answer.server, answer.copies, "held"};
  if (!answer.lease) {
    if (session.output().mode() == OutputMode::value) {
      warn_of_copies(session, answer.copies);
      return report_busy(session, options, answer);
    }
    answer_from(session, line, from, {});
    return busy_exit(options.busy_status);
  }
  try {
    held.check();
    answer_from(session, line, from, answer.lease->token);
  } catch (...) {
    // The caller never sees the token, so release the lock instead of blocking others until it expires.
    give_up(slots.at(slot), *answer.lease);
    throw;
  }
  held.keep();
  return ExitStatus::ok;
}

const std::string& token_of(const LockOptions& options) {
  if (!options.token || options.token->empty()) {
    throw InvalidInput("--token: give the token that acquire printed");
  }
  return *options.token;
}

ExitStatus renew(Session& session, const LockOptions& options) {
  const std::string& token = token_of(options);
  const HeldSignals held;
  Lock lock = lock_of(session, options, slot_of(token));
  const auto [renewal, lease, ttl] = lock.renew(token, options.ttl);
  const bool renewed = renewal == Lock::Renewal::renewed;
  JsonObject line("lock", options.name);
  line.boolean("renewed", renewed);
  if (renewed)
    add_lease(line, lease, ttl);
  else
    line.bytes("reason", renewal == Lock::Renewal::not_owner ? "not_owner" : "not_held");
  return answer_yes(session, line, renewed, {lock.server()});
}

ExitStatus release(Session& session, const LockOptions& options) {
  if (options.force == options.token.has_value())
    throw InvalidInput("lock release needs --token or --force, which cannot be combined");
  if (!options.force && options.slot)
    throw InvalidInput("--slot needs --force: a token already names its slot");
  if (options.slot.value_or(0) >= max_lock_slots)
    throw InvalidInput("--slot: give a number from 0 to " + std::to_string(max_lock_slots - 1));
  const std::size_t slot = options.force ? options.slot.value_or(0) : slot_of(token_of(options));
  const HeldSignals held;
  Lock lock = lock_of(session, options, slot);
  const Lock::Freed freed = options.force ? lock.force_release() : lock.release(*options.token);
  const bool released = freed.result == Lock::Freed::Result::released;
  JsonObject line("lock", options.name);
  line.boolean("released", released);
  if (!released)
    line.bytes("reason", freed.result == Lock::Freed::Result::not_owner ? "not_owner" : "not_held");
  if (released && options.force) add_holder(line.boolean("forced", true), freed.holder);
  const auto server = released ? std::optional(lock.server()) : std::nullopt;
  return answer_yes(session, line, released, {server, freed.copies, "held"});
}

ExitStatus show_one(Session& session, const Lock::Shown& shown, std::optional<std::size_t> slot = {}) {
  JsonObject line("lock", shown.name);
  line.boolean("held", shown.held);
  if (slot) line.number("slot", *slot);
  add_holder(line, shown.holder);
  const WallTime now = session.clock().wall();
  if (const auto since = acquired_at(shown.holder, now)) {
    const auto held_for = std::chrono::floor<std::chrono::seconds>(now - *since);
    line.number("held_for_s", static_cast<std::uint64_t>(std::max<std::int64_t>(held_for.count(), 0)));
  }
  if (shown.ttl && shown.ttl->count() >= 0)
    line.number("ttl_s", static_cast<std::uint64_t>(shown.ttl->count()));
  const auto server = shown.held ? std::optional(shown.server) : std::nullopt;
  return answer_yes(session, line, shown.held, {server, shown.copies, "held"});
}

// Prints one line per slot. Returns ok if any slot is held.
ExitStatus show_slots(Session& session, const LockOptions& options, const std::string& name) {
  const auto all = LockSlots(session.context_with_copies(), name, *options.slots).show();
  ExitStatus status = ExitStatus::no;
  for (std::size_t slot = 0; slot < all.size(); ++slot) {
    if (all[slot].failure) throw Failure(*all[slot].failure);
    if (show_one(session, all[slot], slot) == ExitStatus::ok) status = ExitStatus::ok;
  }
  return status;
}

ExitStatus forget_one(Session& session, const std::string& name) {
  const Lock::Forgotten done = Lock::forget(session.context_with_copies(), name);
  const bool yes = done == Lock::Forgotten::forgotten;
  JsonObject line("lock", name);
  line.boolean("forgotten", yes);
  if (!yes) line.bytes("reason", done == Lock::Forgotten::held ? "held" : "missing");
  return answer_yes(session, line, yes);
}

// Answers for several names. Each name must be valid for a lock.
ExitStatus for_locks(Session& session, const LockOptions& options, const AnswerNames& answer) {
  const auto check = [&](const std::string& name) { Lock(session.context_with_copies(), name); };
  return for_names(session, options.names, check, answer);
}

ExitStatus forget(Session& session, const LockOptions& options) {
  return for_locks(session, options, [&](const Window<std::string>& window) {
    answer_one_by_one(window, [&](const std::string& name) { return forget_one(session, name); });
  });
}

// Prints all locks that are held, as the servers list them.
ExitStatus show_all(Session& session) {
  std::set<std::string> names;
  const auto take = [&](const LiveKey& key) {
    if (!key.key.starts_with(session.key_prefix())) return true;
    const auto found = structure_named(key.key.substr(session.key_prefix().size()));
    if (found && found->structure == "lock" && found->is_root) names.emplace(found->name);
    return true;
  };
  const Pool& pool = session.placement()->pool();
  ExitStatus status = report_unlisted(session, pool, list_keys(session, pool, take));
  const std::vector<std::string> all(names.begin(), names.end());
  bool any = false;
  for (std::size_t i = 0; i < all.size(); i += locks_per_window) {
    const std::span window = std::span(all).subspan(i, std::min(locks_per_window, all.size() - i));
    for (const auto& result : Lock::show(session.context_with_copies(), {window.begin(), window.end()})) {
      if (result.failure) status = worse(status, session.output().failed(result.name, *result.failure));
      if (!result.held) continue;
      any = true;
      show_one(session, result);
    }
  }
  session.output().report_errors();
  return any ? status : worse(status, ExitStatus::no);
}

ExitStatus show(Session& session, const LockOptions& options) {
  if (options.names.empty()) {
    if (options.slots) throw InvalidInput("--slots needs the NAME of the lock");
    return show_all(session);
  }
  return for_locks(session, options, [&](const Window<std::string>& window) {
    if (options.slots) {
      answer_one_by_one(window, [&](const std::string& name) { return show_slots(session, options, name); });
    } else {
      answer_each(window, Lock::show(session.context_with_copies(), window.items),
                  [&](const std::string&, const Lock::Shown& shown) { return show_one(session, shown); });
    }
  });
}

ExitStatus where(Session& session, const LockOptions& options) {
  return where_names(session, options.names, [&](const std::string& name) {
    if (!options.slots) return std::vector{Lock(session.context_with_copies(), name).key()};
    LockSlots slots(session.context_with_copies(), name, *options.slots);
    std::vector<std::string> keys;
    for (std::size_t slot = 0; slot < slots.size(); ++slot) keys.push_back(slots.at(slot).key());
    return keys;
  });
}

void declare_taking(Verb& verb, const std::shared_ptr<LockOptions>& options, const char* ttl_help) {
  verb.argument("NAME", "the lock", &options->name)
      .option("--slots", "N",
              "let up to N callers, at most 256, hold the lock; all must give the same N; default 1",
              &options->slots)
      .option("--ttl", "D", ttl_help, &options->ttl)
      .option("-w,--wait", "D", "wait up to this long for the lock, or inf; default: do not wait",
              &options->wait)
      .option("-E,--busy-exit", "N",
              "exit code if another process holds the lock; default 75; with 0 there is no error",
              &options->busy_status)
      .option("--note", "TEXT", "a note of up to 1024 bytes, shown to others with the holder",
              &options->note);
}

void declare_run(Command& command, const std::shared_ptr<LockOptions>& options) {
  command.verb("run", "run a command while holding a lock", run_locked, options)
      .with(declare_taking, options, "how long the lock lasts without a renewal; default 30s")
      .answer("lock acquired slot? slots? holder? server")
      .answer("lock acquired slot? slots? token fence server started_at renewals finished_at outcome @result")
      .answer("lock acquired without_lock @result")
      .example("mcds lock run nightly -- /usr/local/bin/backup.sh")
      .example("mcds lock run deploy -w 10m --ttl 1m --note \"release 42\" -- make deploy")
      .example("mcds lock run report --once-per 23h -E 0 -- ./send-report")
      .example("mcds lock run encode --slots 3 -w inf -- encode film.mkv")
      .choice("--on-lost", "term|warn",
              "when the lock is lost: stop the command, or only print a warning; default term",
              &options->on_lost)
      .option("--grace", "D", "time between TERM and KILL; default 5s, or a quarter of a ttl below 20s",
              &options->grace)
      .option("--max-run", "D", "stop the command after this long and exit with 124", &options->max_run)
      .option("--min-hold", "D",
              "hold the lock for at least this long after the start, even if the command ends sooner",
              &options->min_hold)
      .option("--once-per", "D", "after the command succeeds, hold the lock until this long after the start",
              &options->once_per)
      .choice("--if-down", "fail|run", "when no server answers: fail, or run without the lock; default fail",
              &options->if_down)
      .option("--report", "FILE", "write the result to this file as JSON", &options->report)
      .child(options->command, true);
}

void declare_held(Command& command, const std::shared_ptr<LockOptions>& options) {
  command.verb("acquire", "take a lock and print its token", acquire, options)
      .with(declare_taking, options, "time until the lock expires; default 60s")
      .answer("lock acquired slot? slots? @lease server @copies")
      .field("ttl_s number the ttl in seconds")
      .field(
          "message string why a lock is busy whose time seems to be over: its key lives up to 2 seconds "
          "longer")
      .answer("lock acquired slot? slots? holder? message? server @copies")
      .example("mcds lock acquire nightly --ttl 10m")
      .example("token=$(mcds lock acquire deploy -w 30s -o value) || exit")
      .example("mcds lock acquire ledger --fence --note \"month end\"")
      .example("mcds lock acquire encoder --slots 3")
      .flag("--fence", "draw a fencing token, larger than all earlier ones", options->fence);
  command.verb("renew", "extend a lock you hold", renew, options)
      .answer("lock renewed @lease server")
      .answer("lock renewed reason server")
      .field("ttl_s number the ttl in seconds")
      .field("reason string why it was not renewed: not_owner or not_held")
      .example("mcds lock renew nightly --token \"$token\" --ttl 10m")
      .argument("NAME", "the lock", &options->name)
      .option("--token", "T", "the token printed by acquire; required", &options->token)
      .option("--ttl", "D", "the ttl from now; default: the ttl last used, or 60s if it is not known",
              &options->ttl);
  command.verb("release", "release a lock", release, options)
      .answer("lock released forced? holder? server @copies")
      .answer("lock released reason @copies")
      .field("reason string why it was not released: not_owner or not_held")
      .field(
          "holder {host pid user note? acquired_at ttl_s? finished_at? slots?} who held the lock that "
          "--force released")
      .example("mcds lock release nightly --token \"$token\"")
      .example("mcds lock release nightly --force")
      .argument("NAME", "the lock", &options->name)
      .option("--token", "T", "the token printed by acquire; required without --force", &options->token)
      .flag("--force", "release it regardless of its holder", options->force)
      .option("--slot", "K", "with --force: this slot of a lock with --slots; default 0", &options->slot);
}

}  // namespace

void give_up(Lock& lock, const Lease& lease) {
  try {
    lock.release(lease);
  } catch (const Failure& failure) {
    throw UnknownOutcome("interrupted, and the lock could not be released: " + std::string(failure.what()) +
                             "; it expires after its ttl, or release it with --token " + lease.token,
                         failure.server());
  }
}

Lock lock_of(Session& session, const LockOptions& options, std::size_t slot) {
  session.try_always();
  return Lock::of_slot(session.context_with_copies(), options.name, slot, session.longest_lock_ttl());
}

LockSlots slots_of(Session& session, const LockOptions& options, Clock& clock) {
  session.try_always();
  Context context = session.context_with_copies();
  return {{context.cluster, clock, context.random, context.key_prefix, context.copies},
          options.name,
          options.slots.value_or(1),
          session.longest_lock_ttl()};
}

ExitStatus report_busy(Session& session, const LockOptions& options, const Lock::Answer& answer) {
  const ExitStatus status = busy_exit(options.busy_status);
  if (status == ExitStatus::ok) return status;
  const std::string holder = describe_holder(answer.holder);
  const std::string held = options.slots.value_or(1) == 1
                               ? "the lock " + options.name + " is held by " + holder
                               : "all " + std::to_string(*options.slots) + " slots of the lock " +
                                     options.name + " are held, one of them by " + holder;
  const std::string over = if_over(answer.holder, session.clock().wall());
  session.output().error(Failure(ErrorCode::try_again,
                                 held + "; " + over + (over.empty() ? "" : "; ") + "wait for it with -w",
                                 session.server_address(answer.server)));
  return status;
}

void add_slot(JsonObject& object, const LockOptions& options, std::size_t slot) {
  if (options.slots) object.number("slot", slot).number("slots", *options.slots);
}

void declare_lock(Command& command) {
  command.exits(
      "1 not held, or not held by you|65 the lock is in use with another --slots, or the key of the fencing "
      "token does not hold a number|69|71|73 the report cannot be written; a command that failed keeps its "
      "own code|75 another process holds the lock|76|79 the lock was lost and the command was stopped|80 the "
      "lock may or may not have been taken|124|126|127");
  const auto options = std::make_shared<LockOptions>();
  declare_run(command, options);
  declare_held(command, options);
  command.verb("show", "print who holds a lock, or all that are held; exit 1 if none is", show, options)
      .answer("lock held slot? holder? held_for_s? ttl_s? server? @copies")
      .field(
          "holder {host pid user note? acquired_at ttl_s? finished_at? slots?} who holds the lock; with "
          "finished_at the holder has finished, and only the key is kept")
      .field("ttl_s number seconds until the lock ends if it is not renewed; 0: only its key is still there")
      .example("mcds lock show nightly")
      .example("mcds lock show -o text")
      .optional_argument("NAME", "the locks; - reads one per line; default: all that are held",
                         dash(&options->names))
      .option("--slots", "N",
              "print a line for each slot of a lock that has several; exit with 1 if none is held",
              &options->slots);
  command.verb("forget", "remove the fences of locks that nobody holds", forget, options)
      .answer("lock forgotten reason?")
      .field("reason string why not: held or missing")
      .example("mcds lock forget job-4711")
      .argument("NAME", "the locks; - reads one per line", dash(&options->names));
  command.verb("where", "print the key and server of a lock", where, options)
      .answer("@where")
      .example("mcds lock where nightly")
      .argument("NAME", "the locks; - reads one per line", dash(&options->names))
      .option("--slots", "N", "print a line for each slot of a lock that has several", &options->slots);
}

}  // namespace mcds
