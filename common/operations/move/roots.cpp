#include "common/operations/move/roots.hpp"

#include <algorithm>
#include <unordered_set>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/cluster/decorators.hpp"
#include "common/primitives/journal/journal.hpp"
#include "common/structures/array/array.hpp"

namespace mcds::moving {

namespace {

constexpr int most_looks = 8;
constexpr std::size_t segments_per_trip = 8;

// The lines of `wanted` that `have` lacks, each with its line feed.
std::string lines_lacking(std::string_view have, std::string_view wanted) {
  std::unordered_set<std::string_view> known;
  for (const std::string_view line : split(have, '\n')) known.insert(line);
  std::string lacking;
  for (const std::string_view line : split(wanted, '\n')) {
    if (!line.empty() && known.insert(line).second) append_all(lacking, {line, "\n"});
  }
  return lacking;
}

// Of a log's part: `E1 <part> <incarnation> *<checksum>`, then its lines.
std::string_view incarnation_of(std::string_view part) {
  const auto words = split(take_line(part), ' ');
  return words.size() == 4 ? words[2] : std::string_view();
}

std::string_view without_header(std::string_view part) {
  take_line(part);
  return part;
}

// A cluster in which everything is on one server.
class OneServer final : public Decorator {
 public:
  OneServer(Cluster& inner, std::size_t server) : Decorator(inner), server_(server) {}
  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override {
    std::vector<Request> there(batch.begin(), batch.end());
    for (Request& request : there) request.server = server_;
    return inner().execute(there);
  }

 private:
  std::size_t server_;
};

struct BothPlaces {
  BothPlaces(const Context& from, Cluster& to, const Roots::Place& place)
      : old_server(from.cluster, place.from),
        new_server(to, place.to),
        old_one{old_server, from.clock, from.random, "", 1},
        new_one{new_server, from.clock, from.random, "", 1} {}

  OneServer old_server, new_server;
  Context old_one, new_one;
};

}  // namespace

bool Roots::has_segments(std::string_view value) {
  const auto root = decode_journal_root(value);
  return root && !root->segments.empty();
}

bool Roots::is_of(Kind kind, std::string_view value) {
  switch (kind) {
    case Kind::journal: return decode_journal_root(value).has_value();
    case Kind::log_part: return value.starts_with("E1 ") && incarnation_of(value).size() == 16;
    case Kind::directory: return value.starts_with("N ") || value.starts_with("W ");
    case Kind::plain:
    case Kind::locklike: break;
  }
  return false;
}

// False: one that is named is not there any more.
bool Roots::copy_segments(const Place& place, std::string_view value) const {
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

Reply Roots::with_segments(const Place& place, Reply root) const {
  for (int look = 0; look < most_looks; ++look) {
    if (copy_segments(place, root.value)) return root;
    // Compacted meanwhile, so that the root names others by now; or lost.
    Reply again = from_.cluster.execute(Request::probe(place.key, place.from));
    if (expect_read(from_.cluster, again).outcome != Outcome::hit) return again;
    if (again.value == root.value) return root;  // what names a lost segment goes on saying so
    root = std::move(again);
  }
  throw Failure(ErrorCode::try_again, "it is compacted faster than it can be copied; run the move again",
                from_.cluster.address_of(place.from));
}

void Roots::unite_journals(const Place& place) const {
  const BothPlaces both(from_, to_, place);
  const JournalContents contents = Journal(both.old_one, place.key).read();
  if (!contents.found) return;
  // What is lost on either side goes on being told.
  Journal::Options options;
  options.lossy = contents.loss.any() || Journal(both.new_one, place.key).read().loss.any();
  Journal(both.new_one, place.key, options)
      .compact(
          [&](const std::vector<JournalLine>& lines) {
            return mcds::unite(contents.lines, lines, Newer::second);
          },
          true);
  if (contents.loss.any())
    throw Failure(ErrorCode::bad_data, "a part of it is lost on its old server; what is left was united");
}

// Its events are in a part of another incarnation now.
void Roots::withdraw(const Place& place, std::string_view incarnation) const {
  const PartOfLog part = part_of_log(place.key);
  const std::string text = "W " + part.part + ' ' + std::string(incarnation);
  static_cast<void>(
      expect(to_, to_.execute(Request::append(part.directory, text + " *" + checksum(text) + '\n'))));
}

void Roots::unite_lines(const Place& place, Kind kind, std::string_view old_value) const {
  const Reply now = to_.execute(Request::get(place.key).on(place.to));
  if (expect_read(to_, now).outcome != Outcome::hit)
    throw Failure(ErrorCode::try_again, "it went while it was united; run the move again");
  const bool other_life = kind == Kind::log_part && incarnation_of(old_value) != incarnation_of(now.value);
  const std::string lacking = lines_lacking(now.value, other_life ? without_header(old_value) : old_value);
  if (!lacking.empty()) {
    const Reply reply = expect(to_, to_.execute(Request::append(place.key, lacking).on(place.to)));
    if (reply.outcome != Outcome::stored)
      throw Failure(ErrorCode::refused, "the new one has no room for the lines that only the old one has");
  }
  if (other_life) withdraw(place, incarnation_of(old_value));
}

void Roots::unite(const Place& place, Kind kind, std::string_view old_value) const {
  if (kind == Kind::journal) return unite_journals(place);
  unite_lines(place, kind, old_value);
}

bool Roots::has_all(const Place& place, Kind kind, std::string_view old_value) const {
  if (kind == Kind::journal) {
    const BothPlaces both(from_, to_, place);
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
