#include "common/structures/eventlog/read.hpp"

#include <algorithm>
#include <tuple>

#include "common/base/bounds.hpp"

namespace mcds {

namespace {

// Of third and further parts, of which a directory may name more than anybody has.
constexpr std::size_t requests_per_trip = 8192;
constexpr std::int64_t parts_per_round = 128;  // of each chunk

bool has_part(const ChunkText& copy, const PartName& name, std::string_view incarnation) {
  const auto part = copy.parts.find({0, name.part});
  if (part == copy.parts.end()) return false;
  const auto header = parse_part_header(part->second.value, name);
  return header && header->incarnation == incarnation;
}

// Whether nothing is missing of what this copy is known to have had. Its directory is on another server and
// may be lost.
bool has_all(const ChunkText& copy) {
  std::int64_t next = 0;
  for (const auto& [number, part] : copy.parts) {
    if (part.unreachable && number.part > copy.last_named) continue;
    if (part.unreachable || number.part != next++) return false;
  }
  if (next == 0) return false;
  return std::all_of(copy.named.begin(), copy.named.end(),
                     [&](const auto& named) { return has_part(copy, named.first, named.second); });
}

std::map<EventId, std::string_view> event_lines(const ChunkText& copy) {
  std::map<EventId, std::string_view> lines;
  for (const auto& [number, part] : copy.parts) {
    std::string_view rest = part.value;
    while (!rest.empty()) {
      const std::string_view line = take_line(rest);
      if (const auto event = parse_event_line(line)) lines.emplace(event->id, line);
    }
  }
  return lines;
}

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

bool LogDirectory::knows(const PartName& name, std::string_view incarnation) const {
  return named_.contains({name, std::string(incarnation)});
}

std::int64_t LogDirectory::last_part_of(std::int64_t chunk) const {
  const auto after = named_.lower_bound({{chunk + 1, 0}, ""});
  if (after == named_.begin()) return -1;
  const PartName& last = std::prev(after)->first.first;
  return last.chunk == chunk ? last.part : -1;
}

namespace {

class ChunkReader {
 public:
  ChunkReader(const OneCopy& copy, LogReading& reading, PartWindow window)
      : context_(copy.context),
        shape_(copy.shape),
        keys_(copy.keys),
        alone_(copy.alone),
        reading_(reading),
        found_(reading.found),
        window_(window) {}

  std::vector<ChunkText> read(std::span<const std::int64_t> chunks) {
    // Of the moment before the parts are asked for: what was named after that may have been created after
    // that.
    const WallTime named_until =
        context_.clock.wall() - LogReader::grace - std::chrono::milliseconds(shape_.chunk_s * 500);
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
      chunk.named = directories_[chunk.chunk / chunks_per_directory].named(chunk.chunk, named_until);
      const LogDirectory& directory = directories_[chunk.chunk / chunks_per_directory];
      for (const auto& [number, part] : chunk.parts) {
        const PartName name{chunk.chunk, number.part};
        const auto header = parse_part_header(part.value, name);
        const bool known = !header || directory.state == LogDirectory::State::unreachable ||
                           directory.knows(name, header->incarnation);
        if (!known) chunk.unnamed.emplace_back(name, header->incarnation);
      }
      chunk.all_named = directories_[chunk.chunk / chunks_per_directory].named(chunk.chunk, WallTime::max());
      chunk.last_named = directory.last_part_of(chunk.chunk);
      // It goes on, and nobody says how far.
      const auto first = chunk.parts.find({0, 0});
      const bool begun = first != chunk.parts.end() && !first->second.unreachable;
      if (begun && directory.state == LogDirectory::State::unreachable) chunk.last_named = most_parts;
    }
    return std::move(chunks_);
  }

 private:
  struct Asked {
    std::size_t position;  // in chunks_
    PartName name;
  };

