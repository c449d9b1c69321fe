#include "common/journal/lines.hpp"

#include <unordered_set>

#include "common/base/bytes.hpp"
#include "common/base/distinct.hpp"
#include "common/primitives/seal.hpp"

namespace mcds {

namespace {

constexpr std::size_t max_id_size = 128;  // an identifier, a dot and a number

template <typename Function>
void for_each_line(std::string_view text, Function function) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    // A line without a line feed was cut off, or something foreign was appended.
    function(text.substr(0, end), end != std::string_view::npos);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

bool is_change(char sign) {
  return std::string_view("+-!=").find(sign) != std::string_view::npos;
}

bool is_id(std::string_view text) {
  const std::size_t dot = text.rfind('.');
  return dot != std::string_view::npos && is_identifier(text.substr(0, dot)) &&
         parse_u64(text.substr(dot + 1)) && text.size() <= max_id_size;
}

std::optional<JournalLineView> decode_line(std::string_view line) {
  const auto body = unseal(line);
  if (!body) return std::nullopt;
  std::string_view rest = *body;
  const std::string_view kind = take_word(rest);
  if (kind.size() != 1 || !is_change(kind[0])) return std::nullopt;
  const auto id = take_word(rest);
  if (!is_id(id)) return std::nullopt;
  const auto change = static_cast<Change>(kind[0]);
  const bool has_element = change == Change::add || change == Change::remove;
  if (has_element == rest.empty()) return std::nullopt;
  return JournalLineView{change, id, rest};
}

bool may_begin(std::string_view line) {
  if (line.size() < 2 || !is_change(line[0]) || line[1] != ' ') return false;
  const auto id = line.substr(2, max_id_size + 1);
  return is_id(id.substr(0, id.find(' ')));
}

std::optional<JournalLineView> salvage(std::string_view line) {
  return mcds::salvage(line, may_begin, decode_line);
}

// Bytes of another program may begin like padding, before a line of ours.
bool is_padding(std::string_view line) {
  return line.starts_with('#') && !salvage(line);
}

}  // namespace

void append_line(std::string& text, const JournalLine& line) {
  const std::size_t start = text.size();
  const char change = static_cast<char>(line.change);
  append_all(text, {{&change, 1}, " ", line.id});
  if (line.change == Change::add || line.change == Change::remove) append_all(text, {" ", line.element});
  append_seal(text, start);
  text += '\n';
}

std::string encode(const JournalLine& line) {
  std::string text;
  append_line(text, line);
  return text;
}

std::string encode_all(std::span<const JournalLine> lines) {
  std::string text;
  for (const JournalLine& line : lines) append_line(text, line);
  return text;
}

std::string journal_header(std::string_view incarnation) {
  return seal("J1 " + std::string(incarnation)) + '\n';
}

SegmentName lost_segment() {
  return {"0000000000000001", 0};
}

std::string lost_segment_line() {
  return seal("S " + lost_segment().id + " 0") + '\n';
}

std::string encode(const JournalRoot& root) {
  std::string value = journal_header(root.incarnation);
  for (const SegmentName& segment : root.segments)
    value += seal("S " + segment.id + ' ' + std::to_string(segment.lines)) + '\n';
  return value + std::string(root.tail);
}

std::optional<JournalRoot> decode_journal_root(std::string_view value) {
  JournalRoot root;
  std::unordered_set<std::string_view> seen;
  bool first = true;
  while (!value.empty()) {
    const auto end = value.find('\n');
    if (end == std::string_view::npos) break;
    const auto body = unseal(value.substr(0, end));
    std::string_view rest = body.value_or("");
    const std::string_view kind = take_word(rest);
    if (first && kind == "J1") {
      root.incarnation = rest;
    } else if (!first && kind == "S") {
      const std::string_view id = take_word(rest);
      const auto lines = parse_u64(rest);
      if (!is_identifier(id) || !lines) break;
      // A segment that is named twice is read once.
      if (seen.insert(id).second) root.segments.push_back({std::string(id), *lines});
    } else {
      break;
    }
    first = false;
    value.remove_prefix(end + 1);
  }
  if (first) return std::nullopt;
  root.tail = value;
  return root;
}

void report_journal_lines(std::string_view text, const ReportLine& report, ForeignLines* foreign) {
  ForeignLines ignored;
  if (foreign == nullptr) foreign = &ignored;
  for_each_line(text, [&](std::string_view line, bool whole) {
    auto one = whole ? decode_line(line) : std::nullopt;
    if (!one) {
      if (whole && is_padding(line)) return;
      ++(whole && unseal(line) ? foreign->unknown : foreign->damaged);
      if (whole) one = salvage(line);
    }
    if (one) report(*one);
  });
}

std::vector<JournalLine> decode_journal_lines(std::string_view text) {
  std::vector<JournalLine> lines;
  report_journal_lines(text, [&](const JournalLineView& line) {
    lines.push_back({line.change(), std::string(line.id()), std::string(line.element())});
  });
  return lines;
}

void keep_first_of_each(std::vector<JournalLineView>& lines) {
  keep_first_of_each(lines, [](const JournalLineView& line) { return line.id(); });
}

std::string without_padding(std::string_view text) {
  std::string kept;
  for_each_line(text, [&](std::string_view line, bool whole) {
    if (whole && is_padding(line)) return;
    kept += line;
    if (whole) kept += '\n';
  });
  return kept;
}

std::string padding_line(std::size_t size) {
  return '#' + std::string(size - 2, ' ') + '\n';
}

}  // namespace mcds
