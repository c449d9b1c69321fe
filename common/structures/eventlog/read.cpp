#include "common/structures/eventlog/read.hpp"

#include <algorithm>

#include "common/base/bounds.hpp"
#include "common/base/bytes.hpp"

namespace mcds {

namespace {

// Of third and further parts, of which a directory may name more than anybody has.
constexpr std::size_t requests_per_trip = 8192;
constexpr std::int64_t parts_per_round = 128;  // of each chunk

// Of a part without a header: whether nothing in it is a log's.
bool is_foreign(std::string_view value) {
  bool any = false;
  while (!value.empty()) {
    if (parse_event_line(take_line(value))) return false;
    any = true;
  }
  return any;
}

class ChunkReader {
 public:
  ChunkReader(const OneCopy& copy, LogReading& reading, PartWindow window)
      : copy_(copy), reading_(reading), found_(reading.found), window_(window) {}

  std::vector<ChunkText> read(std::span<const std::int64_t> chunks) {
    // Of the moment before the parts are asked for: what was named after that may have been created after
    // that.
    const WallTime named_until =
        copy_.context.clock.wall() - LogReader::grace - std::chrono::milliseconds(copy_.shape.chunk_s * 500);
    ask_first(chunks);
    while (!found_.flood && ask_further()) {
    }
    if (found_.flood) return {};
    leave_out_the_rest();
    ask_misplaced();
    ask_holes();
    find_lost_directories();
    if (found_.flood) return {};
    for (ChunkText& chunk : chunks_) {
      const LogDirectory& directory = directory_of(chunk);
      chunk.named = directory.named(chunk.chunk, named_until);
      chunk.foreign = directory.is_foreign();
      for (const auto& [name, part] : chunk.parts) {
        const auto header = parse_part_header(part.value, name);
        chunk.foreign = chunk.foreign || (!header && is_foreign(part.value));
        const bool known = !header || directory.unreachable || directory.knows(name, header->incarnation);
        if (!known) chunk.unnamed.emplace_back(name, header->incarnation);
      }
      chunk.all_named = directory.named(chunk.chunk, WallTime::max());
      chunk.last_named = directory.last_part_of(chunk.chunk);
      // It goes on, and nobody says how far.
      const auto first = chunk.parts.find({chunk.chunk});
      const bool begun = first != chunk.parts.end() && !first->second.unreachable;
      if (begun && directory.unreachable) chunk.last_named = most_parts;
    }
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

  void ask(Request request, std::size_t position, std::int64_t part) {
    asked_.push_back({position, {chunks_[position].chunk, part}});
    batch_.push_back(std::move(request));
    if (batch_.size() == requests_per_trip) send();
  }
  void ask(std::size_t position, std::int64_t part) {
    ask(copy_.keys.get({chunks_[position].chunk, part}), position, part);
  }

  // Two parts of every chunk: that a first part is small does not prove that there is no second one.
  void ask_first(std::span<const std::int64_t> chunks) {
    const std::int64_t end = std::min(window_.first + 2, window_.end());
    std::set<std::int64_t> groups;
    for (const std::int64_t chunk : chunks) {
      chunks_.push_back({.chunk = chunk, .parts = {}, .named = {}});
      for (std::int64_t part = window_.first; part < end; ++part) ask(chunks_.size() - 1, part);
      groups.insert(chunk / chunks_per_directory);
    }
    next_part_.assign(chunks_.size(), end);
    for (const std::int64_t group : groups) batch_.push_back(Request::get(copy_.keys.directory(group)));
    batch_.push_back(Request::get(copy_.keys.conf()));
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
      chunk.goes_on = end < most_parts && (named >= end || chunk.parts.contains({chunk.chunk, end - 1}));
      for (std::int64_t part = 0; part < window_.first; ++part)
        chunk.parts[{chunk.chunk, part}].unreachable = true;
      for (std::int64_t part = end; part <= named; ++part)
        chunk.parts[{chunk.chunk, part}].unreachable = true;
    }
  }

