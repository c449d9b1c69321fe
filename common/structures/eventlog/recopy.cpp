// Changing the number of copies of a log: what is written into its conf keys, in an order in which everybody
// can go on after any step. eventlog.hpp has the protocol.
#include <algorithm>
#include <set>
#include <utility>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/rely.hpp"
#include "common/primitives/several/recopying.hpp"
#include "common/structures/eventlog/place.hpp"
#include "common/structures/eventlog/read.hpp"

namespace mcds {

namespace {

constexpr std::size_t largest_filler = std::size_t{512} << 10;
constexpr std::size_t smallest_filler = 16;
constexpr std::int64_t directories_per_trip = 16;
constexpr int most_recopies = 8;
constexpr int most_fill_rounds = 4;  // an item much larger than usual is not filled

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

class LogRecopy {
 public:
  LogRecopy(const Context& context, std::string_view name) : context_(context), name_(name) {}

  // Of all copies that answer.
  std::vector<InUse> read(const LogNumber& number, bool everywhere) const {
    std::vector<InUse> conf;
    std::optional<Failure> silence;
    bool answered = false;
    const Context numbered = number.in(context_);
    for (const Reply& reply : execute_copies(numbered, Request::get(conf_key(number)))) {
      const auto read = attempt([&] { expect_read(context_.cluster, reply); });
      answered = answered || !read.failure();
      if (read.failure()) silence = read.failure();
      if (reply.outcome == Outcome::hit)
        conf = united(std::move(conf), parse_in_use(reply.value, context_.clock.wall()));
    }
    if (silence && (everywhere || !answered)) raise(*silence);
    return conf;
  }

  // Step 1: the log leaves `from` for the context's number of copies. False: it had left before. Throws, and
  // has changed nothing, if a server that has a copy of either conf key does not answer.
  bool leave(const LogNumber& from) const {
    const LogNumber to{context_.copies};
    const std::vector<InUse> all = read(from, true);
    const std::vector<InUse> theirs = read(to, true);
    const LogMove move{std::max(change_of(all), change_of(theirs)) + 1, to.copies, from};
    rely_on(to.copies != from.copies || from.unmarked, "a log leaves for another number of copies");
    const Replicas copies(from.in(context_));
    // The first copy decides between several who do it.
    return change_conf(copies.at(0), conf_key(from),
                       [&](const std::vector<InUse>& seen) -> std::optional<std::vector<InUse>> {
                         if (move_away(seen, from.copies) || change_of(seen) >= move.change)
                           return std::nullopt;
                         const WallTime now = context_.clock.wall();
                         std::vector<InUse> conf = prolonged(united(seen, all), now);
                         conf.push_back({move.text(), std::max(end_of(conf, now), end_of(theirs, now))});
                         return united(std::move(conf), {});
                       });
  }

  // What the new conf says: the rings that the log had, and the shapes that it goes on with.
  std::vector<InUse> taken_over(std::span<const InUse> conf, const LogMove& move) const {
    const std::string own = LogNumber{move.to}.text() + '/';
    std::vector<InUse> lines;
    std::vector<InUse> shapes;
    for (const InUse& one : conf) {
      if (one.what.starts_with(own)) {
        shapes.push_back({one.what.substr(own.size()), one.until});
      } else if (RingShape::parse(one.what)) {
        lines.push_back({move.from.text() + '/' + one.what, one.until});
        shapes.push_back(one);
      } else if (!LogMove::parse(one.what)) {
        lines.push_back(one);
      }
    }
    lines = united(std::move(lines), shapes);
    for (const InUse& one : conf) {
      if (one.what == move.text()) lines.push_back(one);
    }
    return lines;
  }

  // False: everything stood there.
  bool write(const LogNumber& number, std::span<const InUse> lines, bool everywhere) const {
    const Replicas copies(number.in(context_));
    bool wrote = false;
    const auto written = expect_any(copies.each([&](std::size_t copy) {
      if (add_to_conf(copies.at(copy), conf_key(number), lines)) wrote = true;
    }));
    if (everywhere) expect_all(written);
    return wrote;
  }