  // Two parts of every chunk: that a first part is small does not prove that there is no second one.
  void ask_first(std::span<const std::int64_t> chunks) {
    std::vector<Request> batch;
    std::vector<Asked> asked;
    std::vector<std::int64_t> groups;
    for (const std::int64_t chunk : chunks) {
      for (std::int64_t part = window_.first; part < std::min(window_.first + 2, window_.end()); ++part) {
        asked.push_back({chunks_.size(), {chunk, part}});
        batch.push_back(keys_.get({chunk, part}));
      }
      chunks_.push_back({.chunk = chunk, .parts = {}, .named = {}});
      groups.push_back(chunk / chunks_per_directory);
    }
    next_part_.assign(chunks_.size(), std::min(window_.first + 2, window_.end()));
    std::sort(groups.begin(), groups.end());
    groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
    for (const std::int64_t group : groups) batch.push_back(Request::get(keys_.directory(group)));
    batch.push_back(Request::get(keys_.conf()));
    execute(batch, asked, groups);
  }

  bool ask_further() {
    std::vector<Request> batch;
    std::vector<Asked> asked;
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      const std::int64_t chunk = chunks_[i].chunk;
      std::int64_t end = directories_[chunk / chunks_per_directory].last_part_of(chunk) + 2;
      const auto before = chunks_[i].parts.find({0, next_part_[i] - 1});
      const bool goes_on = before != chunks_[i].parts.end() && !before->second.unreachable;
      if (goes_on) end = std::max(end, next_part_[i] + 1);
      end = std::min({end, window_.end(), next_part_[i] + parts_per_round});
      if (end <= next_part_[i] || (!goes_on && end <= next_part_[i] + 1)) continue;
      for (std::int64_t part = next_part_[i]; part < end; ++part) {
        asked.push_back({i, {chunk, part}});
        batch.push_back(keys_.get({chunk, part}));
      }
      next_part_[i] = end;
    }
    if (batch.empty()) return false;
    execute(batch, asked, {});
    return true;
  }

  void leave_out_the_rest() {
    for (ChunkText& chunk : chunks_) {
      const std::int64_t named = directories_[chunk.chunk / chunks_per_directory].last_part_of(chunk.chunk);
      const std::int64_t end = window_.end();
      chunk.goes_on = end < most_parts && (named >= end || chunk.parts.contains({0, end - 1}));
      for (std::int64_t part = 0; part < window_.first; ++part) chunk.parts[{0, part}].unreachable = true;
      for (std::int64_t part = end; part <= named; ++part) chunk.parts[{0, part}].unreachable = true;
    }
  }

  // A part that was missing and stands before one that is there may have been created between the two looks;
  // it was there before the later one was. Only a part that is missing now is lost.
  void ask_holes() {
    std::vector<Request> batch;
    std::vector<Asked> asked;
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      const auto& parts = chunks_[i].parts;
      const std::int64_t last = parts.empty() ? 0 : parts.rbegin()->first.part;
      for (std::int64_t part = 0; part < last; ++part) {
        if (parts.contains({0, part})) continue;
        asked.push_back({i, {chunks_[i].chunk, part}});
        const PartName name{chunks_[i].chunk, part};
        batch.push_back(keys_.get(name));
        if (batch.size() == requests_per_trip) ask_these(batch, asked);
      }
    }
    ask_these(batch, asked);
  }

