// Implements mcds ring diff: shows which keys move when the pool or the client changes.
#include "common/placement/ring/shares.hpp"
#include "tools/cli/changed_pool.hpp"
#include "tools/commands/ring/keys.hpp"

namespace mcds {

namespace {

struct DiffOptions {
  ChangedPool to;
  RingKeys keys;
  std::optional<std::string> max_moved;
  bool by_position = false;
  std::uint64_t random = sample_size;
};

void check(const DiffOptions& options) {
  options.to.check();
  options.keys.check();
  if (options.random == 0) throw InvalidInput("--random must be at least 1");
}

// The result of reading keys from one of the three sources.
struct KeysRead {
  ExitStatus status = ExitStatus::ok;
  const char* source = "random";
  bool sized = false;  // some sizes were known
};

KeysRead read_keys(Session& session, const DiffOptions& options, RingDiff& diff) {
  KeysRead read;
  const TakeRingKey take = [&](const RingKey& key) {
    read.sized |= key.bytes.has_value();
    const PlacedKey part = placed(std::string(key.key), session.key_prefix());
    diff.add(part.placed_by(), key.bytes.value_or(0), key.server);
  };
  if (options.keys.any()) {
    read.source = options.keys.live ? "live" : "given";
    read.status = options.keys.read(session, take);
    return read;
  }
  SampleKeys keys(session.key_prefix());
  for (std::uint64_t i = 0; i < options.random; ++i) {
    if (i % 1024 == 0) session.expect_time();
    diff.add(keys.next(), 0);
  }
  return read;
}

void print_pairs(Session& session, const RingDiff& diff, bool sized) {
  for (const RingDiff::Pair& pair : diff.pairs()) {
    JsonObject line = JsonObject("from", pair.from).bytes("to", pair.to).number("keys", pair.moved.keys);
    if (sized) line.number("size_bytes", pair.moved.bytes);
    const double share = static_cast<double>(pair.moved.keys) / static_cast<double>(diff.all().keys);
    line.real("share", share);
    if (session.output().mode() == OutputMode::text) line.bytes("bar", bar(share, 20));
    session.output().detail(line);
  }
}

// Returns the summary. Its `within` is false if some keys could not be read.
JsonObject summary(const RingDiff& diff, const KeysRead& read, const DiffOptions& options, double most) {
  JsonObject line =
      JsonObject("source", read.source).number("keys", diff.all().keys).number("moved", diff.moved().keys);
  line.real("moved_share", diff.moved_share()).real("ideal_share", diff.ideal_share());
  if (read.sized) line.number("size_bytes", diff.all().bytes).number("moved_bytes", diff.moved().bytes);
  if (diff.misplaced().keys > 0) line.number("astray", diff.misplaced().keys);
  if (options.max_moved)
    line.real("max_moved_share", most)
        .boolean("within",
                 read.status == ExitStatus::ok && diff.all().keys > 0 && diff.moved_share() <= most);
  return line;
}

void warn_of_misplaced(Session& session, const RingDiff& diff) {
  if (diff.misplaced().keys <= diff.all().keys) return;
  session.output().warning("most live keys are not where " + std::string(session.placement()->profile()) +
                           " places them: another client wrote them; find it for --as with: " +
                           printed_command(session, "where --guess"));
}

ExitStatus run_diff(Session& session, const DiffOptions& options) {
  check(options);
  const double most = options.max_moved ? parse_share(*options.max_moved, "--max-moved") : 1;
  const auto after = ChangedSession(session, options.to).placement();
  RingDiff diff(*session.placement(), *after, options.by_position);
  const KeysRead read = read_keys(session, options, diff);
  warn_of_misplaced(session, diff);
  print_pairs(session, diff, read.sized);
  session.output().answer(summary(diff, read, options, most), json_real(diff.moved_share()));
  if (read.status != ExitStatus::ok) return read.status;
  if (options.max_moved && diff.all().keys == 0 && options.keys.any()) {
    throw Failure(ErrorCode::bad_data,
                  "no keys were given or found; omit --live and --keys to compare generated keys");
  }
  return diff.moved_share() > most ? ExitStatus::problem : ExitStatus::ok;
}

}  // namespace

void declare_ring_diff(Verb& verb) {
  const auto options = std::make_shared<DiffOptions>();
  declare_changed_pool(verb, options->to);
  verb.answer("from to keys size_bytes? share")
      .field("share number share of the keys that move between these two")
      .field("size_bytes integer size of these keys, if sizes are known")
      .field("keys integer number of keys compared, or moving between these two")
      .answer(
          "source keys moved moved_share ideal_share size_bytes? moved_bytes? astray? max_moved_share? "
          "within?")
      .example("mcds ring diff --to 10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4 --live")
      .example("mcds ring diff --as-to dalli")
      .example("mcds ring diff --to-servers-from nutcracker:new.yml --max-moved 30%")
      .option("--keys", "FILE",
              "compare these keys, one KEY or KEY<TAB>BYTES per line; - reads standard input",
              dash(&options->keys.file))
      .flag("--live", "compare all keys that the servers hold now, with their sizes", options->keys.live)
      .flag("--by-position",
            "treat servers at the same position of both lists as the same, for copies of one pool",
            options->by_position)
      .option("--random", "N", "compare N generated keys, the same in every run; default 100000",
              &options->random)
      .option("--max-moved", "SHARE", "exit with 2 if more than this share of the keys moves: 30% or 0.3",
              &options->max_moved)
      .action(run_diff, options);
}

}  // namespace mcds
