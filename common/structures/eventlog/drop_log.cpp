// Drops a log, in an order in which every step can be the last.
//
// Everything that exists when drop reads it is removed, each item by compare-and-delete: first the parts that
// writers append to, of all shapes; then the other parts and, for each 32 chunks, the directory's lines about
// them; last the conf key, which names the shapes. So events that are put afterwards are found, and a second
// drop finds what remains. A part is withdrawn in the directory before it is removed, so that no reader
// reports it as lost.
//
// A writer whose part is gone begins the chunk again: part 0 with another incarnation, its line in the
// directory, its shape in the conf key. drop removes neither, because it did not read them: a directory loses
// only lines that existed before, and the conf key is removed only if no client has written it since drop
// began. Therefore a client that creates a part appends zero bytes to the conf key at the same time. This
// changes its cas token and shows whether it still exists; if not, it is written again.
//
// Lines appended between the read of a part and its removal stay: a filler replaces the events before them,
// so that cursors find their places. If it is a further part, a gap is reported in place of the parts before
// it. A part that is missing and was listed recently may be created at any moment: its line and the conf key
// stay, until they expire or the next drop. An event that is put before drop reads its chunk may be removed
// with it. Late events go into chunks that are read last. A cursor reports what it has not delivered as a
// gap. Another program's value under a key of the log stays. Servers without cas also remove what was
// appended since the read.

#include "common/base/bytes.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/primitives/seal.hpp"
#include "common/structures/eventlog/read.hpp"

namespace mcds {

namespace {

constexpr std::size_t parts_per_trip = 32;
constexpr int max_drop_rounds = 100;  // at parts that other clients keep changing
constexpr int max_silences = 3;       // for one change whose replies get lost

// Returns the part without its first `size` bytes of events: a filler of the same size takes their place, so
// that cursors find their places.
std::string cut_part(std::string_view part, const PartHeader& header, std::size_t size) {
  if (size < header.size + min_filler) return std::string(part);
  std::string rest(part.substr(0, header.size));
  append_all(rest, {filler_line(size - header.size), part.substr(size)});
  return rest;
}

// Drops one ring of the log.
class RingDrop {
 public:
  explicit RingDrop(LogRing ring) : ring_(std::move(ring)), now_(ring_.shape.chunk_of(wall())) {}

  // Removes the chunks that writers append to. Afterwards they begin new parts, which stay.
  void remove_running() { remove_chunks(now_ - 1, now_ + 2); }
  // Removes the other chunks, and the directories' lines about all of them.
  void remove_rest() {
    const std::int64_t low = std::max<std::int64_t>(now_ - ring_.shape.chunks - 2, 0);
    for (std::int64_t group = group_of(now_ + 2); group >= group_of(low); --group) {
      const std::int64_t first = group * chunks_per_directory;
      remove_chunks(std::max(first, low), std::min(first + chunks_per_directory - 1, now_ - 2));
      remove_lines(group);
    }
  }

  bool found() const { return found_; }
  // Returns true if other clients have put events since.
  bool is_in_use() const { return !kept_.empty() || is_new_; }
  const std::optional<CorruptData>& foreign() const { return foreign_; }

 private:
  struct Seen {
    std::string incarnation;
    std::size_t size = 0;
  };

  WallTime wall() const { return ring_.context.clock.wall(); }
  static std::int64_t group_of(std::int64_t chunk) { return chunk / chunks_per_directory; }

  // Removes the parts that a directory names, and those that exist without a line: of each chunk the first
  // ones, until one is missing.
  void remove_chunks(std::int64_t low, std::int64_t high) {
    if (low > high) return;
    LogDirectory directory;
    for (std::int64_t group = group_of(high); group >= group_of(low); --group)
      read_directory(group, low, high, directory);
    std::vector<PartName> wanted;
    for (std::int64_t chunk = high; chunk >= low; --chunk) {
      const std::int64_t end = std::max<std::int64_t>(directory.last_part_of(chunk) + 1, 2);
      for (std::int64_t part = 0; part < end; ++part) wanted.push_back({chunk, part});
    }
    for (std::size_t begin = 0, count = 0; begin < wanted.size(); begin += count) {
      count = std::min(parts_per_trip, wanted.size() - begin);
      const std::vector<PartName> some(wanted.begin() + static_cast<std::ptrdiff_t>(begin),
                                       wanted.begin() + static_cast<std::ptrdiff_t>(begin + count));
      for (const PartName& name : remove_parts(some)) {
        const PartName next{name.chunk, name.part + 1};
        if (name.part > 0 && next.part < max_parts && next.part > directory.last_part_of(name.chunk))
          wanted.push_back(next);
      }
    }
    for (std::int64_t chunk = high; chunk >= low; --chunk) keep_young(chunk, directory);
  }

