#include "common/structures/lock/value.hpp"

#include "common/base/bytes.hpp"
#include "common/base/json.hpp"

namespace mcds {

namespace {

constexpr std::size_t max_note_size = 1024;
constexpr std::size_t max_lock_value_size = 64 * 1024;
constexpr std::size_t max_token_size = 256;

void add_ttl(JsonObject& holder, Duration ttl) {
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(ttl);
  if (whole == ttl)
    holder.number("ttl_s", static_cast<std::uint64_t>(whole.count()));
  else
    holder.real("ttl_s", std::chrono::duration<double>(ttl).count());
}

}  // namespace

LockValue LockValue::parse(std::string_view stored) {
  // Another program holds the lock. The first bytes serve as a token that no caller has.
  if (stored.size() > max_lock_value_size) return {std::string(stored.substr(0, max_token_size)), {}};
  const std::size_t space = stored.find(' ');
  LockValue value{std::string(stored.substr(0, space)), {}};
  if (space == std::string_view::npos) return value;
  if (auto holder = compact_json(stored.substr(space + 1)); holder && holder->starts_with('{')) {
    value.holder = std::move(*holder);
  }
  return value;
}

std::string lock_holder_in(std::string_view stored) {
  return LockValue::parse(stored).holder;
}

std::optional<std::size_t> slots_of(std::string_view holder) {
  if (holder.empty()) return std::nullopt;
  const auto field = json_field(holder, "slots");
  return field ? static_cast<std::size_t>(parse_u64(*field).value_or(1)) : 1;
}

std::optional<std::size_t> other_number(std::span<const LockValue> found, std::size_t ours) {
  for (const LockValue& one : found) {
    if (one.holder.empty()) continue;
    const auto field = json_field(one.holder, "copies");
    const auto copies = field ? static_cast<std::size_t>(parse_u64(*field).value_or(1)) : 1;
    const auto same =
        std::ranges::count_if(found, [&](const LockValue& other) { return other.token == one.token; });
    if (copies != ours && (field || same == 1)) return copies;
  }
  return std::nullopt;
}

Failure other_copies(std::size_t copies, const std::string& server) {
  return {ErrorCode::bad_data,
          "the lock has " + copy_count_text(copies) + "; use --copies " + std::to_string(copies) +
              " on every client of the lock",
          server};
}

std::optional<Duration> ttl_of(const LockValue& stored) {
  const auto field = json_field(stored.holder, "ttl_s");
  const auto seconds = field ? parse_double(*field) : std::nullopt;
  if (!seconds || !(*seconds >= 0.001 && *seconds < 1e9)) return std::nullopt;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*seconds));
}

std::string with_ttl(const std::string& value, Duration ttl) {
  const LockValue stored = LockValue::parse(value);
  if (stored.holder.empty()) return value;
  JsonObject holder;
  for (const JsonMember& member : json_members(stored.holder).value_or(std::vector<JsonMember>())) {
    if (member.name != "ttl_s") holder.raw(member.name, member.value);
  }
  add_ttl(holder, ttl);
  return stored.token + ' ' + holder.text();
}

std::string holder_json(const LockHolder& holder, WallTime now, Duration ttl) {
  if (holder.note.size() > max_note_size)
    throw InvalidInput("the note is longer than 1024 bytes; shorten it");
  JsonObject json;
  json.bytes("host", holder.host).number("pid", holder.pid).bytes("user", holder.user);
  if (!holder.note.empty()) json.bytes("note", holder.note);
  json.time("acquired_at", now);
  add_ttl(json, ttl);
  if (holder.slots > 1) json.number("slots", holder.slots);
  add_number_of_copies(json, holder.copies);
  return json.text();
}

std::string finished(const std::string& value, WallTime now) {
  const LockValue stored = LockValue::parse(value);
  JsonObject end;
  end.time("finished_at", now);
  if (stored.holder.size() <= 2) return stored.token + ' ' + end.text();
  return stored.token + ' ' + stored.holder.substr(0, stored.holder.size() - 1) + ',' + end.text().substr(1);
}

}  // namespace mcds
