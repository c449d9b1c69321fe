#include "common/operations/structure_merger.hpp"

#include <array>
#include <unordered_map>
#include <unordered_set>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/cluster/decorators.hpp"
#include "common/journal/journal.hpp"

namespace mcds::moving {

namespace {

constexpr int max_checks = 8;
constexpr std::size_t segments_per_trip = 8;

// Returns the lines of `wanted` that `have` lacks, each with its line feed.
std::string lines_lacking(std::string_view have, std::string_view wanted) {
  std::unordered_set<std::string_view> known;
  for (const std::string_view line : split(have, '\n')) known.insert(line);
  std::string lacking;
  for (const std::string_view line : split(wanted, '\n')) {
    if (!line.empty() && known.insert(line).second) append_all(lacking, {line, "\n"});
  }
  return lacking;
}

// Returns the incarnation of a log's part: `E1 <part> <incarnation> *<checksum>`, then its lines.
std::string_view incarnation_of(std::string_view part) {
  const auto words = split(take_line(part), ' ');
  return words.size() == 4 ? words[2] : std::string_view();
}

std::string_view without_header(std::string_view part) {
  take_line(part);
  return part;
}

// Sends every request to one server.
class SingleServerCluster final : public Decorator {
 public:
  SingleServerCluster(Cluster& inner, std::size_t server) : Decorator(inner), server_(server) {}
  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override {
    std::vector<Request> there(batch.begin(), batch.end());
    for (Request& request : there) request.server = server_;
    return inner().execute(there);
  }

 private:
  std::size_t server_;
};

struct BothContexts {
  BothContexts(const Context& from, Cluster& to, const StructureMerger::Place& place)
      : old_server(from.cluster, place.from),
        new_server(to, place.to),
        old_one{old_server, from.clock, from.random, "", 1},
        new_one{new_server, from.clock, from.random, "", 1} {}

  SingleServerCluster old_server, new_server;
  Context old_one, new_one;
};

// Decides where lines that only the new place has go among the old lines: after them, except that lines about
// the same element keep their order in the new place.
class Placing {
 public:
  Placing(const std::vector<JournalLine>& old_lines, const std::vector<JournalLine>& new_lines)
      : new_lines_(new_lines), size_(old_lines.size()), highest_(new_lines.size(), old_lines.size()) {
    for (std::size_t i = 0; i < old_lines.size(); ++i) places_.emplace(old_lines[i].id, i);
    find_highest();
  }

  // Returns the position of new_lines[i] in the old place, if that has it.
  std::optional<std::size_t> place_of(std::size_t i) const {
    const auto place = places_.find(new_lines_[i].id);
    return place == places_.end() ? std::nullopt : std::optional(place->second);
  }

  // Returns how many old lines come before new_lines[i]. Call it for all lines, in order.
  std::size_t next(std::size_t i) {
    const JournalLine& line = new_lines_[i];
    const auto place = place_of(i);
    if (place) anchor_ = std::max(anchor_, *place + 1);
    const std::size_t chosen = place ? *place + 1 : std::max(highest_[i], lowest_for(line));
    if (line.change == Change::clear) lowest_of_all_ = std::max(lowest_of_all_, chosen);
    if (line.change != Change::forgotten) lowest_[line.element] = std::max(lowest_[line.element], chosen);
    return chosen;
  }

 private:
  using Places = std::unordered_map<std::string_view, std::size_t>;

  void find_highest() {
    Places highest;
    std::size_t of_clears = size_;
    for (std::size_t i = new_lines_.size(); i-- > 0;) {
      const JournalLine& line = new_lines_[i];
      if (line.change == Change::forgotten) continue;
      std::size_t& of_element = highest.try_emplace(line.element, size_).first->second;
      highest_[i] = std::min(of_clears, of_element);
      const std::size_t place = place_of(i).value_or(size_);
      of_element = std::min(of_element, place);
      if (line.change == Change::clear) of_clears = std::min(of_clears, place);
    }
  }

  std::size_t lowest_for(const JournalLine& line) const {
    if (line.change == Change::clear) return std::max(anchor_, lowest_of_all_);
    const auto found = lowest_.find(line.element);
    return std::max(lowest_of_all_, found == lowest_.end() ? 0 : found->second);
  }

