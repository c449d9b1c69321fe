// Implements mcds ring move: parsing and printing. The algorithm is in common/operations/move/move.hpp.
#include "common/operations/move/move.hpp"

#include "common/placement/guess.hpp"
#include "tools/cli/changed_pool.hpp"
#include "tools/cli/removal.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

namespace {

struct RingMoveOptions {
  ChangedPool to;
  std::optional<std::string> rate;
  SelectedKeys selected;
  MoveOptions move;
  bool list = false, even_misplaced = false;
};

MoveOptions options_of(Session& session, const RingMoveOptions& options) {
  MoveOptions result = options.move;
  if (options.rate) result.rate = rate_of(*options.rate);
  result.selection = options.selected.of(session);
  return result;
}

class Mover {
 public:
  Mover(Session& session, const RingMoveOptions& options)
      : session_(session),
        options_(options),
        other_(session, options.to),
        to_(other_.connect()),
        statistics_(other_.connect()),
        to_pool_(other_.placement()->pool()),
        from_pool_(session.placement()->pool()),
        move_(session.context_on(session.cluster()), *to_, options_of(session, options), statistics_.get()) {}

  ExitStatus run() {
    session_.output().buffered(true);
    const std::uint64_t keys =
        move_.list([&](const TakeLiveKey& take) { return list_keys(session_, from_pool_, take); });
    if (!options_.even_misplaced) expect_profile();
    warn();
    session_.end_by_signals();
    try {
      if (!options_.move.dry_run) copy(keys);
    } catch (...) {
      session_.note_unfinished();
      print();
      throw;
    }
    print();
    return status_;
  }

 private:
  // Throws if the profile does not fit the keys: a wrong profile would copy about as many keys as the right
  // one, to places that no client reads.
  void expect_profile() {
    const auto objection = objection_to(*session_.placement(), session_.placement_options(), move_.sample());
    if (!objection) return;
    const auto moved =
        std::ranges::count_if(move_.sample(), [this](const auto& one) { return is_moved(one); });
    if (static_cast<std::size_t>(moved) * 20 >= move_.sample().size() * 19)
      throw Failure(ErrorCode::bad_data,
                    "nothing is copied: the keys are already where --to places them, so this move is done");
    throw Failure(ErrorCode::bad_data,
                  "nothing is copied: " + *objection + "; find the client that wrote them with: " +
                      printed_command(session_, "where --guess") + "; --even-astray moves anyway");
  }

  // Returns true if a client of the new list finds the key.
  bool is_moved(const KeyLocation& key) const {
    const Owners owners = other_.placement()->owners_of(key.key);
    return std::ranges::any_of(owners.list, [&](const Owner& owner) {
      return std::ranges::any_of(key.servers, [&](std::size_t server) {
        return from_pool_[server].address() == to_pool_[owner.server].address();
      });
    });
  }

  void copy(std::uint64_t keys) {
    LeftItems left(session_, "items", keys, options_.list,
                   [this](const KeptItem& item) { print_left(item); });
    began_copying_ = session_.clock().steady();
    move_.copy(left.watch());
    if (left.count() > 0) status_ = worse(status_, ExitStatus::problem);
    for (std::size_t i = 0; i < to_pool_.size(); ++i) {
      if (is_target(i)) report_event(i);
      report_lost(i);
    }
  }

  bool is_target(std::size_t server) const {
    const auto& pairs = move_.report().pairs;
    return std::ranges::any_of(pairs, [&](const auto& pair) { return pair.first.second == server; });
  }

  // Warns if items that were copied to the server may be gone since.
  void report_event(std::size_t server) {
    const auto& event = move_.report().restarts[server];
    if (!event || (event->evicted == 0 && !event->restarted && !event->flushed)) return;
    JsonObject line = JsonObject("to", to_pool_[server].address()).number("evicted", event->evicted);
    line.boolean("restarted", event->restarted).boolean("flushed", event->flushed);
    const std::string message =
        event->restarted || event->flushed
            ? std::string("the server was ") + (event->restarted ? "restarted" : "flushed") +
                  " during the move and lost what had been copied to it; move again without --again"
            : "the server evicted " + std::to_string(event->evicted) +
                  (event->evicted == 1 ? " item" : " items") +
                  " during the move, copied ones or others; give it more memory (-m), "
                  "and move without --again";
    session_.output().answer(line.bytes("message", message), to_pool_[server].address());
    status_ = worse(status_, ExitStatus::problem);
  }

