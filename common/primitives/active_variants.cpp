#include "common/primitives/active_variants.hpp"

#include "common/base/bounds.hpp"
#include "common/base/bytes.hpp"
#include "common/primitives/seal.hpp"

namespace mcds {

namespace {

constexpr std::string_view in_use_mark = "P1 ";
constexpr std::size_t max_users = 1000;  // beyond this number, the oldest is forgotten
constexpr int max_notes = 3;

std::int64_t seconds_of(WallTime time) {
  return std::chrono::ceil<std::chrono::seconds>(time.time_since_epoch()).count();
}

std::optional<ActiveVariant> parse_line(std::string_view line) {
  auto body = unseal(line);
  if (!body || !body->starts_with(in_use_mark)) return std::nullopt;
  body->remove_prefix(in_use_mark.size());
  const std::size_t space = body->find(' ');
  const std::string what(body->substr(0, space));
  if (what.empty() || space == std::string_view::npos) return std::nullopt;
  const auto until = parse_i64(body->substr(space + 1));
  if (!until || *until < 0 || *until > latest_second) return std::nullopt;
  return ActiveVariant{what, WallTime(std::chrono::seconds(*until))};
}

// Returns the whole lines that a later version may have written.
std::string unknown_lines(std::string_view value) {
  std::string kept;
  while (!value.empty()) {
    const std::string_view line = take_line(value);
    if (unseal(line) && !parse_line(line)) append_all(kept, {line, "\n"});
  }
  return kept;
}

}  // namespace

std::vector<ActiveVariant> parse_active_variants(std::string_view value, WallTime now) {
  std::vector<ActiveVariant> all;
  while (!value.empty()) {
    auto one = parse_line(take_line(value));
    if (!one) continue;
    std::erase_if(all, [&](const ActiveVariant& other) { return other.what == one->what; });
    if (one->until > now) all.push_back(std::move(*one));
  }
  return all;
}

std::string active_variants_value(const std::vector<ActiveVariant>& all) {
  std::string value;
  for (const ActiveVariant& one : all) {
    const std::size_t start = value.size();
    append_all(value, {in_use_mark, one.what, " ", std::to_string(seconds_of(one.until))});
    append_seal(value, start);
    value += '\n';
  }
  return value;
}

Request record_active_variant(const std::string& key, const Reply& seen, const ActiveVariant& noted,
                              WallTime now) {
  const std::string there = seen.outcome == Outcome::hit ? seen.value : "";
  auto all = parse_active_variants(there, now);
  WallTime until = noted.until;
  std::erase_if(all, [&](const ActiveVariant& other) {
    const bool same = other.what == noted.what;
    // A late event does not shorten the time until which its variant is in use.
    if (same) until = std::max(until, other.until);
    return same;
  });
  if (all.size() >= max_users) all.erase(all.begin());
  all.push_back({noted.what, until});
  for (const ActiveVariant& one : all) until = std::max(until, one.until);
  const Exptime exptime = Exptime::at(until, now);
  const std::string value = unknown_lines(there) + active_variants_value(all);
  if (seen.outcome != Outcome::hit) return Request::add(key, value, exptime);
  if (seen.cas.value == 0) return Request::set(key, value, exptime);
  return Request::compare_and_set(key, value, exptime, seen.cas);
}

void require_active_variant(const Context& context, const std::string& key, std::string_view value,
                            std::size_t server) {
  std::string_view rest = value;
  bool is_ours = value.empty();
  while (!is_ours && !rest.empty()) is_ours = parse_line(take_line(rest)).has_value();
  if (is_ours) return;
  throw CorruptData(key +
                        (value.starts_with(in_use_mark) ? " was written by mcds 0.x, or is damaged"
                                                        : " holds another program's data") +
                        "; remove the key, or use another name",
                    context.cluster.address_of(server));
}

Reply read_active_variants(const Context& context, const std::string& key, const Reply& seen) {
  Reply known = seen.is(ReplyFailure::Kind::refused) ? context.cluster.execute(Request::get(key)) : seen;
  require_active_variant(context, key, known.value, known.server);
  return known;
}

bool record_active_variant(const Context& context, const std::string& key, const ActiveVariant& noted) {
  for (int round = 0; round < max_notes; ++round) {
    const Reply seen = read_active_variants(context, key, context.cluster.execute(Request::gets(key)));
    if (seen.unknown()) continue;
    if (seen.failed()) return false;
    const Reply stored =
        context.cluster.execute(record_active_variant(key, seen, noted, context.clock.wall()));
    if (stored.outcome == Outcome::stored) return true;
    if (stored.failed() && !stored.unknown()) return false;
  }
  return false;
}

}  // namespace mcds