  const std::vector<JournalLine>& new_lines_;
  std::size_t size_;
  Places places_;                     // positions in the old place, by id
  std::vector<std::size_t> highest_;  // limit for each line, by the lines that follow it
  Places lowest_;                     // limit by element, by the lines so far
  std::size_t lowest_of_all_ = 0;     // by the last clear
  std::size_t anchor_ = 0;            // after all shared lines so far
};

// Chooses between a line and the same line in forgotten form. A forgotten addition was removed there and
// stays removed. A removal is kept, since it may still have something to remove.
const JournalLine& telling_more(const JournalLine& one, const JournalLine& other) {
  if (other.change == Change::forgotten) return one.change == Change::add ? other : one;
  return one.change == Change::forgotten && other.change != Change::add ? other : one;
}

// Returns all lines of both.
std::vector<JournalLine> merged(const std::vector<JournalLine>& old_lines,
                                const std::vector<JournalLine>& new_lines) {
  Placing placing(old_lines, new_lines);
  std::vector<const JournalLine*> shared;
  for (const JournalLine& line : old_lines) shared.push_back(&line);
  std::vector<std::vector<const JournalLine*>> behind(old_lines.size() + 1);
  for (std::size_t i = 0; i < new_lines.size(); ++i) {
    const std::size_t next = placing.next(i);
    if (const auto place = placing.place_of(i))
      shared[*place] = &telling_more(old_lines[*place], new_lines[i]);
    else
      behind[next].push_back(&new_lines[i]);
  }
  std::vector<JournalLine> lines;
  for (std::size_t i = 0; i <= old_lines.size(); ++i) {
    if (i != 0) lines.push_back(*shared[i - 1]);
    for (const JournalLine* line : behind[i]) lines.push_back(*line);
  }
  return lines;
}

}  // namespace

bool StructureMerger::has_segments(std::string_view value) {
  const auto root = decode_journal_root(value);
  return root && !root->segments.empty();
}

bool StructureMerger::is_of(Kind kind, std::string_view value) {
  switch (kind) {
    case Kind::journal: return decode_journal_root(value).has_value();
    case Kind::log_part: return value.starts_with("E1 ") && is_identifier(incarnation_of(value));
    case Kind::directory: return value.starts_with("N ") || value.starts_with("W ");
    case Kind::plain:
    case Kind::locklike: break;
  }
  return false;
}

// Returns false if a segment that the root names no longer exists.
bool StructureMerger::copy_segments(const Place& place, std::string_view value) const {
  const auto root = decode_journal_root(value);
  if (!root) return true;
  std::vector<Request> gets;
  for (const SegmentName& segment : root->segments)
    gets.push_back(Request::get(place.key + ":s:" + segment.id));
  for (std::size_t at = 0; at < gets.size(); at += segments_per_trip) {
    std::vector<Request> here, there;
    for (std::size_t i = at; i < std::min(gets.size(), at + segments_per_trip); ++i) {
      here.push_back(Request(gets[i]).on(place.from));
      there.push_back(Request(gets[i]).on(place.to));
    }
    const std::vector<Reply> known = to_.execute(there);
    const std::vector<Reply> found = from_.cluster.execute(here);
    std::vector<Request> adds;
    for (std::size_t i = 0; i < here.size(); ++i) {
      if (known[i].outcome == Outcome::hit) continue;
      if (expect_read(from_.cluster, found[i]).outcome != Outcome::hit) return false;
      adds.push_back(Request::add(here[i].key, found[i].value, Exptime::never()).on(place.to));
    }
    for (const Reply& reply : to_.execute(adds)) static_cast<void>(expect(to_, reply));
  }
  return true;
}

Reply StructureMerger::with_segments(const Place& place, Reply root) const {
  for (int look = 0; look < max_checks; ++look) {
    if (copy_segments(place, root.value)) return root;
    // Either a compaction has replaced the segments, so that the current root names others, or one is lost.
    Reply again = from_.cluster.execute(Request::probe(place.key, place.from));
    if (expect_read(from_.cluster, again).outcome != Outcome::hit) return again;
    if (again.value == root.value) return root;  // readers report the lost segment in the new place too
    root = std::move(again);
  }
  throw Failure(ErrorCode::try_again,
                "the journal is compacted faster than it can be copied; run the move again",
                from_.cluster.address_of(place.from));
}

void StructureMerger::merge_journals(const Place& place) const {
  const BothContexts both(from_, to_, place);
  const JournalContents contents = Journal(both.old_one, place.key).read();
  if (!contents.found) return;
  // Losses on either side must still be reported afterwards.
  Journal::Options options;
  const JournalContents there = Journal(both.new_one, place.key).read();
  options.lossy = contents.loss.any() || there.loss.any();
  const bool done =
      Journal(both.new_one, place.key, options)
          .compact([&](const std::vector<JournalLine>& lines) { return merged(contents.lines, lines); },
                   true);
  if (!done)
    throw Failure(ErrorCode::bad_data,
                  "nothing was merged: on the new server " + place.key +
                      " is gone, or has lines in an unknown form; if it is gone, run the move again");
  if (there.incarnation != contents.incarnation)
    withdraw_shard(place, contents.incarnation, there.incarnation);
  if (contents.loss.any())
    throw Failure(ErrorCode::bad_data, "the old server has lost part of " + place.key +
                                           "; the rest was merged into the new server");
}

// Withdraws the entry of a shard of a table or hash in every copy of the manifest: its lines are now in a
// shard of another incarnation. A line that removes an entry counts also if the entry itself is merged later.
// A move in the other direction may have withdrawn the shard that is there, whose loss must be reported: its
// own copy of the manifest names it again.
void StructureMerger::withdraw_shard(const Place& place, const std::string& incarnation,
                                     const std::string& there) const {
  constexpr std::string_view mark = ":i:";
  const auto ours = structure_in(place.key, "");
  const std::size_t at = place.key.rfind(mark);
  if (!ours || (ours->name.structure != "table" && ours->name.structure != "hash") || at == std::string::npos)
    return;
  const std::string manifest = place.key.substr(0, at + mark.size() - 1);
  const auto now = std::chrono::floor<std::chrono::seconds>(from_.clock.wall().time_since_epoch()).count();
  const std::string operation =
      hex64(static_cast<std::uint64_t>(now) << 32 | (from_.random.bits() & 0xffffffff));
  const std::string shard = place.key.substr(at + mark.size()) + ':';
  const std::array lines{JournalLine{Change::remove, journal_line_id(operation, 0), shard + incarnation},
                         JournalLine{Change::add, journal_line_id(operation, 1), shard + there}};
  const auto manifests = to_.placement().servers_of(manifest, ours->name.copies);
  const auto shards = to_.placement().servers_of(place.key, ours->name.copies);
  for (std::size_t copy = 0; copy < manifests.size(); ++copy) {
    const bool same_copy = copy < shards.size() && shards[copy] == place.to;
    SingleServerCluster on(to_, manifests[copy]);
    const Context context{on, from_.clock, from_.random, "", 1};
    static_cast<void>(
        Journal(context, manifest).append(std::span(lines).first(same_copy ? 2 : 1), [] { return true; }));
  }
}

// Withdraws the part's entry in the directory: its events are now in a part of another incarnation. The
// directory of `<log>:<C>x<N>:<i>[.<k>]` is `<log>:<C>x<N>:dir:<i / 32>`.
void StructureMerger::withdraw(const Place& place, std::string_view incarnation) const {
  constexpr std::int64_t chunks_per_directory = 32;
  const std::size_t colon = place.key.rfind(':');
  const std::string_view part = std::string_view(place.key).substr(colon + 1);
  const auto chunk = parse_i64(part.substr(0, part.find('.')));
  if (!chunk || *chunk < 0)
    throw CorruptData("the name of this part of a log does not contain a chunk number");
  const std::string directory =
      place.key.substr(0, colon) + ":dir:" + std::to_string(*chunk / chunks_per_directory);
  const std::string text = "W " + std::string(part) + ' ' + std::string(incarnation);
  static_cast<void>(
      expect(to_, to_.execute(Request::append(directory, text + " *" + checksum(text) + '\n'))));
}

void StructureMerger::merge_lines(const Place& place, Kind kind, std::string_view old_value) const {
  const Reply now = to_.execute(Request::get(place.key).on(place.to));
  if (expect_read(to_, now).outcome != Outcome::hit)
    throw Failure(ErrorCode::try_again,
                  "the item on the new server disappeared during the merge; run the move again");
  const bool other_incarnation =
      kind == Kind::log_part && incarnation_of(old_value) != incarnation_of(now.value);
  const std::string lacking =
      lines_lacking(now.value, other_incarnation ? without_header(old_value) : old_value);
  if (!lacking.empty()) {
    const Reply reply = expect(to_, to_.execute(Request::append(place.key, lacking).on(place.to)));
    if (reply.outcome != Outcome::stored)
      throw Failure(ErrorCode::refused,
                    "the item on the new server has no room for the lines that only the old server has");
  }
  if (other_incarnation) withdraw(place, incarnation_of(old_value));
}

void StructureMerger::merge(const Place& place, Kind kind, std::string_view old_value) const {
  if (kind == Kind::journal) return merge_journals(place);
  merge_lines(place, kind, old_value);
}

bool StructureMerger::has_all(const Place& place, Kind kind, std::string_view old_value) const {
  if (kind == Kind::journal) {
    const BothContexts both(from_, to_, place);
    std::unordered_set<std::string> known;
    for (const JournalLine& line : Journal(both.new_one, place.key).read().lines) known.insert(line.id);
    const std::vector<JournalLine> lines = Journal(both.old_one, place.key).read().lines;
    return std::ranges::all_of(lines, [&](const JournalLine& line) { return known.contains(line.id); });
  }
  const Reply now = to_.execute(Request::get(place.key).on(place.to));
  if (expect_read(to_, now).outcome != Outcome::hit) return false;
  return lines_lacking(now.value, kind == Kind::log_part ? without_header(old_value) : old_value).empty();
}

}  // namespace mcds::moving
