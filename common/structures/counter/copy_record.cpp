#include "common/structures/counter/copy_record.hpp"

#include <algorithm>
#include <utility>

#include "common/base/bytes.hpp"
#include "common/primitives/record.hpp"
#include "common/structures/counter/record.hpp"

namespace mcds {

namespace {

// The life of what was counted with one copy: a fixed name, so that all who read it mean the same life.
constexpr const char* single_life = "0000000000000001";
constexpr auto removed_for = std::chrono::hours(1);

std::uint64_t unix_seconds(WallTime time) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(time).time_since_epoch().count();
  return static_cast<std::uint64_t>(std::max<std::int64_t>(seconds, 0));
}

std::optional<CounterCopyRecord> from_single(std::string_view text) {
  const auto single = CounterRecord::parse(text);
  if (!single) return std::nullopt;
  return CounterCopyRecord{
      single_life, {{single_life, {single->sequence, single->sum}}}, single->ids, single->expires_at};
}

bool read_life(std::string_view text, CounterCopyRecord& into) {
  const auto parts = split(text, ':');
  if (parts.size() != 3 || !parse_hex64(parts[0])) return false;
  const auto changes = parse_u64(parts[1]);
  const auto sum = parse_u64(parts[2]);
  if (!changes || !sum) return false;
  return into.lives.emplace(parts[0], CounterCopyRecord::Life{*changes, *sum}).second;
}

}  // namespace

std::string CounterCopyRecord::text() const {
  std::string body = "C2 " + life + ' ';
  for (const auto& [name, state] : lives) {
    if (!body.ends_with(' ')) body += ',';
    body += name + ':' + std::to_string(state.changes) + ':' + std::to_string(state.sum);
  }
  return seal(body + ' ' + CounterRecordEnd{ids, expires_at}.text());
}

std::optional<CounterCopyRecord> CounterCopyRecord::parse(std::string_view text) {
  const auto body = unseal(text);
  if (!body) return std::nullopt;
  if (body->starts_with("C1 ")) return from_single(text);
  const auto words = split(*body, ' ');
  if (words.size() < 4 || words[0] != "C2" || !parse_hex64(words[1])) return std::nullopt;
  CounterCopyRecord record;
  record.life = words[1];
  for (const std::string_view entry : split(words[2], ',')) {
    if (!read_life(entry, record)) return std::nullopt;
  }
  if (!record.lives.contains(record.life)) return std::nullopt;
  auto end = CounterRecordEnd::parse(std::span(words).subspan(3));
  if (!end) return std::nullopt;
  record.ids = std::move(end->ids);
  record.expires_at = end->expires_at;
  return record;
}

std::uint64_t CounterCopyRecord::sum() const {
  std::uint64_t total = 0;
  for (const auto& [name, state] : lives) total += state.is_over() ? 0 : state.sum;
  return total;
}

bool CounterCopyRecord::has(std::string_view id) const {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

void CounterCopyRecord::learn(const CounterCopyRecord& other) {
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

bool CounterCopyRecord::covers(const CounterCopyRecord& other) const {
  return std::all_of(other.lives.begin(), other.lives.end(), [&](const auto& entry) {
    const auto mine = lives.find(entry.first);
    return mine != lives.end() ? !entry.second.newer_than(mine->second) : entry.second.changes == 0;
  });
}

bool CounterCopyRecord::exists() const {
  return std::any_of(lives.begin(), lives.end(),
                     [](const auto& entry) { return entry.second.changes > 0 && !entry.second.is_over(); });
}

bool CounterCopyRecord::own_life_is_over() const {
  const auto own = lives.find(life);
  return own != lives.end() && own->second.is_over();
}

void CounterCopyRecord::end_lives(WallTime now, std::uint64_t mark) {
  for (auto& [name, state] : lives) {
    if (!state.is_over()) state = {over + unix_seconds(now), mark};
  }
  expires_at.reset();
}

void CounterCopyRecord::forget_removals(WallTime now) {
  const std::uint64_t forgotten = over + unix_seconds(now - removed_for);
  std::erase_if(
      lives, [&](const auto& entry) { return entry.second.is_over() && entry.second.changes < forgotten; });
}

WallTime CounterCopyRecord::remembered_until() const {
  std::uint64_t last = 0;
  for (const auto& [name, state] : lives)
    if (state.is_over()) last = std::max(last, state.changes - over);
  return WallTime(std::chrono::seconds(last)) + removed_for;
}

void CounterCopyRecord::count(std::uint64_t delta, std::string id) {
  Life& mine = lives[life];
  ++mine.changes;
  mine.sum += delta;
  if (ids.size() == kept_ids) ids.erase(ids.begin());
  ids.push_back(std::move(id));
}

}  // namespace mcds