  // Keeps the lines of missing parts that were listed recently: their writers may be about to create them.
  void keep_young(std::int64_t chunk, const LogDirectory& directory) {
    const auto settled = directory.named(chunk, listed_long_ago(ring_));
    for (const NamedPart& part : directory.named(chunk)) {
      if (std::ranges::find(settled, part) == settled.end() && !removed_.contains(part)) kept_.insert(part);
    }
  }

  // Withdraws the parts, so that readers do not report them as lost. Best effort.
  void withdraw(std::span<const PartName> names, const std::map<PartName, Seen>& seen) {
    std::map<std::int64_t, std::string> lines;
    for (const PartName& name : names) {
      const std::string line = withdrawn_line(name, seen.at(name).incarnation);
      lines_.emplace(line.substr(0, line.size() - 1));
      lines[group_of(name.chunk)] += line;
    }
    std::vector<Request> batch;
    for (const auto& [group, some] : lines)
      batch.push_back(Request::append(ring_.keys.directory(group), some));
    if (!batch.empty()) ring_.context.cluster.execute(batch);
  }

  // Adds the lines about these chunks to `directory`, and remembers them for removal.
  void read_directory(std::int64_t group, std::int64_t low, std::int64_t high, LogDirectory& directory) {
    Cluster& cluster = ring_.context.cluster;
    const std::string key = ring_.keys.directory(group);
    const Reply reply = cluster.execute(Request::get(key));
    std::string_view rest = expect_read(cluster, reply).value;
    LogDirectory own;
    own.add(rest);
    if (own.is_foreign()) return note_foreign(key, reply.server);
    directory.add(rest);
    if (reply.outcome == Outcome::hit) groups_.insert(group);
    while (!rest.empty()) {
      const std::string_view text = take_line(rest);
      const auto line = parse_directory_line(text);
      if (line && line->name.chunk >= low && line->name.chunk <= high) lines_.emplace(text);
    }
  }

  // Returns the parts that existed.
  std::vector<PartName> remove_parts(std::vector<PartName> left) {
    Cluster& cluster = ring_.context.cluster;
    std::map<PartName, Seen> seen;
    for (int round = 0; !left.empty(); ++round) {
      if (round == max_drop_rounds) throw Contention("other clients keep changing the log; try again");
      back_off(ring_.context, round);
      std::vector<Request> gets, changes;
      for (const PartName& name : left)
        gets.push_back(ring_.keys.of_part(Request::gets(ring_.keys.part(name)), name));
      const auto replies = cluster.execute(gets);
      std::vector<PartName> changed;
      for (std::size_t i = 0; i < left.size(); ++i) {
        const Reply& reply = expect_read(cluster, replies[i]);
        if (round == 0) look(left[i], reply, seen);
        const auto known = seen.find(left[i]);
        auto change = known == seen.end() ? std::nullopt : change_of(left[i], reply, known->second);
        if (!change) continue;
        changed.push_back(left[i]);
        changes.push_back(std::move(*change));
      }
      left.clear();
      if (round == 0) withdraw(changed, seen);
      const auto done = cluster.execute(changes);
      for (std::size_t i = 0; i < changed.size(); ++i) {
        if (!done[i].unknown() || round >= max_silences) expect(cluster, done[i]);
        if (done[i].unknown() || done[i].outcome == Outcome::exists) left.push_back(changed[i]);
        if (done[i].outcome == Outcome::stored) kept_.insert({changed[i], seen[changed[i]].incarnation});
      }
    }
    std::vector<PartName> there;
    for (const auto& [name, part] : seen) {
      there.push_back(name);
      if (!kept_.contains({name, part.incarnation})) removed_.insert({name, part.incarnation});
    }
    return there;
  }

  void look(const PartName& name, const Reply& reply, std::map<PartName, Seen>& seen) {
    if (reply.outcome != Outcome::hit) return;
    const auto header = parse_part_header(reply.value, name);
    if (!header) return note_foreign(ring_.keys.part(name), reply.server);
    found_ = true;
    groups_.insert(group_of(name.chunk));  // its line may be written after the directory was read
    seen[name] = {std::string(header->incarnation), reply.value.size()};
  }

  // Returns the request that removes the events that were read first, or nullopt if none of them exist now.
  std::optional<Request> change_of(const PartName& name, const Reply& reply, const Seen& seen) {
    if (reply.outcome != Outcome::hit) return std::nullopt;
    const auto header = parse_part_header(reply.value, name);
    if (!header || header->incarnation != seen.incarnation || reply.value.size() < seen.size) {
      is_new_ = true;
      return std::nullopt;
    }
    const std::string key = ring_.keys.part(name);
    if (reply.value.size() == seen.size || reply.cas.value == 0)
      return ring_.keys.of_part(removal_of(key, reply.cas), name);
    std::string rest = cut_part(reply.value, *header, seen.size);
    if (rest == reply.value) {
      kept_.insert({name, seen.incarnation});
      return std::nullopt;
    }
    const Exptime exptime = Exptime::at(ring_.shape.expiry_of(name.chunk), wall());
    return ring_.keys.of_part(Request::compare_and_set(key, std::move(rest), exptime, reply.cas), name);
  }

