#include "common/structures/eventlog/read.hpp"

#include "common/base/bounds.hpp"
#include "common/base/bytes.hpp"
#include "common/primitives/seal.hpp"

namespace mcds {

namespace {

// The limit for third and further parts, of which a directory may name more than exist.
constexpr std::size_t requests_per_trip = 8192;
constexpr std::int64_t parts_per_round = 128;  // of each chunk

class ChunkReader {
 public:
  ChunkReader(const LogRing& ring, LogReading& reading, PartWindow window)
      : ring_(ring), cluster_(ring.context.cluster), reading_(reading), window_(window) {}

  std::vector<ChunkText> read(std::span<const std::int64_t> chunks) {
    // The time is taken before the parts are read: a part that is named later may be created after that read.
    const WallTime named_until = listed_long_ago(ring_);
    ask_first(chunks);
    while (!reading_.flood && ask_further()) {
    }
    if (reading_.flood) return {};
    leave_out_the_rest();
    ask_holes();
    find_lost_directories();
    if (reading_.flood) return {};
    for (ChunkText& chunk : chunks_) chunk.named = directory_of(chunk).named(chunk.chunk, named_until);
    return std::move(chunks_);
  }

 private:
  struct Asked {
    std::size_t position;  // in chunks_
    PartName name;
  };

  LogDirectory& directory_of(const ChunkText& chunk) {
    return directories_[chunk.chunk / chunks_per_directory];
  }

  void ask(std::size_t position, std::int64_t part) {
    asked_.push_back({position, {chunks_[position].chunk, part}});
    batch_.push_back(ring_.keys.get(asked_.back().name));
    if (batch_.size() == requests_per_trip) send();
  }

  // Reads two parts of every chunk, because a small first part does not prove that there is no second one.
  void ask_first(std::span<const std::int64_t> chunks) {
    const std::int64_t end = std::min(window_.first + 2, window_.end());
    std::set<std::int64_t> groups;
    for (const std::int64_t chunk : chunks) {
      chunks_.push_back({.chunk = chunk});
      for (std::int64_t part = window_.first; part < end; ++part) ask(chunks_.size() - 1, part);
      groups.insert(chunk / chunks_per_directory);
    }
    next_part_.assign(chunks_.size(), end);
    for (const std::int64_t group : groups) batch_.push_back(Request::get(ring_.keys.directory(group)));
    batch_.push_back(Request::get(ring_.keys.conf()));
    send({groups.begin(), groups.end()});
  }

  bool ask_further() {
    bool further = false;
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      std::int64_t end = directory_of(chunks_[i]).last_part_of(chunks_[i].chunk) + 2;
      const auto before = chunks_[i].parts.find({chunks_[i].chunk, next_part_[i] - 1});
      const bool goes_on = before != chunks_[i].parts.end() && !before->second.unreachable;
      if (goes_on) end = std::max(end, next_part_[i] + 1);
      end = std::min({end, window_.end(), next_part_[i] + parts_per_round});
      if (end <= next_part_[i] || (!goes_on && end <= next_part_[i] + 1)) continue;
      for (std::int64_t part = next_part_[i]; part < end; ++part) ask(i, part);
      next_part_[i] = end;
      further = true;
    }
    send();
    return further;
  }

  void leave_out_the_rest() {
    for (ChunkText& chunk : chunks_) {
      const std::int64_t named = directory_of(chunk).last_part_of(chunk.chunk);
      const std::int64_t end = window_.end();
      chunk.goes_on = end < max_parts && (named >= end || chunk.parts.contains({chunk.chunk, end - 1}));
      for (std::int64_t part = 0; part < window_.first; ++part)
        chunk.parts[{chunk.chunk, part}].unreachable = true;
      for (std::int64_t part = end; part <= named; ++part)
        chunk.parts[{chunk.chunk, part}].unreachable = true;
    }
  }

  // A part that was missing before an existing one may have been created between the two reads; it existed
  // before the later one did. Only a part that is still missing now is lost.
  void ask_holes() {
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      const auto& parts = chunks_[i].parts;
      const std::int64_t last = parts.empty() ? 0 : parts.rbegin()->first.part;
      for (std::int64_t part = 0; part < last; ++part) {
        if (!parts.contains({chunks_[i].chunk, part})) ask(i, part);
      }
    }
    send();
  }

  // Sends the batch, which has parts, then directories, then the conf key if there is one more request.
  void send(const std::vector<std::int64_t>& groups = {}) {
    const auto batch = std::exchange(batch_, {});
    const auto asked = std::exchange(asked_, {});
    for (std::size_t from = 0; from < batch.size() && !reading_.flood; from += requests_per_trip) {
      auto replies =
          cluster_.execute(std::span(batch).subspan(from, std::min(requests_per_trip, batch.size() - from)));
      for (std::size_t i = 0; i < replies.size() && !reading_.flood; ++i) {
        hold(replies[i]);
        if (reading_.flood) return;
        const std::size_t which = from + i;
        if (which < asked.size()) {
          take_part(asked[which], std::move(replies[i]));
        } else if (which < asked.size() + groups.size()) {
          take_directory(groups[which - asked.size()], replies[i]);
        } else if (replies[i].outcome == Outcome::hit) {
          take_conf(replies[i]);
        }
      }
    }
  }

