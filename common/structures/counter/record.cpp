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

constexpr const char* single_incarnation = "0000000000000001";
constexpr std::string_view kinds = "rbs";  // indexed by Kind

using Epoch = CounterRecord::Epoch;
using Count = CounterRecord::Count;

std::int64_t next_second(auto time) {
  return std::chrono::ceil<std::chrono::seconds>(time).time_since_epoch().count();
}

WallTime time_of(std::int64_t second) {
  return WallTime(std::chrono::seconds(std::min(second, latest_second)));
}

// Parses `<changes>:<sum>`.
std::optional<Count> read_count(std::string_view text) {
  const auto changes = parse_u64(take_word(text, ':'));
  const auto sum = parse_u64(text);
  return changes && sum ? std::optional(Count{*changes, *sum}) : std::nullopt;
}

// Parses `<incarnation>:<changes>:<sum>[-<changes>:<sum>],…`.
bool read_starts(std::string_view text, CounterRecord& into) {
  for (std::string_view entry : split(text, ',')) {
    const std::string_view name = take_word(entry, ':');
    const auto made = read_count(take_word(entry, '-'));
    const auto taken = entry.empty() ? Count() : read_count(entry);
    if (!is_identifier(name) || !made || !taken) return false;
    if (!into.incarnations.emplace(name, CounterRecord::Life{*made, *taken}).second) return false;
  }
  return true;
}

// Parses `<number><kind><value>:<mark>`.
bool read_base(std::string_view text, Epoch& into) {
  const std::size_t letter = text.find_first_of(kinds);
  if (letter == std::string_view::npos) return false;
  into.kind = static_cast<Epoch::Kind>(kinds.find(text[letter]));
  const auto number = parse_u64(text.substr(0, letter));
  text.remove_prefix(letter + 1);
  const auto value = parse_u64(take_word(text, ':'));
  into.number = number.value_or(0);
  into.value = value.value_or(0);
  into.mark = text;
  return into.number != 0 && into.number < CounterRecord::max_epochs && value && is_identifier(text);
}

// Parses the end of a record, `<ids> [@<expiry>]`.
bool read_end(std::span<const std::string_view> words, CounterRecord& into) {
  if (words.empty() || words.size() > 2) return false;
  for (const std::string_view id : split(words[0], ',')) {
    if (words[0] == "-") break;
    if (!is_identifier(id)) return false;
    into.ids.emplace_back(id);
  }
  if (words.size() == 1) return true;
  if (!words[1].starts_with('@')) return false;
  const auto expiry = into.base.expires_at = parse_i64(words[1].substr(1));
  return expiry && *expiry >= 0 && *expiry <= latest_second;
}

// Parses `C1 <changes> <sum> <ids> [@<expiry>]`.
bool read_single(std::span<const std::string_view> words, CounterRecord& into) {
  const auto changes = parse_u64(words[1]);
  const auto sum = parse_u64(words[2]);
  if (!changes || !sum) return false;
  into.incarnation = single_incarnation;
  into.base.kind = Epoch::Kind::begun;
  // A record with no changes would merge into nothing. If another program wrote its sum so, it is the base.
  if (*changes == 0) into.base.value = *sum;
  into.incarnations[single_incarnation].made = {*changes, *changes == 0 ? 0 : *sum};
  return read_end(words.subspan(3), into);
}

// Parses `C3 <incarnation> <base> <incarnations> <ids> [@<expiry>]`.
bool read_several(std::span<const std::string_view> words, CounterRecord& into) {
  into.incarnation = words[1];
  return is_identifier(words[1]) && read_base(words[2], into.base) && read_starts(words[3], into) &&
         into.incarnations.contains(into.incarnation) && read_end(words.subspan(4), into);
}

// Returns the record that `read` parses from the words, if the record begins with `head`.
template <typename Read>
std::optional<CounterRecord> read_record(std::string_view text, std::string_view head, const Read& read) {
  const auto body = unseal(text);
  if (!body || !body->starts_with(head)) return std::nullopt;
  const auto words = split(*body, ' ');
  CounterRecord record;
  const bool good = words.size() > 3 && words[0] == head && read(std::span(words), record);
  return good ? std::optional(std::move(record)) : std::nullopt;
}

void append_incarnation(std::string& text, const std::string& name, const CounterRecord::Life& incarnation) {
  const auto [made, taken] = incarnation;
  append_all(text, {name, ":", std::to_string(made.changes), ":", std::to_string(made.sum)});
  if (taken.changes > 0)
    append_all(text, {"-", std::to_string(taken.changes), ":", std::to_string(taken.sum)});
}

}  // namespace

