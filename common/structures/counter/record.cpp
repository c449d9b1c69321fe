#include "common/structures/counter/record.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "common/base/bounds.hpp"
#include "common/base/bytes.hpp"
#include "common/primitives/seal.hpp"

namespace mcds {

namespace {

constexpr const char* single_life = "0000000000000001";
constexpr std::string_view kinds = "rbs";  // as in Kind

using Base = CounterRecord::Base;
using Count = CounterRecord::Count;

std::int64_t next_second(auto time) {
  return std::chrono::ceil<std::chrono::seconds>(time).time_since_epoch().count();
}

WallTime time_of(std::int64_t second) {
  return WallTime(std::chrono::seconds(std::min(second, latest_second)));
}

// `<changes>:<sum>`
std::optional<Count> read_count(std::string_view text) {
  const auto changes = parse_u64(take_word(text, ':'));
  const auto sum = parse_u64(text);
  return changes && sum ? std::optional(Count{*changes, *sum}) : std::nullopt;
}

// `<life>:<changes>:<sum>[-<changes>:<sum>],…`
bool read_lives(std::string_view text, CounterRecord& into) {
  for (std::string_view entry : split(text, ',')) {
    const std::string_view name = take_word(entry, ':');
    const auto made = read_count(take_word(entry, '-'));
    const auto taken = entry.empty() ? Count() : read_count(entry);
    if (!parse_hex64(name) || !made || !taken) return false;
    if (!into.lives.emplace(name, CounterRecord::Life{*made, *taken}).second) return false;
  }
  return true;
}

// `<number><kind><value>:<mark>`
bool read_base(std::string_view text, Base& into) {
  const std::size_t letter = text.find_first_of(kinds);
  if (letter == std::string_view::npos) return false;
  into.kind = static_cast<Base::Kind>(kinds.find(text[letter]));
  const auto number = parse_u64(text.substr(0, letter));
  text.remove_prefix(letter + 1);
  const auto value = parse_u64(take_word(text, ':'));
  into.number = number.value_or(0);
  into.value = value.value_or(0);
  into.mark = text;
  return into.number != 0 && into.number < CounterRecord::most_bases && value && parse_hex64(text);
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
  const auto expiry = into.base.expires_at = parse_i64(words[1].substr(1));
  return expiry && *expiry >= 0 && *expiry <= latest_second;
}

// `C1 <changes> <sum>`, and the end
bool read_single(std::span<const std::string_view> words, CounterRecord& into) {
  const auto changes = parse_u64(words[1]);
  const auto sum = parse_u64(words[2]);
  if (!changes || !sum) return false;
  into.life = single_life;
  into.base.kind = Base::Kind::begun;
  // Of no change nothing is learned: what another program wrote so is a base.
  if (*changes == 0) into.base.value = *sum;
  into.lives[single_life].made = {*changes, *changes == 0 ? 0 : *sum};
  return read_end(words.subspan(3), into);
}

// `C3 <life> <base> <lives>`, and the end
bool read_several(std::span<const std::string_view> words, CounterRecord& into) {
  into.life = words[1];
  return parse_hex64(words[1]) && read_base(words[2], into.base) && read_lives(words[3], into) &&
         into.lives.contains(into.life) && read_end(words.subspan(4), into);
}

// What `read` makes of the words of a record that begins with `head`.
template <typename Read>
std::optional<CounterRecord> read_record(std::string_view text, std::string_view head, const Read& read) {
  const auto body = unseal(text);
  if (!body || !body->starts_with(head)) return std::nullopt;
  const auto words = split(*body, ' ');
  CounterRecord record;
  const bool good = words.size() > 3 && words[0] == head && read(std::span(words), record);
  return good ? std::optional(std::move(record)) : std::nullopt;
}

void append_life(std::string& text, const std::string& name, const CounterRecord::Life& life) {
  const auto [made, taken] = life;
  append_all(text, {name, ":", std::to_string(made.changes), ":", std::to_string(made.sum)});
  if (taken.changes > 0)
    append_all(text, {"-", std::to_string(taken.changes), ":", std::to_string(taken.sum)});
}

}  // namespace

bool Base::beats(const Base& other) const {
  constexpr auto never = std::numeric_limits<std::int64_t>::max();
  if (number != other.number) return number > other.number;
  if (kind != other.kind) return kind > other.kind;
  if (kind == Kind::removed) return false;
  if (value != other.value) return value > other.value;
  return expires_at.value_or(never) > other.expires_at.value_or(never);
}

CounterRecord CounterRecord::of_new_life(bool single, Random& random) {
  CounterRecord record;
  record.life = single ? std::string(single_life) : random.token();
  record.lives[record.life];
  return record;
}

std::string CounterRecord::text() const {
  if (base.plain) return std::to_string(sum());
  std::string body;
  if (is_single()) {
    body = "C1 " + std::to_string(changes()) + ' ' + std::to_string(sum()) + ' ';
  } else {
    append_all(body, {"C3 ", life, " ", std::to_string(base.number)});
    body += kinds[static_cast<std::size_t>(base.kind)];
    append_all(body, {std::to_string(base.value), ":", base.mark, " "});
    append_life(body, life, lives.at(life));
    for (const auto& [name, state] : lives) {
      if (name == life || state.made.changes == 0) continue;
      append_life(body += ',', name, state);
    }
    body += ' ';
  }
  body += ids.empty() ? "-" : joined(ids);
  if (base.expires_at) body += " @" + std::to_string(*base.expires_at);
  return seal(body);
}

std::optional<CounterRecord> CounterRecord::parse(std::string_view text) {
  if (text.starts_with("C3")) return read_record(text, "C3", read_several);
  const auto number = parse_padded_u64(text);
  if (!number) return read_record(text, "C1", read_single);
  CounterRecord record;
  record.life = single_life;
  record.lives[record.life];
  record.base = {.kind = Base::Kind::begun, .value = *number, .plain = true};
  return record;
}

bool CounterRecord::is_single() const {
  return life == single_life;
}

// A change that was made is among the ids until 64 others have followed.
std::optional<bool> CounterRecord::tells(std::string_view id, const std::string& of_life,
                                         std::uint64_t before) const {
  if (std::ranges::find(ids, id) != ids.end()) return true;
  const bool would_show = life == of_life && changes() >= before && changes() - before <= kept_ids;
  return would_show ? std::optional(false) : std::nullopt;
}

std::uint64_t CounterRecord::sum() const {
  std::uint64_t total = base.kind == Base::Kind::removed ? 0 : base.value;
  for (const auto& [name, state] : lives) total += state.made.sum - state.taken.sum;
  return !base.plain && static_cast<std::int64_t>(total) < 0 ? 0 : total;
}

void CounterRecord::learn(const CounterRecord& other) {
  if (other.base.beats(base)) base = other.base;
  for (const auto& [name, state] : other.lives) {
    Life& mine = lives[name];
    mine.made.learn(state.made);
    mine.taken.learn(state.taken);
    mine.made.learn(mine.taken);
  }
}

// Of plain ones nothing tells which is the later.
bool CounterRecord::covers(const CounterRecord& other) const {
  if (base.plain || other.base.plain) return base.plain == other.base.plain && sum() == other.sum();
  return !other.base.beats(base) && std::ranges::all_of(other.lives, [&](const auto& entry) {
    const auto mine = lives.find(entry.first);
    return (mine == lives.end() ? Life() : mine->second).covers(entry.second);
  });
}

bool CounterRecord::exists() const {
  return base.kind != Base::Kind::removed || std::ranges::any_of(lives, [](const auto& entry) {
           return entry.second.made.changes > entry.second.taken.changes;
         });
}

std::optional<std::int64_t> CounterRecord::end() const {
  if (!exists()) return static_cast<std::int64_t>(base.value);
  const auto more = replaced() ? std::chrono::seconds(remembered_for).count() : 0;
  return base.expires_at ? std::optional(*base.expires_at + more) : std::nullopt;
}

Exptime CounterRecord::exptime(WallTime now) const {
  const auto last = end();
  return last ? Exptime::at(time_of(*last), now + base.ahead) : Exptime::never();
}

void CounterRecord::read_clock(std::chrono::seconds left, WallTime now) {
  const auto last = end();
  if (base.plain || !last) return;
  const auto ahead = std::chrono::round<std::chrono::seconds>(time_of(*last) - left - now);
  if (std::chrono::abs(ahead) > most_late) base.ahead = ahead;
}

bool CounterRecord::age(WallTime now) {
  if (replaced() && exists() && has_expired(now)) {
    base.kind = Base::Kind::removed;
    base.value = static_cast<std::uint64_t>(*base.expires_at + std::chrono::seconds(remembered_for).count());
    for (auto& [name, state] : lives) state.taken = state.made;
  }
  return !has_expired(now);
}

bool CounterRecord::is_strange_to(const CounterRecord& other) const {
  return std::ranges::any_of(other.lives, [this](const auto& entry) {
    return entry.second.made.changes != 0 && !lives.contains(entry.first);
  });
}

bool CounterRecord::has_expired(WallTime now) const {
  now += base.ahead;
  if (!exists()) return base.value <= static_cast<std::uint64_t>(std::max<std::int64_t>(next_second(now), 0));
  return base.expires_at && time_of(*base.expires_at) <= now;
}

void CounterRecord::begin(Base from) {
  base = std::move(from);
  if (is_single())
    base.number = 1;
  else
    base.plain = false;
}

void CounterRecord::count(std::uint64_t delta, std::string id) {
  Count& mine = lives[life].made;
  ++mine.changes;
  mine.sum += delta;
  if (ids.size() == kept_ids) ids.erase(ids.begin());
  ids.push_back(std::move(id));
}

std::optional<std::int64_t> expiry_second(std::optional<Duration> ttl, WallTime now) {
  return ttl ? std::optional(next_second(now + *ttl)) : std::nullopt;
}

std::string no_counter_message(const std::string& name, std::string_view value) {
  if (value.starts_with("C2 "))
    return "the counter '" + name + "' was written by mcds 0.x; read or remove it with that version";
  return "what is stored for '" + name + "' is not a counter; remove it or use another name";
}

}  // namespace mcds