  // Versions before 0.2 placed further parts of an only copy by their own bytes: one that is named and not
  // where it belongs may be there. Of several copies it would be another's.
  void ask_misplaced() {
    if (!alone_) return;
    std::vector<Request> batch;
    std::vector<Asked> asked;
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      const std::int64_t chunk = chunks_[i].chunk;
      const std::int64_t end =
          std::min(directories_[chunk / chunks_per_directory].last_part_of(chunk) + 1, most_parts);
      for (std::int64_t part = 1; part < end; ++part) {
        if (chunks_[i].parts.contains({0, part})) continue;
        Request request = keys_.get({chunk, part});
        const std::size_t server = context_.cluster.server_of(request);
        request.with.clear();
        if (context_.cluster.server_of(request) == server) continue;
        asked.push_back({i, {chunk, part}});
        batch.push_back(std::move(request));
        if (batch.size() == requests_per_trip) ask_these(batch, asked);
      }
    }
    ask_these(batch, asked);
  }

  void ask_these(std::vector<Request>& batch, std::vector<Asked>& asked) {
    if (!batch.empty()) execute(batch, asked, {});
    batch.clear();
    asked.clear();
  }

  // Parts first, then directories, then the conf key if there is one more.
  void execute(std::vector<Request>& batch, const std::vector<Asked>& asked,
               std::span<const std::int64_t> groups) {
    for (std::size_t from = 0; from < batch.size() && !found_.flood; from += requests_per_trip) {
      auto replies = context_.cluster.execute(
          std::span<const Request>(batch).subspan(from, std::min(requests_per_trip, batch.size() - from)));
      for (std::size_t i = 0; i < replies.size() && !found_.flood; ++i) {
        hold(replies[i]);
        if (found_.flood) return;
        const std::size_t which = from + i;
        if (which < asked.size()) {
          take_part(asked[which], std::move(replies[i]));
        } else if (which < asked.size() + groups.size()) {
          take_directory(groups[which - asked.size()], replies[i]);
        } else if (!replies[i].failed()) {
          take_conf(replies[i]);
        }
      }
    }
  }

  void take_conf(const Reply& reply) {
    const bool hit = reply.outcome == Outcome::hit;
    found_.conf_answered = true;
    found_.conf = parse_in_use(hit ? reply.value : "", context_.clock.wall());
    if (hit) found_.shapes = parse_conf(reply.value, context_.clock.wall());
  }

  void hold(const Reply& reply) {
    bytes_ += reply.value.size();
    found_.flood = bytes_ > largest_answers || (reply.failure != nullptr && reply.failure->flood);
  }

  bool usable(const Reply& reply) {
    if (!reply.failed()) return true;
    if (!reading_.tolerant) expect(context_.cluster, reply);
    const std::string server = context_.cluster.address_of(reply.server);
    const auto same = [&](const Failure& failure) { return failure.server() == server; };
    if (std::none_of(found_.unreachable.begin(), found_.unreachable.end(), same)) {
      found_.unreachable.emplace_back(error_code_of_silence(*reply.failure), reply.failure->message, server);
    }
    return false;
  }

  void take_part(const Asked& asked, Reply reply) {
    const bool known = usable(reply);
    if (known && reply.outcome != Outcome::hit) return;
    chunks_[asked.position].parts[{0, asked.name.part}] = {std::move(reply.value), reply.server, !known};
  }

  void take_directory(std::int64_t group, const Reply& reply) {
    LogDirectory& directory = directories_[group];
    if (!usable(reply)) {
      directory.state = LogDirectory::State::unreachable;
      return;
    }
    directory.state =
        reply.outcome == Outcome::hit ? LogDirectory::State::present : LogDirectory::State::missing;
    if (reply.outcome != Outcome::hit) return;
    found_.directory = true;
    directory.add(reply.value);
    if (directory.damaged_lines() == 0) return;
    reading_.sink.damaged(
        CorruptData(keys_.directory(group) + " holds lines that are not of an event log's directory",
                    context_.cluster.address_of(reply.server)));
  }

  std::set<std::int64_t> groups_without_their_parts() const {
    std::set<std::int64_t> groups;
    for (const ChunkText& chunk : chunks_) {
      const std::int64_t group = chunk.chunk / chunks_per_directory;
      const LogDirectory& directory = directories_.at(group);
      if (directory.state == LogDirectory::State::unreachable) continue;
      for (const auto& [number, text] : chunk.parts) {
        const PartName name{chunk.chunk, number.part};
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
    const std::vector<std::int64_t> groups(suspects.begin(), suspects.end());
    std::vector<Request> batch;
    for (const std::int64_t group : groups) batch.push_back(Request::get(keys_.directory(group)));
    execute(batch, {}, groups);
    const auto lost = groups_without_their_parts();
    for (ChunkText& chunk : chunks_) chunk.directory_lost = lost.contains(chunk.chunk / chunks_per_directory);
  }

  Context& context_;
  const RingShape& shape_;
  const LogKeys& keys_;
  bool alone_;
  LogReading& reading_;
  LogFound& found_;
  PartWindow window_;
  std::vector<ChunkText> chunks_;
  std::vector<std::int64_t> next_part_;
  std::size_t bytes_ = 0;
  std::map<std::int64_t, LogDirectory> directories_;
};

}  // namespace

std::vector<ChunkText> read_copy(const OneCopy& copy, std::span<const std::int64_t> chunks,
                                 LogReading& reading, PartWindow window) {
  return ChunkReader(copy, reading, window).read(chunks);
}