  // The other steps, as far as they are not done.
  void complete(const LogNumber& from, bool everywhere) const {
    const std::vector<InUse> conf = read(from, everywhere);
    const auto move = last_move(conf);
    if (!move || move->to == from.copies || !(move->from == from)) return;
    // The copies that the first step has not reached.
    write(from, conf, everywhere);
    const bool wrote = write({move->to}, taken_over(conf, *move), everywhere);
    if (!wrote && !everywhere) return;
    const auto closed = attempt([&] { close(from, conf); });
    if (everywhere) closed.value();
  }

  // Fills all parts of every chunk that a put can be for now, so that the next one looks at the conf: a
  // writer may still append to one that has no room for others' batches.
  void close(const LogNumber& number, std::span<const InUse> conf) const {
    const Replicas copies(number.in(context_));
    expect_all(copies.each([&](std::size_t copy) {
      for (const InUse& one : conf) {
        const auto shape = RingShape::parse(one.what);
        if (!shape) continue;
        const LogKeys keys(number.key(context_, name_), *shape);
        const std::int64_t now = shape->chunk_of(context_.clock.wall());
        for (std::int64_t chunk = now - 1; chunk <= now + 1; ++chunk)
          close_chunk(copies.at(copy), keys, chunk);
      }
    }));
  }

  void close_chunk(const Context& copy, const LogKeys& keys, std::int64_t chunk) const {
    const Request ask = Request::get(keys.directory(chunk / chunks_per_directory));
    LogDirectory directory;
    directory.add(expect_read(copy.cluster, copy.cluster.execute(ask)).value);
    for (const auto& [name, incarnation] : directory.named(chunk, WallTime::max())) {
      std::vector<Request> batch;
      for (std::size_t size = largest_filler; size >= smallest_filler; size /= 2)
        batch.push_back(keys.append(name, filler_line(size)));
      for (int round = 0; round < most_fill_rounds; ++round) {
        if (copy.cluster.execute(batch).back().outcome != Outcome::stored) break;
      }
    }
  }

  // Every one that the log may be kept in.
  std::vector<LogNumber> numbers() const {
    std::vector<LogNumber> all;
    const std::size_t most = std::min(context_.cluster.placement().pool().size(), most_copies);
    for (std::size_t copies = 1; copies <= most; ++copies) all.push_back({copies});
    if (most > 1) all.push_back({most, true});
    return all;
  }

  // `<number>/<C>x<N>` lines, as conf keys name former rings.
  std::string rings_in_use() const {
    std::set<std::string> rings;
    for (const LogNumber& number : numbers()) {
      for (const InUse& one : read(number, true)) {
        if (RingShape::parse(one.what)) rings.insert(number.text() + '/' + one.what);
        if (one.what.find('/') != std::string::npos) rings.insert(one.what);
      }
    }
    std::string lines;
    for (const std::string& ring : rings) append_all(lines, {ring, "\n"});
    return lines;
  }

  // False: there was none. What no directory names ends with its ring.
  bool drop() const {
    if (rings_in_use().empty()) return false;
    Recopying recopying(context_, "eventlog", name_);
    recopying.begin(1, false, 0);
    end(recopying);
    return true;
  }

  // The conf keys, so that who starts a chunk looks for the mark and waits; then every part that a directory
  // names, and the directories.
  void end(Recopying& recopying) const {
    // Before the conf keys go, which name the rings.
    if (recopying.mark().moving.empty()) recopying.write(rings_in_use());
    for (const LogNumber& number : numbers()) {
      for (const Reply& reply : execute_copies(number.in(context_), Request::remove(conf_key(number))))
        static_cast<void>(expect(context_.cluster, reply));
    }
    recopying.settle();
    const std::string lines = recopying.mark().moving;
    for (const std::string_view line : split(lines, '\n')) {
      const std::size_t slash = line.find('/');
      if (slash == std::string_view::npos) continue;
      const auto number = LogNumber::parse(line.substr(0, slash));
      const auto shape = RingShape::parse(line.substr(slash + 1));
      if (number && shape) remove_ring(recopying, *number, *shape);
    }
    recopying.finish();
  }