  // Warns of items that an earlier run copied and that are gone.
  void report_lost(std::size_t server) {
    const std::uint64_t lost = move_.report().lost[server];
    if (lost == 0) return;
    JsonObject line = JsonObject("to", to_pool_[server].address()).number("lost", lost);
    line.bytes("message",
               "the server was restarted or flushed since " + std::to_string(lost) +
                   " of these items were copied to it, evicted them or does not answer; to copy them again, "
                   "move without --again, which also restores what clients of the new list removed");
    session_.output().answer(line, to_pool_[server].address());
    status_ = worse(status_, ExitStatus::problem);
  }

  // Returns the evictions of all servers that were copied to, or nullopt if one does not report them.
  std::optional<std::uint64_t> evicted() const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < to_pool_.size(); ++i) {
      if (!is_target(i)) continue;
      const auto& event = move_.report().restarts[i];
      if (!event) return std::nullopt;
      sum += event->evicted;
    }
    return sum;
  }

  // Warns of servers whose keys are not known, or not reliably.
  void warn() {
    const MoveReport& report = move_.report();
    status_ = worse(status_, report_unlisted(session_, from_pool_, report.dumps));
    std::uint64_t keys = 0, misplaced = 0, arrived = 0;
    for (std::size_t i = 0; i < report.dumps.size(); ++i) {
      keys += report.servers[i].keys;
      misplaced += report.servers[i].misplaced;
      arrived += report.servers[i].arrived;
      if (report.dumps[i].failure == nullptr && !report.dumps[i].by_table) {
        session_.output().warning(
            from_pool_[i].address() +
            ": before 1.6.9 a server may omit keys that are in use; move again with --journal and --again");
      }
    }
    if (arrived > 0 && !options_.move.again && !move_.continues())
      session_.output().warning(
          std::to_string(arrived) +
          " keys already exist on their new servers and were kept; if an earlier pool change left them "
          "there, remove them with mcds where --prune --live --moved-from (mcds-ring-move(1), PROCEDURE)");
    if (misplaced * 2 > keys)
      session_.output().warning(
          "most keys are not where " + std::string(session_.placement()->profile()) +
          " places them and were not moved; find the client that wrote them, for --as, with: " +
          printed_command(session_, "where --guess"));
  }

  void print_left(const KeptItem& item) {
    JsonObject line = JsonObject("key", item.key).bytes("left", item.reason);
    line.bytes("from", from_pool_[item.from].address()).bytes("to", to_pool_[item.to].address());
    session_.output().answer_name(line.bytes("message", item.message), item.key);
  }

  void print() {
    for (std::size_t i = 0; i < from_pool_.size(); ++i) print_server(i);
    for (const auto& [servers, pair] : move_.report().pairs) print_pair(servers, pair);
    print_sum();
  }

  void print_server(std::size_t index) {
    const MovedServer& server = move_.report().servers[index];
    JsonObject line = JsonObject("server", from_pool_[index].address()).number("keys", server.keys);
    line.number("stays", server.stays).number("moves", server.moves);
    line.number("arrived", server.arrived).number("astray", server.misplaced).number("locks", server.locks);
    session_.output().detail(line.boolean("complete", move_.report().dumps[index].complete));
  }

  void add(JsonObject& line, const MovedPair& pair) const {
    line.number("keys", pair.keys).number("size_bytes", pair.size_bytes);
    if (options_.move.dry_run) return;
    line.number("copied", pair.copied).number("already", pair.already).number("updated", pair.updated);
    line.number("united", pair.merged).number("gone", pair.gone).number("left", pair.left);
  }

  void print_pair(const std::pair<std::size_t, std::size_t>& servers, const MovedPair& pair) {
    JsonObject line = JsonObject("from", from_pool_[servers.first].address())
                          .bytes("to", to_pool_[servers.second].address());
    add(line, pair);
    session_.output().detail(line);
  }

  void print_sum() {
    MovedPair all;
    std::uint64_t misplaced = 0;
    for (const auto& [servers, pair] : move_.report().pairs) {
      all.keys += pair.keys, all.size_bytes += pair.size_bytes, all.copied += pair.copied;
      all.already += pair.already, all.updated += pair.updated, all.merged += pair.merged;
      all.gone += pair.gone, all.left += pair.left, all.locks += pair.locks;
    }
    for (const MovedServer& server : move_.report().servers) {
      misplaced += server.misplaced;
      all.locks += server.locks;
    }
    JsonObject line;
    add(line, all);
    line.number("astray", misplaced).number("locks", all.locks);
    if (options_.move.dry_run) {
      line.boolean("dry_run", true);
      return session_.output().answer(line, std::to_string(all.keys));
    }
    const bool cut = session_.is_unfinished();
    const auto lost = cut ? std::nullopt : evicted();
    line.raw("evicted", lost ? std::to_string(*lost) : "null");
    const Duration so_far = session_.clock().steady() - began_copying_;
    add_speed(line, cut ? so_far : move_.report().copying, move_.report().done);
    session_.add_unfinished(line);
    session_.output().answer(line, std::to_string(all.copied + all.updated + all.merged));
  }

  Session& session_;
  const RingMoveOptions& options_;
  ChangedSession other_;
  std::unique_ptr<Cluster> to_, statistics_;
  const Pool& to_pool_;
  const Pool& from_pool_;
  Move move_;
  ExitStatus status_ = ExitStatus::ok;
  SteadyTime began_copying_;
};

