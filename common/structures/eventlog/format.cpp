#include "common/structures/eventlog/format.hpp"

#include <cassert>

#include "common/base/bounds.hpp"
#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/json.hpp"
#include "common/primitives/seal.hpp"

namespace mcds {

namespace {

constexpr std::chrono::seconds max_kept = std::chrono::hours(100 * 366 * 24);
constexpr std::uint64_t version_bits = 0x7000;
constexpr std::uint64_t variant_bits = std::uint64_t{2} << 62;
constexpr std::uint64_t counter_mask = (std::uint64_t{1} << 62) - 1;

int hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return -1;
}

bool is_dash_position(std::size_t i) {
  return i == 8 || i == 13 || i == 18 || i == 23;
}

std::optional<std::int64_t> parse_index(std::string_view text) {
  const auto value = parse_u64(text);
  if (!value || *value > (std::uint64_t{1} << 53)) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

std::string sealed_line(const std::string& body) {
  return seal(body) + '\n';
}

// Most data are strings without escapes, which need no further check.
bool is_stored_json(std::string_view data) {
  const bool quoted = data.size() >= 2 && data.front() == '"' && data.back() == '"';
  return (quoted && is_plain_json(data.substr(1, data.size() - 2))) || is_compact_json(data);
}

bool looks_like_id(std::string_view text) {
  return text.size() > event_id_size && text[8] == '-' && text[13] == '-' && text[14] == '7' &&
         text[18] == '-' && text[23] == '-' && text[event_id_size] == ' ';
}

std::optional<DirectoryLine> parse_exact_directory_line(std::string_view line) {
  const auto body = unseal(line);
  if (!body) return std::nullopt;
  std::string_view words = *body;
  const std::string_view kind = take_word(words);
  const auto name = PartName::parse(take_word(words));
  const std::string_view incarnation = take_word(words);
  if (!name || name->part >= max_parts || !is_identifier(incarnation)) return std::nullopt;
  if (kind == "W" && words.empty()) return DirectoryLine{false, *name, incarnation, {}};
  const auto at = parse_index(words);
  if (kind != "N" || !at || *at > latest_second) return std::nullopt;
  return DirectoryLine{true, *name, incarnation, WallTime(std::chrono::seconds(*at))};
}

}  // namespace

void EventId::append_to(std::string& out) const {
  append_all(out, {hex(high >> 32, 8), "-", hex(high >> 16, 4), "-", hex(high, 4), "-", hex(low >> 48, 4),
                   "-", hex(low, 12)});
}

std::string EventId::text() const {
  std::string text;
  append_to(text);
  return text;
}

std::optional<EventId> EventId::parse(std::string_view text) {
  if (text.size() != event_id_size) return std::nullopt;
  EventId id;
  int digits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_dash_position(i)) {
      if (text[i] != '-') return std::nullopt;
      continue;
    }
    const int value = hex_value(text[i]);
    if (value < 0) return std::nullopt;
    std::uint64_t& half = digits < 16 ? id.high : id.low;
    half = half << 4 | static_cast<std::uint64_t>(value);
    ++digits;
  }
  if ((id.high & 0xf000) != version_bits || id.low >> 62 != 2) return std::nullopt;
  return id;
}

EventId EventIdSource::next(WallTime at) {
  const auto ms = static_cast<std::uint64_t>(
      std::chrono::floor<std::chrono::milliseconds>(at.time_since_epoch()).count());
  if (ms != last_ms_) {
    last_ms_ = ms;
    // The counter's top bit starts as 0, so there is room for 2^73 steps.
    last_.high = ms << 16 | version_bits | (random_.bits() & 0x7ff);
    last_.low = variant_bits | (random_.bits() & counter_mask);
    return last_;
  }
  if (steps_ == 0) steps_ = random_.bits();
  const std::uint64_t counter = (last_.low & counter_mask) + 1 + (steps_ & 0xffff);
  steps_ >>= 16;
  if (counter > counter_mask) {
    ++last_.high;
    assert((last_.high & 0xf000) == version_bits);
  }
  last_.low = variant_bits | (counter & counter_mask);
  return last_;
}

RingShape RingShape::of(Duration chunk, std::uint64_t chunks) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(chunk);
  if (seconds != chunk || seconds.count() < 1 || seconds > std::chrono::hours(366 * 24)) {
    throw InvalidInput("--chunk: give a whole number of seconds, from 1s to 366d");
  }
  if (chunks < 1 || chunks > 100000) throw InvalidInput("--chunks: give a number from 1 to 100000");
  const RingShape shape{seconds.count(), static_cast<std::int64_t>(chunks)};
  if (shape.kept() > max_kept) throw InvalidInput("--chunks: a log keeps events for at most 100 years");
  return shape;
}

