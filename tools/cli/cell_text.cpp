#include "tools/cli/cell_text.hpp"

#include <algorithm>
#include <array>

#include "common/base/bytes.hpp"
#include "common/base/json.hpp"
#include "common/base/text.hpp"
#include "common/base/units.hpp"

namespace mcds {

namespace {

constexpr std::array stored_data{"value", "values", "data", "lost"};

bool ends(std::string_view name, std::string_view suffix) {
  return name.size() > suffix.size() && name.ends_with(suffix);
}

std::string with_digit(double value, const char* unit) {
  const auto tenths = static_cast<std::uint64_t>(value * 10 + 0.5);
  std::string text = std::to_string(tenths / 10);
  if (tenths < 1000 && tenths % 10 != 0) text += '.' + std::to_string(tenths % 10);
  return text + unit;
}

std::string size_words(double bytes) {
  static constexpr std::array units{" B", " KiB", " MiB", " GiB", " TiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < units.size(); ++unit) bytes /= 1024;
  return with_digit(bytes, units[unit]);
}

std::string microsecond_words(double us) {
  if (us < 1000) return with_digit(us, " us");
  return us < 1e6 ? with_digit(us / 1000, " ms") : with_digit(us / 1e6, " s");
}

std::string second_words(double seconds) {
  if (seconds > 0 && seconds < 1) return with_digit(seconds * 1000, "ms");
  const auto whole = static_cast<std::int64_t>(seconds);
  if (whole < 3600) return format_duration(std::chrono::seconds(whole));
  if (whole < 86400) return format_duration(std::chrono::minutes(whole / 60));
  const std::int64_t hours = whole % 86400 / 3600;
  return std::to_string(whole / 86400) + 'd' + (hours == 0 ? "" : std::to_string(hours) + 'h');
}

// Formats a time such as 2026-11-21T04:08:53.945Z.
std::string time_words(std::string text) {
  if (text.size() != 24 || text[10] != 'T') return text;
  text[10] = ' ';
  return text.substr(0, 19) + 'Z';
}

std::string number_words(std::string_view name, const std::string& json) {
  const auto number = parse_double(json);
  if (!number || *number < 0) return visible(json);
  if (ends(name, "_bytes")) return size_words(*number);
  if (ends(name, "_us")) return microsecond_words(*number);
  if (ends(name, "_bytes_per_s")) return size_words(*number) + "/s";
  if (ends(name, "_per_s")) return with_digit(*number, "");
  if (ends(name, "_s")) return second_words(*number);
  if (name == "coverage" || name == "hit_ratio" || name == "share" || ends(name, "_share") ||
      name == "agreement" || name == "by_chance")
    return format_percent(*number);
  return json;
}

std::string string_words(std::string_view name, const std::string& json, const ServerNames& servers) {
  const std::string text = json_unquote(json).value_or(json);
  if (const auto server = servers.find(text); server != servers.end()) return visible(server->second);
  return visible(ends(name, "_at") || name == "at" || name == "from" || name == "to" ? time_words(text)
                                                                                     : text);
}

// Formats an object, such as deploy@web3 pid 4711, backup, since 2026-11-21 04:08:53Z.
std::string object_words(const std::vector<JsonMember>& members, const ServerNames& servers) {
  const auto field = [&](std::string_view name) {
    for (const JsonMember& member : members) {
      if (member.name == name) return cell_text(member.name, member.value, servers);
    }
    return std::string();
  };
  if (!field("host").empty() && !field("user").empty()) {
    std::string text = field("user") + '@' + field("host");
    if (!field("pid").empty()) text += " pid " + field("pid");
    if (!field("note").empty()) text += ", " + field("note");
    if (!field("acquired_at").empty()) text += ", since " + field("acquired_at");
    if (!field("finished_at").empty()) text += ", done " + field("finished_at");
    return text;
  }
  if (!field("code").empty() && !field("message").empty()) return field("message");
  std::string text;
  bool after_server = false;
  for (const JsonMember& member : members) {
    const bool bare = member.name == "server" || member.name == "error";
    text += (text.empty()   ? ""
             : after_server ? " "
                            : ", ") +
            (bare ? std::string() : visible(column_title(member.name)) + ' ') +
            cell_text(member.name, member.value, servers);
    after_server = member.name == "server";
  }
  return text;
}

// Formats data stored by users: strings without quotes, everything else unchanged.
std::string data_words(const std::string& json) {
  if (json.starts_with('"')) return visible(json_unquote(json).value_or(json));
  if (!json.starts_with('[')) return visible(json);
  std::string text;
  for (const std::string& element : json_elements(json).value_or(std::vector<std::string>()))
    text += (text.empty() ? "" : ", ") + (element.starts_with('"') ? data_words(element) : visible(element));
  return text;
}

struct Character {
  std::size_t end;  // the offset after its bytes
  std::size_t width;
};

// Returns the columns of a character: 0 for combining marks, 2 for the wide forms of East Asia and pictures.
std::size_t width_of(char32_t c) {
  if (c == red_begins || c == red_ends || (c >= 0x300 && c <= 0x36f) || (c >= 0x200b && c <= 0x200f) ||
      (c >= 0xfe00 && c <= 0xfe0f))
    return 0;
  const bool wide = (c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) ||
                    (c >= 0xac00 && c <= 0xd7a3) || (c >= 0xf900 && c <= 0xfaff) ||
                    (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60) ||
                    (c >= 0x1f300 && c <= 0x1faff) || (c >= 0x20000 && c <= 0x3fffd);
  return wide ? 2 : 1;
}

std::vector<Character> characters_of(std::string_view utf8) {
  std::vector<Character> characters;
  for (std::size_t i = 0; i < utf8.size();) {
    const auto [code, size] = first_code_point(utf8.substr(i));
    i += std::max<std::size_t>(size, 1);
    characters.push_back({i, width_of(code)});
  }
  return characters;
}

}  // namespace

std::string cell_text(std::string_view name, const std::string& json, const ServerNames& servers) {
  if (std::ranges::find(stored_data, name) != stored_data.end()) return data_words(json);
  if (json.starts_with('"')) return string_words(name, json, servers);
  if (json == "null") return "-";
  if (json == "true" || json == "false") return json == "true" ? "yes" : "no";
  if (json.starts_with('{'))
    return object_words(json_members(json).value_or(std::vector<JsonMember>()), servers);
  if (!json.starts_with('[')) return number_words(name, json);
  std::string text;
  for (const std::string& element : json_elements(json).value_or(std::vector<std::string>()))
    text += (text.empty() ? "" : element.starts_with('{') ? "; " : ", ") + cell_text({}, element, servers);
  return text;
}

std::string column_title(std::string_view name) {
  if (name == "bar") return {};
  if (ends(name, "_bytes_per_s")) return std::string(name.substr(0, name.size() - 12));
  if (ends(name, "_per_s")) return std::string(name.substr(0, name.size() - 6)) + "/s";
  for (const std::string_view unit : {"_bytes", "_us", "_s", "_at"}) {
    if (ends(name, unit)) return std::string(name.substr(0, name.size() - unit.size()));
  }
  return std::string(name);
}

std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t i = text.size(); i > 3;) text.insert(i -= 3, 1, ',');
  return text;
}

