// Encodes and decodes the bytes of a journal. The functions are pure; journal.hpp describes their use.
//
//   J1 <incarnation> *<checksum>          first line of the root; 16 random hex digits, new per creation
//   S <segment id> <lines> *<checksum>    of the root: the segments, oldest first, before all other lines
//   + <id>.<n> <element> *<checksum>      one change: the n-th of the operation <id> (16 hex digits) adds an
//                                         element
//   - <id>.<n> <element> *<checksum>      … removes all equal elements added before
//   ! <id>.<n> *<checksum>                … removes all elements added before
//   = <id>.<n> *<checksum>                … was compacted away; kept so that a late repetition does nothing
//   # <spaces> <no checksum>              padding; has no effect
//
// <element> is any text without a line feed. A segment is lines only. Lines with a wrong checksum are
// foreign: they are not ours, but a line of ours may follow foreign bytes that lack a line feed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mcds {

enum class Change : char { add = '+', remove = '-', clear = '!', forgotten = '=' };

struct JournalLine {
  Change change;
  std::string id;       // `<identifier>.<n>`: of lines with the same id only the first counts
  std::string element;  // of add and remove
};

std::string encode(const JournalLine& line);
std::string encode_all(std::span<const JournalLine> lines);
void append_line(std::string& text, const JournalLine& line);

struct SegmentName {
  std::string id;
  std::uint64_t lines = 0;
};

struct JournalRoot {
  std::string incarnation;
  std::vector<SegmentName> segments;
  std::string_view tail;  // everything after the segment lines, as stored
};

std::string journal_header(std::string_view incarnation);
// Returns the name of a segment that never exists. A journal that names it counts as one that has lost a
// segment. lost_segment_line() returns the line that names it, which follows the header.
SegmentName lost_segment();
std::string lost_segment_line();
std::string encode(const JournalRoot& root);
// Returns nullopt if `value` is not a journal.
std::optional<JournalRoot> decode_journal_root(std::string_view value);

// A line as a view into the stored text, or into a JournalLine. It is small because an array has a million.
class JournalLineView {
 public:
  JournalLineView(Change change, std::string_view id, std::string_view element)
      : id_(id.data()),
        element_(element.data()),
        element_size_(static_cast<std::uint32_t>(element.size())),
        id_size_(static_cast<std::uint16_t>(id.size())),
        change_(change) {}
  JournalLineView(const JournalLine& line) : JournalLineView(line.change, line.id, line.element) {}

  Change change() const { return change_; }
  std::string_view id() const { return {id_, id_size_}; }
  std::string_view element() const { return {element_, element_size_}; }

 private:
  const char* id_;
  const char* element_;
  std::uint32_t element_size_;
  std::uint16_t id_size_;
  Change change_;
};
// Deletes the lines whose id an earlier line has.
void keep_first_of_each(std::vector<JournalLineView>& lines);

using ReportLine = std::function<void(const JournalLineView& line)>;
// Lines that cannot be read: damaged ones, and whole ones in a form that another program, or a newer version,
// writes.
struct ForeignLines {
  std::uint64_t damaged = 0, unknown = 0;
};
// Calls `report` for each of our lines in order, also for one that follows foreign bytes in its line. Counts
// the others before it reports what follows them.
void report_journal_lines(std::string_view text, const ReportLine& report, ForeignLines* foreign = nullptr);

std::vector<JournalLine> decode_journal_lines(std::string_view text);
// Returns `text` without padding lines.
std::string without_padding(std::string_view text);
std::string padding_line(std::size_t size);

}  // namespace mcds