  void take_conf(const Reply& reply) {
    try {
      require_active_variant(ring_.context, ring_.keys.conf(), reply.value, reply.server);
    } catch (const CorruptData& foreign) {
      reading_.sink.damaged(foreign);
    }
    reading_.found.shapes = shapes_in(parse_active_variants(reply.value, ring_.context.clock.wall()));
  }

  void hold(const Reply& reply) {
    bytes_ += reply.value.size();
    reading_.flood = bytes_ > max_answers_size || (reply.failure != nullptr && reply.failure->flood);
  }

  bool usable(const Reply& reply) {
    if (!reply.failed()) return true;
    if (!reading_.tolerant) expect(cluster_, reply);
    const Failure failure = failure_of_read(cluster_, reply);
    const auto same = [&](const Failure& one) { return one.server() == failure.server(); };
    if (std::ranges::none_of(reading_.found.unreachable, same)) reading_.found.unreachable.push_back(failure);
    return false;
  }

  void take_part(const Asked& asked, Reply reply) {
    const bool known = usable(reply);
    if (known && reply.outcome != Outcome::hit) return;
    chunks_[asked.position].parts[asked.name] = {std::move(reply.value), reply.server, !known};
  }

  void take_directory(std::int64_t group, const Reply& reply) {
    LogDirectory& directory = directories_[group];
    directory.unreachable = !usable(reply);
    if (directory.unreachable || reply.outcome != Outcome::hit) return;
    reading_.found.directory = true;
    directory.add(reply.value);
    if (directory.damaged_lines() == 0 && directory.unknown_lines() == 0) return;
    const char* what = directory.damaged_lines() == 0
                           ? unknown_form
                           : "holds lines that do not belong to an event log's directory";
    reading_.sink.damaged(
        CorruptData(ring_.keys.directory(group) + ' ' + what, cluster_.address_of(reply.server)));
  }

  std::set<std::int64_t> groups_without_their_parts() const {
    std::set<std::int64_t> groups;
    for (const ChunkText& chunk : chunks_) {
      const std::int64_t group = chunk.chunk / chunks_per_directory;
      const LogDirectory& directory = directories_.at(group);
      if (directory.unreachable) continue;
      for (const auto& [name, text] : chunk.parts) {
        const auto header = parse_part_header(text.value, name);
        if (header && !directory.knows(name, header->incarnation)) groups.insert(group);
      }
    }
    return groups;
  }

  // A part is named before it is created, but the directory may have been read before that: read it again.
  void find_lost_directories() {
    const auto suspects = groups_without_their_parts();
    if (suspects.empty()) return;
    for (const std::int64_t group : suspects) batch_.push_back(Request::get(ring_.keys.directory(group)));
    send({suspects.begin(), suspects.end()});
    const auto lost = groups_without_their_parts();
    for (ChunkText& chunk : chunks_) chunk.directory_lost = lost.contains(chunk.chunk / chunks_per_directory);
  }

  const LogRing& ring_;
  Cluster& cluster_;
  LogReading& reading_;
  PartWindow window_;
  std::vector<ChunkText> chunks_;
  std::vector<std::int64_t> next_part_;
  std::vector<Request> batch_;
  std::vector<Asked> asked_;
  std::size_t bytes_ = 0;
  std::map<std::int64_t, LogDirectory> directories_;
};

}  // namespace

void LogDirectory::add(std::string_view value) {
  while (!value.empty()) {
    const std::string_view text = take_line(value);
    const auto line = parse_directory_line(text);
    if (!line || line->follows_foreign) ++(unseal(text) ? unknown_ : damaged_);
    if (!line) continue;
    if (line->named) {
      named_.try_emplace({line->name, std::string(line->incarnation)}, line->at);
    } else {
      withdrawn_.emplace(line->name, line->incarnation);
    }
  }
}

std::vector<NamedPart> LogDirectory::named(std::int64_t chunk, WallTime until) const {
  std::vector<NamedPart> found;
  for (auto entry = named_.lower_bound({{chunk, 0}, ""}); entry != named_.end(); ++entry) {
    if (entry->first.first.chunk != chunk) break;
    if (entry->second <= until && !withdrawn_.contains(entry->first)) found.push_back(entry->first);
  }
  return found;
}

std::int64_t LogDirectory::last_part_of(std::int64_t chunk) const {
  const auto after = named_.lower_bound({{chunk + 1, 0}, ""});
  if (after == named_.begin()) return -1;
  const PartName& last = std::prev(after)->first.first;
  return last.chunk == chunk ? last.part : -1;
}

std::vector<ChunkText> read_chunks(const LogRing& ring, std::span<const std::int64_t> chunks,
                                   LogReading& reading, PartWindow window) {
  return ChunkReader(ring, reading, window).read(chunks);
}

std::optional<RingShape> newest_in_use(const LogRing& ring) {
  const Reply conf = ring.context.cluster.execute(Request::get(ring.keys.conf()));
  const auto shapes = shapes_in(parse_active_variants(conf.value, ring.context.clock.wall()));
  return shapes.empty() ? std::nullopt : std::optional(shapes.back());
}

WallTime listed_long_ago(const LogRing& ring) {
  return ring.context.clock.wall() - LogReader::grace - std::chrono::milliseconds(ring.shape.chunk_s * 500);
}

}  // namespace mcds
