#include "common/base/units.hpp"

#include <array>
#include <cctype>
#include <charconv>
#include <ctime>

#include "common/base/bounds.hpp"
#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/text.hpp"

namespace mcds {

namespace {

using std::chrono::duration_cast;

struct Unit {
  std::string_view name;
  double seconds;
};

constexpr std::array<Unit, 6> units{
    {{"ms", 1e-3}, {"us", 1e-6}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}}};

std::string quoted(std::string_view text) {
  return is_utf8(text) ? in_quotes(beginning(text, 60)) : std::string("bytes that are not UTF-8");
}

// Removes leading digits and a decimal point from `text` and returns their value.
std::optional<double> take_number(std::string_view& text) {
  std::size_t size = 0;
  while (size < text.size() && (is_digit(text[size]) || text[size] == '.')) {
    ++size;
  }
  const auto number = parse_double(text.substr(0, size));
  text.remove_prefix(size);
  return number;
}

std::optional<double> take_unit(std::string_view& text) {
  for (const Unit& unit : units) {
    if (!text.starts_with(unit.name)) continue;
    text.remove_prefix(unit.name.size());
    return unit.seconds;
  }
  return std::nullopt;
}

std::optional<double> seconds_of(std::string_view text) {
  double total = 0;
  bool first = true;
  while (!text.empty() || first) {
    const auto number = take_number(text);
    if (!number) return std::nullopt;
    if (first && text.empty()) return number;
    first = false;
    const auto unit = take_unit(text);
    if (!unit) return std::nullopt;
    total += *number * *unit;
  }
  return total;
}

int digits(std::string_view text, std::size_t from, std::size_t count) {
  int value = 0;
  for (std::size_t i = from; i < from + count; ++i) {
    if (i >= text.size() || !is_digit(text[i])) return -1;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

// Parses the fraction and zone of an RFC 3339 time. Returns the microseconds to add to the local time.
std::optional<std::chrono::microseconds> parse_fraction_and_zone(std::string_view rest) {
  std::chrono::microseconds shift{0};
  if (rest.starts_with('.')) {
    const auto fraction = take_number(rest);
    if (!fraction) return std::nullopt;
    shift += std::chrono::microseconds(static_cast<std::int64_t>(*fraction * 1e6 + 0.5));
  }
  if (rest == "Z" || rest == "z") return shift;
  if (rest.size() != 6 || (rest[0] != '+' && rest[0] != '-') || rest[3] != ':') return std::nullopt;
  const int hours = digits(rest, 1, 2);
  const int minutes = digits(rest, 4, 2);
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return std::nullopt;
  const auto offset = std::chrono::hours(hours) + std::chrono::minutes(minutes);
  return rest[0] == '+' ? shift - offset : shift + offset;
}

// Parses `2026-11-27`, `2026-11-27 23:00` or `2026-11-27T23:00:30`, without a zone.
std::optional<std::tm> parse_date(std::string_view text) {
  const std::size_t size = text.size();
  if ((size != 10 && size != 16 && size != 19) || text[4] != '-' || text[7] != '-') return std::nullopt;
  if (size > 10 && ((text[10] != 'T' && text[10] != 't' && text[10] != ' ') || text[13] != ':'))
    return std::nullopt;
  if (size > 16 && text[16] != ':') return std::nullopt;
  const int year = digits(text, 0, 4), month = digits(text, 5, 2);
  std::tm date{};
  date.tm_year = year - 1900;
  date.tm_mon = month - 1;
  date.tm_mday = digits(text, 8, 2);
  date.tm_hour = size > 10 ? digits(text, 11, 2) : 0;
  date.tm_min = size > 10 ? digits(text, 14, 2) : 0;
  date.tm_sec = size > 16 ? digits(text, 17, 2) : 0;
  const std::chrono::year_month_day day{std::chrono::year(year),
                                        std::chrono::month(static_cast<unsigned>(month)),
                                        std::chrono::day(static_cast<unsigned>(date.tm_mday))};
  const auto within = [](int value, int most) { return value >= 0 && value <= most; };
  const bool ok =
      year >= 0 && day.ok() && within(date.tm_hour, 23) && within(date.tm_min, 59) && within(date.tm_sec, 60);
  return ok ? std::optional(date) : std::nullopt;
}

std::optional<WallTime> parse_rfc3339(std::string_view text) {
  auto date = text.size() < 20 ? std::nullopt : parse_date(text.substr(0, 19));
  const auto shift = date ? parse_fraction_and_zone(text.substr(19)) : std::nullopt;
  if (!shift) return std::nullopt;
  return WallTime(std::chrono::seconds(timegm(&*date))) + *shift;
}

std::optional<WallTime> parse_local(std::string_view text) {
  auto date = parse_date(text);
  if (!date) return std::nullopt;
  date->tm_isdst = -1;
  return WallTime(std::chrono::seconds(std::mktime(&*date)));
}

}  // namespace

Duration parse_duration(std::string_view text, std::string_view what) {
  const auto seconds = seconds_of(text);
  if (!seconds) {
    throw InvalidInput(std::string(what) + ": " + quoted(text) +
                       " is not a duration; write 250ms, 30s, 5m, 1h30m or 7d");
  }
  if (*seconds > max_ttl_s) throw InvalidInput(std::string(what) + ": " + quoted(text) + " is too long");
  return std::chrono::nanoseconds(static_cast<std::int64_t>(*seconds * 1e9 + 0.5));
}

std::uint64_t parse_size(std::string_view text, std::string_view what) {
  const auto invalid = [&] {
    return InvalidInput(std::string(what) + ": " + quoted(text) + " is not a size; write 4096, 64k or 1M");
  };
  if (text.empty()) throw invalid();
  // The position gives the power of 1024, two letters for each.
  const std::size_t suffix = std::string_view("kKmMgG").find(text.back());
  const std::size_t shift = suffix == std::string_view::npos ? 0 : (suffix / 2 + 1) * 10;
  std::string_view number = text;
  if (shift != 0) number.remove_suffix(1);
  const auto value = parse_u64(number);
  constexpr std::uint64_t largest = std::uint64_t{1} << 50;
  if (!value || *value > largest >> shift) throw invalid();
  return *value << shift;
}

WallTime parse_time(std::string_view text, WallTime now, std::string_view what) {
  const auto invalid = [&](const char* why) {
    return InvalidInput(std::string(what) + ": " + quoted(text) + why);
  };
  constexpr const char* forms =
      " is not a time; write 2026-11-21T04:08:53Z, 2026-11-21 04:08 (local time), 1795234133 (Unix time) or "
      "5m (that long ago)";
  constexpr double earliest_unix = 1e8, earliest_milliseconds = 1e11;
  if (const auto time = parse_rfc3339(text)) return *time;
  if (const auto time = parse_local(text)) return *time;
  const bool marked = text.starts_with('@');
  const auto number = parse_double(text.substr(marked ? 1 : 0));
  const auto seconds = number ? number : marked ? std::nullopt : seconds_of(text);
  if (!seconds || *seconds < 0) throw invalid(forms);
  if (number && *number >= earliest_milliseconds)
    throw invalid(" is too large for a Unix time in seconds; are these milliseconds?");
  const bool is_unix = marked || (number && *number >= earliest_unix);
  if (!is_unix && *seconds > max_ttl_s) throw invalid(forms);
  const std::chrono::microseconds value(static_cast<std::int64_t>(*seconds * 1e6 + 0.5));
  return is_unix ? WallTime(value) : now - value;
}

// Formats digit by digit for speed: a log of a million lines has a million times.
std::string format_time(WallTime time) {
  constexpr WallTime earliest{std::chrono::sys_days(std::chrono::year(0) / 1 / 1)};
  constexpr WallTime latest{std::chrono::seconds(latest_second)};
  time = std::clamp(time, earliest, latest);
  const auto days = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(days);
  const auto ms =
      static_cast<std::uint64_t>(std::chrono::floor<std::chrono::milliseconds>(time - days).count());
  std::string text = "-00-00T00:00:00.000Z";
  const auto put = [&](std::size_t at, std::size_t digits, std::uint64_t value) {
    for (std::size_t i = at + digits; i-- > at; value /= 10) text[i] = static_cast<char>('0' + value % 10);
  };
  put(1, 2, static_cast<unsigned>(date.month()));
  put(4, 2, static_cast<unsigned>(date.day()));
  put(7, 2, ms / 3600000);
  put(10, 2, ms / 60000 % 60);
  put(13, 2, ms / 1000 % 60);
  put(16, 3, ms % 1000);
  std::string year = std::to_string(static_cast<int>(date.year()));
  if (year.size() < 4) year.insert(0, 4 - year.size(), '0');
  return year + text;
}

std::string format_duration(Duration duration) {
  auto ms = duration_cast<std::chrono::milliseconds>(duration).count();
  if (ms == 0) return "0s";
  std::string text;
  const auto part = [&](std::int64_t size, const char* name) {
    if (ms >= size) text += std::to_string(ms / size) + name;
    ms %= size;
  };
  part(86400000, "d");
  part(3600000, "h");
  part(60000, "m");
  part(1000, "s");
  part(1, "ms");
  return text;
}

double parse_share(std::string_view text, std::string_view what) {
  const bool percent = text.ends_with('%');
  const auto number = parse_double(percent ? text.substr(0, text.size() - 1) : text);
  const double share = percent ? number.value_or(-1) / 100 : number.value_or(-1);
  if (share >= 0 && share <= 1) return share;
  throw InvalidInput(std::string(what) + ": " + quoted(text) +
                     " is not a share; write 30% or 0.3, at most 100%");
}

std::string format_fixed(double value, int decimals) {
  std::array<char, 400> text{};
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, decimals);
  return {text.data(), end.ptr};
}

std::string format_percent(double share) {
  return format_fixed(share * 100, 2) + '%';
}

std::int64_t ceil_seconds(Duration duration) {
  return std::chrono::ceil<std::chrono::seconds>(duration).count();
}

}  // namespace mcds