std::optional<RingShape> RingShape::parse(std::string_view text) {
  const std::size_t x = text.find('x');
  if (x == std::string_view::npos) return std::nullopt;
  const auto chunk_s = parse_index(text.substr(0, x));
  const auto chunks = parse_index(text.substr(x + 1));
  if (!chunk_s || !chunks || *chunk_s < 1 || *chunks < 1 || *chunk_s > 366 * 86400 || *chunks > 100000) {
    return std::nullopt;
  }
  const RingShape shape{*chunk_s, *chunks};
  if (shape.kept() > max_kept) return std::nullopt;
  return shape;
}

std::optional<PartName> PartName::parse(std::string_view text) {
  const std::size_t dot = text.find('.');
  const auto chunk = parse_index(text.substr(0, dot));
  const auto part =
      dot == std::string_view::npos ? std::optional<std::int64_t>(0) : parse_index(text.substr(dot + 1));
  if (!chunk || !part) return std::nullopt;
  return PartName{*chunk, *part};
}

std::vector<RingShape> shapes_in(std::span<const ActiveVariant> conf) {
  std::vector<RingShape> shapes;
  for (const ActiveVariant& one : conf) {
    if (const auto shape = RingShape::parse(one.what)) shapes.push_back(*shape);
  }
  return shapes;
}

void append_event_line(std::string& out, const EventId& id, std::string_view data, EventData kind) {
  const std::optional<std::string> json = kind == EventData::json ? compact_json(data) : std::nullopt;
  if (kind == EventData::json && !json) {
    throw Failure(ErrorCode::bad_data, "the data is not JSON; omit --json to store it as text");
  }
  const std::size_t start = out.size();
  id.append_to(out);
  out += ' ';
  if (json) {
    out += *json;
  } else if (is_utf8(data)) {
    append_json_quoted(out, data);
  } else {
    out += "b\"";
    out += base64(data);
    out += '"';
  }
  append_seal(out, start);
  out += '\n';
  constexpr std::size_t header_room = 100;
  if (out.size() - start <= max_value_size - header_room) return;
  const std::size_t size = data.size();
  out.resize(start);
  throw Failure(
      ErrorCode::bad_data,
      "an event of " + std::to_string(size) +
          " bytes does not fit into an item of 1 MiB; store the data elsewhere and log its location");
}

std::string EventLine::bytes() const {
  if (foreign) return std::string(data);
  if (base64) return parse_base64(data).value_or(std::string(data));
  if (!data.starts_with('"')) return std::string(data);
  return json_unquote(data).value_or(std::string(data));
}

std::optional<EventLine> parse_event_line(std::string_view line) {
  if (!looks_like_id(line)) return std::nullopt;
  const auto body = unseal(line);
  if (!body || body->size() <= event_id_size + 1) return std::nullopt;
  const auto id = EventId::parse(body->substr(0, event_id_size));
  if (!id) return std::nullopt;
  EventLine event{*id, body->substr(event_id_size + 1)};
  if (event.data.starts_with("b\"") && event.data.size() >= 3 && event.data.ends_with('"')) {
    const std::string_view digits = event.data.substr(2, event.data.size() - 3);
    event.base64 = parse_base64(digits).has_value();
    if (event.base64) event.data = digits;
  }
  event.foreign = !event.base64 && !is_stored_json(event.data);
  return event;
}

std::optional<EventLine> salvage_event_line(std::string_view line) {
  return salvage(line, looks_like_id, parse_event_line);
}

std::string part_header(const PartName& name, std::string_view incarnation) {
  return sealed_line("E1 " + name.text() + ' ' + std::string(incarnation));
}

std::optional<PartHeader> parse_part_header(std::string_view value, const PartName& name) {
  std::string_view rest = value;
  const auto body = unseal(take_line(rest));
  if (!body || rest.size() == value.size() || value[value.size() - rest.size() - 1] != '\n')
    return std::nullopt;
  std::string_view words = *body;
  if (take_word(words) != "E1" || take_word(words) != name.text() || !is_identifier(words))
    return std::nullopt;
  return PartHeader{words, value.size() - rest.size()};
}

std::string filler_line(std::size_t size) {
  constexpr std::size_t seal_size = 11;  // ` *`, 8 digits, and the line feed
  return sealed_line("F" + std::string(size - seal_size - 1, ' '));
}

bool is_filler(std::string_view line) {
  return line.starts_with("F ") && unseal(line).has_value();
}

std::string named_line(const PartName& name, std::string_view incarnation, WallTime now) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now.time_since_epoch()).count();
  return sealed_line("N " + name.text() + ' ' + std::string(incarnation) + ' ' + std::to_string(seconds));
}

std::string withdrawn_line(const PartName& name, std::string_view incarnation) {
  return sealed_line("W " + name.text() + ' ' + std::string(incarnation));
}

std::optional<DirectoryLine> parse_directory_line(std::string_view line) {
  if (const auto exact = parse_exact_directory_line(line)) return exact;
  const auto may_begin = [](std::string_view end) {
    return end.size() > 2 && (end[0] == 'N' || end[0] == 'W') && end[1] == ' ' && is_digit(end[2]);
  };
  auto found = salvage(line, may_begin, parse_exact_directory_line);
  if (found) found->follows_foreign = true;
  return found;
}

}  // namespace mcds