ExitStatus run_move(Session& session, const RingMoveOptions& options) {
  options.to.check();
  options.selected.check();
  if (options.move.again && options.move.journal.empty() && !options.move.dry_run)
    throw InvalidInput("--again needs the --journal of the first run");
  return Mover(session, options).run();
}

}  // namespace

void declare_ring_move(Verb& verb) {
  const auto options = std::make_shared<RingMoveOptions>();
  declare_changed_pool(verb, options->to);
  declare_selected_keys(verb, options->selected);
  verb.answer("server keys stays moves arrived astray locks complete")
      .answer("from to keys size_bytes")
      .answer("from to keys size_bytes @moved")
      .answer("keys size_bytes astray locks dry_run")
      .answer("keys size_bytes @moved astray locks evicted @speed unfinished?")
      .answer("to evicted restarted flushed message")
      .answer("to lost:integer message")
      .answer("key left from to message")
      .field("size_bytes integer size of these keys")
      .field("complete boolean whether the server listed all its keys")
      .field("lost integer items copied by an earlier run that this server has lost since")
      .field("message string the loss, or why the item is left, in words")
      .field("keys integer number of keys: listed by the server, or moving between these two")
      .field("astray integer keys that neither list and profile place where they are, which are not copied")
      .field("key bytes the key of an item that is left")
      .example("mcds ring move --to 10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4 --dry-run")
      .example("mcds ring move --to 10.0.0.1,10.0.0.2 --journal move.journal --rate 20000/s")
      .example("mcds ring move --as-to dalli --journal move.journal")
      .option("--rate", "N/s", "copy at most N items per second; default: no limit", &options->rate)
      .flag("--dry-run", "count what would be copied, by pair of servers", options->move.dry_run)
      .option("--journal", "FILE",
              "record the copied items in this file, to continue an ended run, and for --again",
              &options->move.journal)
      .flag("--again", "copy the items that changed on the old servers since the run that wrote the journal",
            options->move.again)
      .flag("--without-cas", "also move between servers that run without cas (-C); stop the writers first",
            options->move.without_cas)
      .flag("--even-astray", "move even if --as does not explain where the keys are; see mcds-pruning(7)",
            options->even_misplaced)
      .flag("--list", "print a line for each key that is left; default: the first 20", options->list)
      .action(run_move, options);
}

}  // namespace mcds
