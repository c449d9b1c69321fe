// Changing the number of copies of a log, and its end: what is written into its conf keys, in an order in
// which everybody can go on after any step. eventlog.hpp has the protocol.
#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/rely.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/primitives/several/recopying.hpp"
#include "common/structures/eventlog/place.hpp"
#include "common/structures/eventlog/read.hpp"

namespace mcds {

namespace {

constexpr std::size_t largest_filler = std::size_t{512} << 10;
constexpr std::size_t smallest_filler = 16;
constexpr std::int64_t directories_per_trip = 16;
constexpr int most_fill_rounds = 4;  // an item much larger than usual is not filled

// Lines that fill a part, whatever room it has: each half as large as the one before.
const std::vector<std::string>& fillers() {
  static const auto lines = [] {
    std::vector<std::string> all;
    for (std::size_t size = largest_filler; size >= smallest_filler; size /= 2)
      all.push_back(filler_line(size));
    return all;
  }();
  return lines;
}

// What is put by who looked before the log had left may still get into the chunk after the next.
std::vector<InUse> prolonged(std::vector<InUse> conf, WallTime now) {
  for (InUse& one : conf) {
    const auto shape = RingShape::parse(one.what);
    if (!shape) continue;
    const WallTime last = shape->expiry_of(shape->chunk_of(now) + 2);
    one.until = one.until == WallTime::max() ? last : std::max(one.until, last);
  }
  return conf;
}

WallTime end_of(std::span<const InUse> conf, WallTime least) {
  for (const InUse& one : conf) least = std::max(least, one.until);
  return least;
}

std::uint64_t change_of(std::span<const InUse> conf) {
  const auto move = last_move(conf);
  return move ? move->change : 0;
}

// A change that has begun, or was left by a client that died: every step can be repeated.
class LogRecopy {
 public:
  LogRecopy(const Context& context, std::string_view name, Recopying& change)
      : context_(context), name_(name), change_(change) {}

  void run() {
    try {
      if (change_.mark().to == 0)
        end();
      else
        change_number(change_.mark().from, {change_.mark().to});
    } catch (const Failure&) {
      if (!may_be_changed_) static_cast<void>(attempt([&] { change_.finish(); }));
      throw;
    }
    change_.finish();
  }

 private:
  void change_number(const KeptNumber& from, const KeptNumber& to) {
    rely_on(to.copies != from.copies || from.unmarked, "a log leaves for another number of copies");
    const std::vector<InUse> all = read(from), theirs = read(to);
    // Behind the reading: what another mover does from now on has a higher number than this one gives.
    change_.check();
    may_be_changed_ = true;
    leave(from, {std::max(change_of(all), change_of(theirs)) + 1, to.copies, from}, all, end_of(theirs, {}));
    change_.keep_alive();
    const std::vector<InUse> conf = read(from);
    const auto left = last_move(conf);
    // It had left for another before this change was begun by who died.
    if (!left || left->to != to.copies || !(left->from == from)) return;
    const std::vector<InUse> lines = continued(conf, *left);
    on_all(to, [&](const Context& copy) { add_to_conf(copy, conf_key(to), lines); });
    close(from, conf);
  }

  // Unless it has left before. `all`: what the conf key says there.
  void leave(const KeptNumber& from, const LogMove& move, std::span<const InUse> all, WallTime least) const {
    on_all(from, [&](const Context& copy) {
      change_conf(copy, conf_key(from),
                  [&](const std::vector<InUse>& seen) -> std::optional<std::vector<InUse>> {
                    std::vector<InUse> conf = united(seen, all);
                    if (!move_away(conf, from.copies) && change_of(conf) < move.change) {
                      const WallTime now = context_.clock.wall();
                      conf = prolonged(std::move(conf), now);
                      const InUse left{move.text(), end_of(conf, std::max(now, least))};
                      conf = united(std::move(conf), std::span(&left, 1));
                    }
                    return conf == seen ? std::nullopt : std::optional(std::move(conf));
                  });
    });
  }