  void remove_ring(Recopying& recopying, const LogNumber& number, const RingShape& shape) const {
    const Replicas copies(number.in(context_));
    const LogKeys keys(number.key(context_, name_), shape);
    const std::int64_t now = shape.chunk_of(context_.clock.wall());
    const std::int64_t last = (now + 2) / chunks_per_directory;
    for (std::int64_t group = (now - shape.chunks - 2) / chunks_per_directory; group <= last;) {
      recopying.check();
      const std::int64_t end = std::min(group + directories_per_trip, last + 1);
      expect_all(copies.each([&](std::size_t copy) {
        const Context& context = copies.at(copy);
        for (std::int64_t one = group; one < end; ++one)
          in_rounds("the log", [&] { return remove_directory(context, keys, one); });
      }));
      group = end;
    }
  }

  // With the parts that it names. False: it has been written since.
  bool remove_directory(const Context& copy, const LogKeys& keys, std::int64_t group) const {
    const std::string key = keys.directory(group);
    const Reply found = copy.cluster.execute(Request::gets(key));
    if (expect_read(copy.cluster, found).outcome != Outcome::hit) return true;
    LogDirectory directory;
    directory.add(found.value);
    std::vector<Request> removals;
    for (std::int64_t chunk = group * chunks_per_directory; chunk < (group + 1) * chunks_per_directory;
         ++chunk) {
      for (const auto& [part, incarnation] : directory.named(chunk, WallTime::max()))
        removals.push_back(keys.of_part(Request::remove(keys.part(part)), part));
    }
    for (const Reply& reply : copy.cluster.execute(removals)) static_cast<void>(expect(copy.cluster, reply));
    const Reply removed = copy.cluster.execute(found.cas.value == 0 ? Request::remove(key)
                                                                    : Request::remove_if(key, found.cas));
    return expect(copy.cluster, removed).outcome != Outcome::exists;
  }

  // Whether nothing can have been missed in a look that found nothing.
  void expect_answers() const {
    const std::size_t most = std::min(context_.cluster.placement().pool().size(), most_copies);
    for (std::size_t copies = 1; copies <= most; ++copies) {
      const LogNumber number{copies};
      if (context_.cluster.placement().servers_of(conf_key(number), copies).size() < copies) return;
      static_cast<void>(read(number, true));
    }
  }

 private:
  std::string conf_key(const LogNumber& number) const { return number.key(context_, name_) + ":conf"; }

  const Context& context_;
  std::string_view name_;
};

}  // namespace

void complete_recopy(const Context& context, std::string_view name, const LogNumber& from, bool everywhere) {
  LogRecopy(context, name).complete(from, everywhere);
}

void end_log(const Context& context, std::string_view name, Recopying& recopying) {
  LogRecopy(context, name).end(recopying);
}

Kept::Recopied recopy_log(const Context& context, std::string_view name) {
  LogPlace log(context, name, RingShape{});
  const LogRecopy recopy(context, name);
  for (int attempt = 0; attempt < most_recopies; ++attempt) {
    const auto place = log.kept.only_place();
    if (!place) {
      if (log.complete_left(true)) continue;
      recopy.expect_answers();
      return {};
    }
    if (place->copies == context.copies) {
      // Whoever began it may not have come to its end.
      if (const auto move = last_move(log.read_conf().all())) recopy.complete(move->from, true);
      return {.found = true, .from = place->copies};
    }
    const LogNumber from{place->copies, place->unmarked};
    const bool ours = recopy.leave(from);
    recopy.complete(from, true);
    if (ours) return {.found = true, .from = from.copies};
  }
  throw Contention("others change the number of copies of the eventlog '" + log.name + "'; try again");
}

bool drop_log(const Context& context, std::string_view name) {
  // Another's, or one that was left, comes to its end first.
  const bool begun = Recopying(context, "eventlog", name).look().has_value();
  static_cast<void>(LogPlace(context, name, RingShape{}).kept.places());
  return LogRecopy(context, name).drop() || begun;
}

std::vector<KeysOfRing> keys_of_log(const Context& context, std::string_view name,
                                    std::optional<RingShape> asked) {
  LogPlace log(context, name, asked);
  static_cast<void>(log.elsewhere());
  if (log.guessed) log.use_shape(log.newest_in_use().value_or(log.shape));
  log.remember(log.read_conf().all());
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