bool Epoch::beats(const Epoch& other) const {
  constexpr auto never = std::numeric_limits<std::int64_t>::max();
  if (number != other.number) return number > other.number;
  if (kind != other.kind) return kind > other.kind;
  if (kind == Kind::removed) return false;
  if (value != other.value) return value > other.value;
  return expires_at.value_or(never) > other.expires_at.value_or(never);
}

CounterRecord CounterRecord::of_new_incarnation(bool single, Random& random) {
  CounterRecord record;
  record.incarnation = single ? std::string(single_incarnation) : random.token();
  record.incarnations[record.incarnation];
  return record;
}

std::string CounterRecord::text() const {
  if (base.plain) return std::to_string(sum());
  std::string body;
  if (is_single()) {
    body = "C1 " + std::to_string(changes()) + ' ' + std::to_string(sum()) + ' ';
  } else {
    append_all(body, {"C3 ", incarnation, " ", std::to_string(base.number)});
    body += kinds[static_cast<std::size_t>(base.kind)];
    append_all(body, {std::to_string(base.value), ":", base.mark, " "});
    append_incarnation(body, incarnation, incarnations.at(incarnation));
    for (const auto& [name, state] : incarnations) {
      if (name == incarnation || state.made.changes == 0) continue;
      append_incarnation(body += ',', name, state);
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
  record.incarnation = single_incarnation;
  record.incarnations[record.incarnation];
  record.base = {.kind = Epoch::Kind::begun, .value = *number, .plain = true};
  return record;
}

bool CounterRecord::is_single() const {
  return incarnation == single_incarnation;
}

// A change is among the ids until 64 others have followed it.
std::optional<bool> CounterRecord::tells(std::string_view id, const std::string& of_incarnation,
                                         std::uint64_t before) const {
  if (std::ranges::find(ids, id) != ids.end()) return true;
  const bool would_show =
      incarnation == of_incarnation && changes() >= before && changes() - before <= kept_ids;
  return would_show ? std::optional(false) : std::nullopt;
}

std::uint64_t CounterRecord::sum() const {
  std::uint64_t total = base.kind == Epoch::Kind::removed ? 0 : base.value;
  for (const auto& [name, state] : incarnations) total += state.made.sum - state.taken.sum;
  return !base.plain && static_cast<std::int64_t>(total) < 0 ? 0 : total;
}

void CounterRecord::merge(const CounterRecord& other) {
  if (other.base.beats(base)) base = other.base;
  for (const auto& [name, state] : other.incarnations) {
    Life& mine = incarnations[name];
    mine.made.merge(state.made);
    mine.taken.merge(state.taken);
    mine.made.merge(mine.taken);
  }
}

// Neither of two plain values is known to be the later one.
bool CounterRecord::covers(const CounterRecord& other) const {
  if (base.plain || other.base.plain) return base.plain == other.base.plain && sum() == other.sum();
  return !other.base.beats(base) && std::ranges::all_of(other.incarnations, [&](const auto& entry) {
    const auto mine = incarnations.find(entry.first);
    return (mine == incarnations.end() ? Life() : mine->second).covers(entry.second);
  });
}

bool CounterRecord::exists() const {
  return base.kind != Epoch::Kind::removed || std::ranges::any_of(incarnations, [](const auto& entry) {
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
  if (std::chrono::abs(ahead) > max_late) base.ahead = ahead;
}

bool CounterRecord::age(WallTime now) {
  if (replaced() && exists() && has_expired(now)) {
    base.kind = Epoch::Kind::removed;
    base.value = static_cast<std::uint64_t>(*base.expires_at + std::chrono::seconds(remembered_for).count());
    for (auto& [name, state] : incarnations) state.taken = state.made;
  }
  return !has_expired(now);
}

bool CounterRecord::is_unrelated_to(const CounterRecord& other) const {
  return std::ranges::any_of(other.incarnations, [this](const auto& entry) {
    return entry.second.made.changes != 0 && !incarnations.contains(entry.first);
  });
}

bool CounterRecord::has_expired(WallTime now) const {
  now += base.ahead;
  if (!exists()) return base.value <= static_cast<std::uint64_t>(std::max<std::int64_t>(next_second(now), 0));
  return base.expires_at && time_of(*base.expires_at) <= now;
}

void CounterRecord::begin(Epoch from) {
  base = std::move(from);
  if (is_single())
    base.number = 1;
  else
    base.plain = false;
}

void CounterRecord::count(std::uint64_t delta, std::string id) {
  Count& mine = incarnations[incarnation].made;
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
  return "what is stored for '" + name +
         "' is not a counter; use another name, or remove the key with mcds item remove";
}

}  // namespace mcds