  // Fills all parts of every chunk that a put can be for now, so that the next one looks at the conf: a
  // writer may still append to one that has no room for others' batches.
  void close(const KeptNumber& number, std::span<const InUse> conf) {
    for (const RingShape& shape : shapes_in(conf)) {
      const LogKeys keys = keys_under(number, context_, name_, shape);
      const std::int64_t now = shape.chunk_of(context_.clock.wall());
      for (std::int64_t chunk = now - 1; chunk <= now + 1; ++chunk) {
        change_.keep_alive();
        on_all(number, [&](const Context& copy) { close_chunk(copy, keys, chunk); });
      }
    }
  }

  void close_chunk(const Context& copy, const LogKeys& keys, std::int64_t chunk) const {
    const Request ask = Request::get(keys.directory(chunk / chunks_per_directory));
    LogDirectory directory;
    directory.add(expect_read(copy.cluster, copy.cluster.execute(ask)).value);
    for (const auto& [name, incarnation] : directory.named(chunk, WallTime::max())) {
      std::vector<Request> batch;
      for (const std::string& filler : fillers()) batch.push_back(keys.append(name, filler));
      for (int round = 0; round < most_fill_rounds; ++round) {
        if (copy.cluster.execute(batch).back().outcome != Outcome::stored) break;
      }
    }
  }

  // Every one that the log may be kept in.
  std::vector<KeptNumber> numbers() const {
    std::vector<KeptNumber> all;
    const std::size_t most = std::min(context_.cluster.placement().pool().size(), most_copies);
    for (std::size_t copies = 1; copies <= most; ++copies) all.push_back({copies});
    if (most > 1) all.push_back({most, true});
    return all;
  }

  // `<number>/<C>x<N>` lines, as conf keys name former rings.
  std::string rings_in_use() const {
    std::set<std::string> rings;
    for (const KeptNumber& number : numbers()) {
      for (const InUse& one : read(number)) {
        if (RingShape::parse(one.what)) rings.insert(number.text() + '/' + one.what);
        if (one.what.find('/') != std::string::npos) rings.insert(one.what);
      }
    }
    std::string lines;
    for (const std::string& ring : rings) append_all(lines, {ring, "\n"});
    return lines;
  }

  // The conf keys, so that who starts a chunk looks for the mark and waits; then every part that a directory
  // names, and the directories.
  void end() {
    // Before the conf keys go, which name the rings.
    if (change_.mark().moving.empty()) change_.write(rings_in_use());
    may_be_changed_ = true;
    for (const KeptNumber& number : numbers()) {
      for (const Reply& reply :
           execute_copies(context_.in_copies(number.copies), Request::remove(conf_key(number))))
        static_cast<void>(expect(context_.cluster, reply));
    }
    change_.settle();
    const std::string lines = change_.mark().moving;
    for (const std::string_view line : split(lines, '\n')) {
      const std::size_t slash = line.find('/');
      if (slash == std::string_view::npos) continue;
      const auto number = KeptNumber::parse(line.substr(0, slash));
      const auto shape = RingShape::parse(line.substr(slash + 1));
      if (number && shape) remove_ring(*number, *shape);
    }
  }

  void remove_ring(const KeptNumber& number, const RingShape& shape) const {
    const LogKeys keys = keys_under(number, context_, name_, shape);
    const std::int64_t now = shape.chunk_of(context_.clock.wall());
    const std::int64_t last = (now + 2) / chunks_per_directory;
    for (std::int64_t group = (now - shape.chunks - 2) / chunks_per_directory; group <= last;) {
      change_.check();
      const std::int64_t end = std::min(group + directories_per_trip, last + 1);
      for (std::int64_t one = group; one < end; ++one)
        in_rounds("the log", [&] { return remove_directory(number, keys, one); });
      group = end;
    }
  }