std::string bar(double share, std::size_t width) {
  static constexpr std::array eighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double places = std::clamp(share, 0.0, 1.0) * static_cast<double>(width);
  const auto length = static_cast<std::size_t>(places * 8 + 0.5);
  std::string text;
  for (std::size_t i = 0; i < length / 8; ++i) text += "█";
  return text + eighths[length % 8];
}

std::size_t shown_width(std::string_view utf8) {
  std::size_t width = 0;
  for (const Character& character : characters_of(utf8)) width += character.width;
  return width;
}

std::string wrapped(std::string_view utf8, std::size_t at, std::size_t indent, std::size_t line_width) {
  std::string lines;
  for (const std::string_view word : split(utf8, ' ')) {
    const std::size_t width = shown_width(word);
    if (at > indent && at + 1 + width > line_width) {
      lines += '\n' + std::string(indent, ' ');
      at = indent;
    } else if (!lines.empty()) {
      lines += ' ';
      ++at;
    }
    lines += word;
    at += width;
  }
  return lines;
}

std::string shortened(const std::string& utf8, std::size_t width, bool in_the_middle) {
  if (shown_width(utf8) <= width) return utf8;
  const auto characters = characters_of(utf8);
  const std::size_t tail = in_the_middle && width > 2 ? width / 2 : 0;
  const std::size_t head = std::max<std::size_t>(width, 1) - 1 - tail;
  std::size_t head_end = 0, used = 0;
  for (const Character& character : characters) {
    if (used + character.width > head) break;
    used += character.width;
    head_end = character.end;
  }
  std::size_t tail_begin = utf8.size();
  used = 0;
  for (std::size_t i = characters.size(); i-- > 0;) {
    used += characters[i].width;
    if (used > tail) break;
    tail_begin = i == 0 ? 0 : characters[i - 1].end;
  }
  return utf8.substr(0, head_end) + "…" + utf8.substr(tail_begin);
}

}  // namespace mcds
