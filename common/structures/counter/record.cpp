#include "common/structures/counter/record.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "common/base/bounds.hpp"
#include "common/base/bytes.hpp"
#include "common/primitives/record.hpp"

namespace mcds {

namespace {

// Fixed names, so that all who read them mean the same lives.
constexpr const char* single_life = "0000000000000001";
constexpr const char* life_of_set = "0000000000000002";
constexpr auto removed_for = std::chrono::hours(1);

std::uint64_t unix_seconds(WallTime time) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(time).time_since_epoch().count();
  return static_cast<std::uint64_t>(std::max<std::int64_t>(seconds, 0));
}

// `<changes> <sum>`
bool read_single(std::span<const std::string_view> words, CounterRecord& into) {
  const auto changes = parse_u64(words[0]);
  const auto sum = parse_u64(words[1]);
  if (!changes || !sum) return false;
  into.life = single_life;
  into.lives[single_life] = {*changes, *sum};
  return true;
}

bool read_life(std::string_view text, CounterRecord& into) {
  const auto parts = split(text, ':');
  if (parts.size() != 3 || !parse_hex64(parts[0])) return false;
  const auto changes = parse_u64(parts[1]);
  const auto sum = parse_u64(parts[2]);
  if (!changes || !sum) return false;
  return into.lives.emplace(parts[0], CounterRecord::Life{*changes, *sum}).second;
}

// `<life> <life>:<changes>:<sum>[,…]`
bool read_lives(std::span<const std::string_view> words, CounterRecord& into) {
  if (!parse_hex64(words[0])) return false;
  into.life = words[0];
  for (const std::string_view entry : split(words[1], ',')) {
    if (!read_life(entry, into)) return false;
  }
  return into.lives.contains(into.life);
}

// `<ids> [@<expiry>]`
bool read_end(std::span<const std::string_view> words, CounterRecord& into) {
  if (words.empty() || words.size() > 2) return false;
  for (const std::string_view id : split(words[0], ',')) {
    if (words[0] == "-") break;
    if (!parse_hex64(id)) return false;
    into.ids.emplace_back(id);
  }
  if (words.size() == 1) return true;
  if (!words[1].starts_with('@')) return false;
  into.expires_at = parse_i64(words[1].substr(1));
  return into.expires_at && *into.expires_at >= 0 && *into.expires_at <= latest_second;
}

}  // namespace

CounterRecord CounterRecord::single() {
  return {single_life, {{single_life, {}}}, {}, {}};
}

CounterRecord CounterRecord::of_set(std::uint64_t value) {
  return {{}, {{life_of_set, {1, value}}}, {}, {}};
}

std::string CounterRecord::text(std::size_t copies) const {
  std::string body;
  if (copies == 1) {
    body = "C1 " + std::to_string(changes()) + ' ' + std::to_string(sum()) + ' ';
  } else {
    body = "C2 " + life;
    for (const auto& [name, state] : lives) {
      append_all(body, {name == lives.begin()->first ? " " : ",", name, ":", std::to_string(state.changes),
                        ":", std::to_string(state.sum)});
    }
    body += ' ';
  }
  for (const std::string& id : ids) append_all(body, {&id == &ids.front() ? "" : ",", id});
  if (ids.empty()) body += '-';
  if (expires_at) body += " @" + std::to_string(*expires_at);
  return seal(body);
}

std::optional<CounterRecord> CounterRecord::parse(std::string_view text, std::size_t copies) {
  const auto body = unseal(text);
  if (!body) return std::nullopt;
  const auto words = split(*body, ' ');
  if (words.size() < 4) return std::nullopt;
  const std::span<const std::string_view> rest(words);
  CounterRecord record;
  const bool counts = words[0] == "C1"   ? read_single(rest.subspan(1, 2), record)
                      : words[0] == "C2" ? copies > 1 && read_lives(rest.subspan(1, 2), record)
                                         : false;
  return counts && read_end(rest.subspan(3), record) ? std::optional(std::move(record)) : std::nullopt;
}