  // With the parts that the directory of any copy names, as a copy may have lost its own, and those that are
  // read without one. False: it has been written since.
  bool remove_directory(const KeptNumber& number, const LogKeys& keys, std::int64_t group) const {
    const std::string key = keys.directory(group);
    const Replicas copies(context_.in_copies(number.copies));
    const auto found = expect_all(copies.each([&](std::size_t copy) {
      Cluster& cluster = copies.at(copy).cluster;
      return expect_read(cluster, cluster.execute(Request::gets(key)));
    }));
    LogDirectory directory;
    for (const Reply& reply : found) directory.add(reply.value);
    std::vector<Request> removals;
    for (std::int64_t chunk = group * chunks_per_directory; chunk < (group + 1) * chunks_per_directory;
         ++chunk) {
      std::set<PartName> parts{{chunk, 0}, {chunk, 1}};
      for (const auto& [part, incarnation] : directory.named(chunk, WallTime::max())) parts.insert(part);
      for (const PartName& part : parts)
        removals.push_back(keys.of_part(Request::remove(keys.part(part)), part));
    }
    const auto done = expect_all(copies.each([&](std::size_t copy) {
      Cluster& cluster = copies.at(copy).cluster;
      for (const Reply& reply : cluster.execute(removals)) static_cast<void>(expect(cluster, reply));
      if (found[copy].outcome != Outcome::hit) return true;
      const Reply removed = cluster.execute(removal_of(key, found[copy].cas));
      return expect(cluster, removed).outcome != Outcome::exists;
    }));
    return std::ranges::all_of(done, std::identity());
  }

  // Of every copy. Throws if one does not answer, or is another program's.
  std::vector<InUse> read(const KeptNumber& number) const {
    const std::string key = conf_key(number);
    std::vector<InUse> lines;
    for (const Reply& reply : execute_copies(context_.in_copies(number.copies), Request::get(key))) {
      expect_in_use(context_, key, expect_read(context_.cluster, reply).value, reply.server);
      lines = united(std::move(lines), parse_in_use(reply.value, context_.clock.wall()));
    }
    return lines;
  }

  std::string conf_key(const KeptNumber& number) const { return keys_under(number, context_, name_).conf(); }

  template <typename Work>
  void on_all(const KeptNumber& number, const Work& work) const {
    const Replicas copies(context_.in_copies(number.copies));
    expect_all(copies.each([&](std::size_t copy) { work(copies.at(copy)); }));
  }

  const Context& context_;
  std::string_view name_;
  Recopying& change_;
  bool may_be_changed_ = change_.taken_over();
};

}  // namespace

void move_log(const Context& context, std::string_view name, Recopying& change) {
  LogRecopy(context, name, change).run();
}

Kept::Recopied recopy_log(const Context& context, std::string_view name) {
  LogPlace log(context, name, RingShape{});
  const Kept::Recopied recopied = log.kept.recopy();
  return !recopied.found && log.restore_left() ? log.kept.recopy() : recopied;
}

bool drop_log(const Context& context, std::string_view name) {
  LogPlace log(context, name, RingShape{});
  return log.kept.drop() || (log.restore_left() && log.kept.drop());
}

std::vector<KeysOfRing> keys_of_log(const Context& context, std::string_view name,
                                    std::optional<RingShape> asked) {
  LogPlace log(context, name, asked);
  static_cast<void>(log.elsewhere());
  if (log.guessed) log.use_shape(log.newest_in_use().value_or(log.shape));
  log.remember(read_conf(context, log.keys.conf()).all());
  const RingShape& shape = log.shape;
  const std::int64_t now = shape.chunk_of(context.clock.wall());
  const auto keys_of_ring = [&](const LogKeys& ring) {
    std::vector<PlacedKey> keys;
    for (std::int64_t chunk = now - shape.chunks; chunk <= now + 1; ++chunk)
      keys.push_back({ring.part({chunk, 0})});
    for (std::int64_t group = (now - shape.chunks) / chunks_per_directory;
         group <= (now + 1) / chunks_per_directory; ++group) {
      keys.push_back({ring.directory(group)});
    }
    keys.push_back({ring.conf()});
    return keys;
  };
  std::vector<KeysOfRing> rings{{context.copies, keys_of_ring(log.keys)}};
  for (const FormerRing& former : log.formers) {
    if (former.shape == shape) rings.push_back({former.number.copies, keys_of_ring(log.keys_of(former))});
  }
  return rings;
}

}  // namespace mcds
