// The bytes of a journal: pure functions; journal.hpp describes their use.
//
//   J1 <incarnation> *<checksum>          first line of the root; 16 random hex digits, another for every
//                                         creation
//   S <segment id> <lines> *<checksum>    of the root: the segments, oldest first, before all other lines
//   + <id>.<n> <element> *<checksum>      one change: the n-th of the operation <id> (16 hex digits) adds an
//                                         element
//   - <id>.<n> <element> *<checksum>      … removes all equal elements added before
//   ! <id>.<n> *<checksum>                … removes all elements added before
//   = <id>.<n> *<checksum>                … was compacted away; remembered, so that a late repetition does
//                                         nothing
//                                         (array.hpp has word of decisions in ids of this kind)
//   # <spaces> <no checksum>              padding: says nothing
//
// <element> is any text without a line feed. A segment is lines only. Lines with a wrong checksum are not
// ours: foreign().
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mcds {

enum class Change : char { add = '+', remove = '-', clear = '!', forgotten = '=' };

struct JournalLine {
  Change change;
  std::string id;       // `<16 hex digits>.<n>`: of all lines of equal id only the first counts
  std::string element;  // of add and remove
};

std::string encode(const JournalLine& line);
void append_line(std::string& text, const JournalLine& line);

struct SegmentName {
  std::string id;
  std::uint64_t lines = 0;
};

struct JournalRoot {
  std::string incarnation;
  std::vector<SegmentName> segments;
  std::string_view tail;  // everything behind the segment lines, as stored
};

std::string journal_header(std::string_view incarnation);
// The name of a segment that never exists, so that something counts as lost; and the line with it that
// follows the header.
SegmentName lost_segment();
std::string lost_segment_line();
std::string encode(const JournalRoot& root);
// nullopt: this is not a journal.
std::optional<JournalRoot> decode_journal_root(std::string_view value);

// A line where it stands.
struct JournalLineView {
  Change change;
  std::string_view id;
  std::string_view element;
};
using TellLine = std::function<void(const JournalLineView& line)>;
// Passes on every line of ours, in order; returns the number of others.
std::uint64_t tell_journal_lines(std::string_view text, const TellLine& tell);

std::vector<JournalLine> decode_journal_lines(std::string_view text);
// `text` without padding lines.
std::string without_padding(std::string_view text);
std::string padding_line(std::size_t size);

}  // namespace mcds
