#include "common/structures/move/roots.hpp"

#include <algorithm>
#include <unordered_set>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/primitives/journal/journal.hpp"
#include "common/structures/array/array.hpp"

namespace mcds::moving {

namespace {

constexpr int most_looks = 8;
constexpr std::size_t segments_per_trip = 8;

std::string_view first_line(std::string_view value) {
  return value.substr(0, value.find('\n'));
}

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

// `E1 <part> <incarnation> *<checksum>`
std::string_view incarnation_of(std::string_view header) {
  const auto words = split(header, ' ');
  return words.size() == 4 ? words[2] : std::string_view();
}

}  // namespace

std::vector<Reply> OneServer::execute(std::span<const Request> batch) {
  std::vector<Request> there(batch.begin(), batch.end());
  for (Request& request : there) request.server = server_;
  return inner().execute(there);
}

bool Roots::has_segments(std::string_view value) {
  const auto root = decode_journal_root(value);
  return root && !root->segments.empty();
}

bool Roots::is_of(Kind kind, std::string_view value) {
  switch (kind) {
    case Kind::journal:
      return decode_journal_root(value).has_value();
    case Kind::log_part:
      return value.starts_with("E1 ") && incarnation_of(first_line(value)).size() == 16;
    case Kind::directory:
      return value.starts_with("N ") || value.starts_with("W ");
    case Kind::plain:
    case Kind::locklike:
      break;
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
  OneServer old_server(from_.cluster, place.from), new_server(to_, place.to);
  const Context old_context{old_server, from_.clock, from_.random, "", 1};
  const Context new_context{new_server, from_.clock, from_.random, "", 1};
  const JournalContents contents = Journal(old_context, place.key).read();
  if (!contents.found) return;
  // What is lost on either side goes on being told.
  Journal::Options options;
  options.lossy = contents.loss.any() || Journal(new_context, place.key).read().loss.any();
  Journal(new_context, place.key, options)
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
  std::string_view wanted = old_value;
  const std::string_view header = first_line(wanted);
  const bool other_life = kind == Kind::log_part && header != first_line(now.value);
  if (other_life) wanted.remove_prefix(std::min(header.size() + 1, wanted.size()));
  const std::string lacking = lines_lacking(now.value, wanted);
  if (!lacking.empty()) {
    const Reply reply = expect(to_, to_.execute(Request::append(place.key, lacking).on(place.to)));
    if (reply.outcome != Outcome::stored)
      throw Failure(ErrorCode::refused, "the new one has no room for the lines that only the old one has");
  }
  if (other_life) withdraw(place, incarnation_of(header));
}

void Roots::unite(const Place& place, Kind kind, std::string_view old_value) const {
  if (kind == Kind::journal) return unite_journals(place);
  unite_lines(place, kind, old_value);
}

bool Roots::has_all(const Place& place, Kind kind, std::string_view old_value) const {
  if (kind == Kind::journal) {
    OneServer old_server(from_.cluster, place.from), new_server(to_, place.to);
    const Context old_context{old_server, from_.clock, from_.random, "", 1};
    const Context new_context{new_server, from_.clock, from_.random, "", 1};
    std::unordered_set<std::string> known;
    for (const JournalLine& line : Journal(new_context, place.key).read().lines) known.insert(line.id);
    const std::vector<JournalLine> lines = Journal(old_context, place.key).read().lines;
    return std::all_of(lines.begin(), lines.end(),
                       [&](const JournalLine& line) { return known.contains(line.id); });
  }
  const Reply now = to_.execute(Request::get(place.key).on(place.to));
  if (expect_read(to_, now).outcome != Outcome::hit) return false;
  const std::string_view header = first_line(old_value);
  if (kind == Kind::log_part) old_value.remove_prefix(std::min(header.size() + 1, old_value.size()));
  return lines_lacking(now.value, old_value).empty();
}

}  // namespace mcds::moving