  // Removes the lines that were read, and the withdrawals, except names of parts that are in use. Whole lines
  // in an unknown form stay.
  void remove_lines(std::int64_t group) {
    if (!groups_.contains(group)) return;
    cas_update(ring_.context, ring_.keys.directory(group), [&](const Observed& observed) {
      std::string left;
      std::string_view rest = observed.value;
      bool is_ours = false;
      while (!rest.empty()) {
        const std::string_view text = take_line(rest);
        const auto line = parse_directory_line(text);
        is_ours = is_ours || line;
        if (!line) {
          if (unseal(text)) append_all(left, {text, "\n"});
          continue;
        }
        const NamedPart part{line->name, line->incarnation};
        const bool is_kept = line->named && kept_.contains(part);
        if (!is_kept && (lines_.contains(text) || removed_.contains(part))) continue;
        append_all(left, {text, "\n"});
      }
      is_new_ = is_new_ || !left.empty();
      found_ = found_ || is_ours;
      if (!is_ours || left == observed.value) return std::optional<Write>();
      const WallTime until = ring_.shape.expiry_of((group + 1) * chunks_per_directory - 1);
      return std::optional(
          Write{.value = left, .exptime = Exptime::at(until, wall()), .removes = left.empty()});
    });
  }

  void note_foreign(const std::string& key, std::size_t server) {
    foreign_ = CorruptData(key +
                               " holds another program's data and was kept, and all events were "
                               "removed; remove the key with mcds item remove if no program needs it",
                           ring_.context.cluster.address_of(server));
  }

  LogRing ring_;
  std::int64_t now_;
  std::set<std::int64_t> groups_;             // that may have a directory
  std::set<std::string, std::less<>> lines_;  // of directories
  std::set<NamedPart> removed_;
  std::set<NamedPart> kept_;  // parts with new events, or that may be created soon
  bool found_ = false;
  bool is_new_ = false;
  std::optional<CorruptData> foreign_;
};

}  // namespace

bool drop_log(const Context& context, std::string_view name, const RingShape& usual) {
  const LogKeys keys = LogRing(context, name, usual).keys;
  const Reply conf = context.cluster.execute(Request::gets(keys.conf()));
  require_active_variant(context, keys.conf(), expect_read(context.cluster, conf).value, conf.server);
  auto shapes = shapes_in(parse_active_variants(conf.value, context.clock.wall()));
  // Readers find a log in the usual shape without a conf key.
  if (std::ranges::find(shapes, usual) == shapes.end()) shapes.push_back(usual);
  std::vector<RingDrop> rings;
  for (const RingShape& shape : shapes) rings.emplace_back(LogRing(context, name, shape));
  for (RingDrop& ring : rings) ring.remove_running();
  for (RingDrop& ring : rings) ring.remove_rest();
  // The conf key is last, because it names the rings. It stays if a client has recorded a shape since.
  const auto end = [&](const Observed& seen) {
    return seen.found && seen.cas == conf.cas ? std::optional(Write{.removes = true}) : std::nullopt;
  };
  const bool is_in_use = std::ranges::any_of(rings, [](const RingDrop& ring) { return ring.is_in_use(); });
  if (conf.outcome == Outcome::hit && !is_in_use) cas_update(context, keys.conf(), end);
  for (const RingDrop& ring : rings) {
    if (ring.foreign()) throw *ring.foreign();
  }
  return conf.outcome == Outcome::hit ||
         std::ranges::any_of(rings, [](const RingDrop& ring) { return ring.found(); });
}

std::vector<PlacedKey> keys_of_log(const Context& context, std::string_view name) {
  const LogRing usual(context, name, {});
  const LogRing ring(context, name, newest_in_use(usual).value_or(usual.shape));
  const std::int64_t now = ring.shape.chunk_of(context.clock.wall());
  std::vector<PlacedKey> keys;
  for (std::int64_t chunk = now - ring.shape.chunks; chunk <= now + 1; ++chunk)
    keys.push_back({ring.keys.part({chunk, 0})});
  for (std::int64_t group = (now - ring.shape.chunks) / chunks_per_directory;
       group <= (now + 1) / chunks_per_directory; ++group) {
    keys.push_back({ring.keys.directory(group)});
  }
  keys.push_back({ring.keys.conf()});
  return keys;
}

}  // namespace mcds