  // A part that was missing and stands before one that is there may have been created between the two looks;
  // it was there before the later one was. Only a part that is missing now is lost.
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

  // One that is named and not where it belongs may be where versions before 0.2 put it.
  void ask_misplaced() {
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      const std::int64_t chunk = chunks_[i].chunk;
      const std::int64_t end = std::min(directory_of(chunks_[i]).last_part_of(chunk) + 1, most_parts);
      for (std::int64_t part = 1; part < end; ++part) {
        if (chunks_[i].parts.contains({chunk, part})) continue;
        auto misplaced = copy_.keys.misplaced(copy_.context.cluster, copy_.keys.get({chunk, part}));
        if (misplaced) ask(std::move(*misplaced), i, part);
      }
    }
    send();
  }

  // The parts that were asked for, then directories, then the conf key if there is one more.
  void send(const std::vector<std::int64_t>& groups = {}) {
    const auto batch = std::exchange(batch_, {});
    const auto asked = std::exchange(asked_, {});
    for (std::size_t from = 0; from < batch.size() && !found_.flood; from += requests_per_trip) {
      auto replies = copy_.context.cluster.execute(
          std::span(batch).subspan(from, std::min(requests_per_trip, batch.size() - from)));
      for (std::size_t i = 0; i < replies.size() && !found_.flood; ++i) {
        hold(replies[i]);
        if (found_.flood) return;
        const std::size_t which = from + i;
        if (which < asked.size()) {
          take_part(asked[which], std::move(replies[i]));
        } else if (which < asked.size() + groups.size()) {
          take_directory(groups[which - asked.size()], replies[i]);
        } else if (!replies[i].failed()) {
          found_.conf_answered = true;
          found_.conf = parse_in_use(replies[i].value, copy_.context.clock.wall());
          if (replies[i].outcome == Outcome::hit) found_.shapes = shapes_in(found_.conf);
        }
      }
    }
  }

  void hold(const Reply& reply) {
    bytes_ += reply.value.size();
    found_.flood = bytes_ > largest_answers || (reply.failure != nullptr && reply.failure->flood);
  }

  bool usable(const Reply& reply) {
    if (!reply.failed()) return true;
    if (!reading_.tolerant) expect(copy_.context.cluster, reply);
    const Failure failure = failure_of_read(copy_.context.cluster, reply);
    const auto same = [&](const Failure& one) { return one.server() == failure.server(); };
    if (std::ranges::none_of(found_.unreachable, same)) found_.unreachable.push_back(failure);
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
    found_.directory = true;
    directory.add(reply.value);
    if (directory.damaged_lines() == 0) return;
    reading_.sink.damaged(
        CorruptData(copy_.keys.directory(group) + " holds lines that are not of an event log's directory",
                    copy_.context.cluster.address_of(reply.server)));
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

  // A part is named before it is created; but the directory may have been read just before that.
  void find_lost_directories() {
    const auto suspects = groups_without_their_parts();
    if (suspects.empty()) return;
    for (const std::int64_t group : suspects) batch_.push_back(Request::get(copy_.keys.directory(group)));
    send({suspects.begin(), suspects.end()});
    const auto lost = groups_without_their_parts();
    for (ChunkText& chunk : chunks_) chunk.directory_lost = lost.contains(chunk.chunk / chunks_per_directory);
  }

  const OneCopy& copy_;
  LogReading& reading_;
  LogFound& found_;
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
    const auto line = parse_directory_line(take_line(value));
    if (!line) {
      ++damaged_;
    } else if (line->named) {
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

std::vector<ChunkText> read_copy(const OneCopy& copy, std::span<const std::int64_t> chunks,
                                 LogReading& reading, PartWindow window) {
  return ChunkReader(copy, reading, window).read(chunks);
}

}  // namespace mcds