std::uint64_t CounterRecord::changes() const {
  return lives.at(life).changes;
}

// A change that was made is among the ids until 64 others have followed.
std::optional<bool> CounterRecord::tells(std::string_view id, const std::string& of_life,
                                         std::uint64_t before) const {
  if (has(id)) return true;
  const bool would_show = life == of_life && changes() >= before && changes() - before <= kept_ids;
  return would_show ? std::optional(false) : std::nullopt;
}

std::uint64_t CounterRecord::sum() const {
  std::uint64_t total = 0;
  for (const auto& [name, state] : lives) total += state.is_over() ? 0 : state.sum;
  return static_cast<std::int64_t>(total) < 0 ? 0 : total;
}

bool CounterRecord::has(std::string_view id) const {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

void CounterRecord::learn(const CounterRecord& other) {
  const auto before = std::exchange(lives, {});
  for (const auto* some : {&before, &other.lives}) {
    for (const auto& [name, state] : *some) {
      Life& mine = lives[name];
      if (state.newer_than(mine)) mine = state;
    }
  }
  const auto counts = [&](const std::map<std::string, Life>& some) {
    return std::any_of(some.begin(), some.end(), [&](const auto& entry) {
      return entry.second.changes > 0 && !lives.at(entry.first).is_over();
    });
  };
  if (!counts(before)) expires_at.reset();
  if (!expires_at && counts(other.lives)) expires_at = other.expires_at;
}

bool CounterRecord::covers(const CounterRecord& other) const {
  return std::all_of(other.lives.begin(), other.lives.end(), [&](const auto& entry) {
    const auto mine = lives.find(entry.first);
    return mine != lives.end() ? !entry.second.newer_than(mine->second) : entry.second.changes == 0;
  });
}

bool CounterRecord::exists() const {
  return std::any_of(lives.begin(), lives.end(),
                     [](const auto& entry) { return entry.second.changes > 0 && !entry.second.is_over(); });
}

bool CounterRecord::own_life_is_over() const {
  const auto own = lives.find(life);
  return own != lives.end() && own->second.is_over();
}

void CounterRecord::end_lives(WallTime now, std::uint64_t mark) {
  for (auto& [name, state] : lives) {
    if (!state.is_over()) state = {over + unix_seconds(now), mark};
  }
  expires_at.reset();
}

void CounterRecord::forget_removals(WallTime now) {
  const std::uint64_t forgotten = over + unix_seconds(now - removed_for);
  std::erase_if(
      lives, [&](const auto& entry) { return entry.second.is_over() && entry.second.changes < forgotten; });
}

Exptime CounterRecord::exptime(WallTime now) const {
  if (exists())
    return expires_at ? Exptime::at(WallTime(std::chrono::seconds(*expires_at)), now) : Exptime::never();
  std::uint64_t last = 0;
  for (const auto& [name, state] : lives)
    if (state.is_over()) last = std::max(last, state.changes - over);
  return Exptime::at(WallTime(std::chrono::seconds(last)) + removed_for, now);
}

void CounterRecord::expire_in(std::optional<Duration> ttl, WallTime now) {
  expires_at.reset();
  if (ttl) expires_at = std::chrono::ceil<std::chrono::seconds>(now + *ttl).time_since_epoch().count();
}

void CounterRecord::count(std::uint64_t delta, std::string id) {
  Life& mine = lives[life];
  ++mine.changes;
  mine.sum += delta;
  if (ids.size() == kept_ids) ids.erase(ids.begin());
  ids.push_back(std::move(id));
}

std::string no_counter_message(const std::string& name, std::string_view value) {
  if (value.starts_with("C2 "))
    return "the counter '" + name + "' has several copies; give their number with --copies";
  return "what is stored for '" + name + "' is not a counter; remove it or use another name";
}

std::optional<std::uint64_t> plain_number(std::string_view value) {
  return parse_padded_u64(value);
}

}  // namespace mcds