std::vector<NamedPart> lost_parts(const ChunkText& copy) {
  std::vector<NamedPart> lost;
  for (const auto& [name, incarnation] : copy.all_named) {
    const auto part = copy.parts.find({0, name.part});
    const bool unreachable = part != copy.parts.end() && part->second.unreachable;
    if (!unreachable && !has_part(copy, name, incarnation)) lost.emplace_back(name, incarnation);
  }
  return lost;
}

UnitedChunk unite(std::span<const ChunkText* const> copies) {
  UnitedChunk united;
  std::vector<CopyState>& states = united.states;
  bool silent = true;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const ChunkText& copy = *copies[i];
    const auto of_copy = static_cast<std::int64_t>(i);
    united.text.chunk = copy.chunk;
    united.text.directory_lost = (i == 0 || united.text.directory_lost) && copy.directory_lost;
    bool lacks_answer = false;
    for (const auto& [number, part] : copy.parts) {
      united.text.parts[{of_copy, number.part}] = part;
      if (part.unreachable && number.part <= copy.last_named) lacks_answer = united.blocked = true;
    }
    for (const auto& [name, incarnation] : copy.named) {
      united.text.named.push_back({{name.chunk, name.part, of_copy}, incarnation});
    }
    const auto first = copy.parts.find({0, 0});
    const bool is_silent = first != copy.parts.end() && first->second.unreachable;
    silent = silent && is_silent;
    united.text.whole = united.text.whole || has_all(copy);
    states.push_back({.has = has_all(copy)});
    if (is_silent || lacks_answer) states.back().failure = Failure(ErrorCode::unavailable, "no answer");
  }
  united.blocked = (united.blocked || silent) && !united.text.whole;
  // One copy that is whole is not enough where an event is on most copies, and that one missed it.
  if (quorum(copies.size()) > 1) united.blocked = failure_of(Part::reading, states).has_value();
  return united;
}

bool RingText::any_missing() const {
  return std::any_of(missing.begin(), missing.end(), [](const auto& of_chunk) {
    return std::any_of(of_chunk.begin(), of_chunk.end(), [](const auto& lines) { return !lines.empty(); });
  });
}

std::optional<Failure> RingText::unconfirmed(std::span<const std::optional<Failure>> unrefilled) const {
  for (std::size_t i = 0; i < missing.size(); ++i) {
    const auto lacking = [](const std::string& lines) { return !lines.empty(); };
    if (std::none_of(missing[i].begin(), missing[i].end(), lacking)) continue;
    std::vector<CopyState> states = chunks[i].states;
    for (std::size_t copy = 0; copy < states.size(); ++copy) {
      states[copy].has = true;
      if (!states[copy].failure && lacking(missing[i][copy])) states[copy].failure = unrefilled[copy];
    }
    if (auto failure = failure_of(Part::answering, states)) return failure;
  }
  return std::nullopt;
}

bool RingText::lacks(std::size_t copy) const {
  for (std::size_t i = 0; i < missing.size(); ++i) {
    const ChunkText& text = copies[copy][i];
    const bool misnamed = chunks[i].text.whole && (!text.unnamed.empty() || !lost_parts(text).empty());
    if (misnamed || !missing[i][copy].empty()) return true;
  }
  return !missing.empty() && confs.lacks(copy);
}

std::vector<std::string> missing_lines(std::span<const ChunkText* const> copies, WallTime young) {
  std::vector<std::string> missing(copies.size());
  std::vector<std::map<EventId, std::string_view>> lines;
  for (const ChunkText* copy : copies) lines.push_back(event_lines(*copy));
  for (std::size_t to = 0; to < copies.size(); ++to) {
    const auto& parts = copies[to]->parts;
    if (std::any_of(parts.begin(), parts.end(), [](const auto& part) { return part.second.unreachable; }))
      continue;
    bool old = false;
    for (std::size_t from = 0; from < copies.size(); ++from) {
      for (const auto& [id, line] : lines[from]) {
        if (!lines[to].emplace(id, line).second) continue;
        old = old || id.time() < young;
        missing[to].append(line).append("\n");
      }
    }
    if (!old) missing[to].clear();
  }
  return missing;
}

}  // namespace mcds
