#include "common/primitives/in_use.hpp"

#include "common/base/bounds.hpp"
#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/primitives/seal.hpp"

namespace mcds {

namespace {

constexpr std::string_view in_use_mark = "P1 ";
constexpr std::size_t most_users = 32;  // the oldest of more are forgotten
constexpr int most_notes = 3;

std::int64_t seconds_of(WallTime time) {
  return std::chrono::ceil<std::chrono::seconds>(time.time_since_epoch()).count();
}

std::optional<InUse> parse_line(std::string_view line) {
  auto body = unseal(line);
  if (!body || !body->starts_with(in_use_mark)) return std::nullopt;
  body->remove_prefix(in_use_mark.size());
  const std::size_t space = body->find(' ');
  const std::string what(body->substr(0, space));
  if (what.empty() || space == std::string_view::npos) return std::nullopt;
  const auto until = parse_i64(body->substr(space + 1));
  if (!until || *until < 0 || *until > latest_second) return std::nullopt;
  return InUse{what, WallTime(std::chrono::seconds(*until))};
}

}  // namespace

std::vector<InUse> parse_in_use(std::string_view value, WallTime now) {
  std::vector<InUse> all;
  while (!value.empty()) {
    auto one = parse_line(take_line(value));
    if (!one) continue;
    std::erase_if(all, [&](const InUse& other) { return other.what == one->what; });
    if (one->until > now) all.push_back(std::move(*one));
  }
  return all;
}

std::string in_use_value(const std::vector<InUse>& all) {
  std::string value;
  for (const InUse& one : all) {
    const std::size_t start = value.size();
    append_all(value, {in_use_mark, one.what, " ", std::to_string(seconds_of(one.until))});
    append_seal(value, start);
    value += '\n';
  }
  return value;
}

Request note_in_use(const std::string& key, const Reply& seen, const InUse& noted, WallTime now) {
  auto all = parse_in_use(seen.outcome == Outcome::hit ? seen.value : "", now);
  WallTime until = noted.until;
  std::erase_if(all, [&](const InUse& other) {
    const bool same = other.what == noted.what;
    // What is put late does not end it earlier.
    if (same) until = std::max(until, other.until);
    return same;
  });
  if (all.size() >= most_users) all.erase(all.begin());
  all.push_back({noted.what, until});
  for (const InUse& one : all) until = std::max(until, one.until);
  const Exptime exptime = Exptime::at(until, now);
  if (seen.outcome != Outcome::hit) return Request::add(key, in_use_value(all), exptime);
  if (seen.cas.value == 0) return Request::set(key, in_use_value(all), exptime);
  return Request::compare_and_set(key, in_use_value(all), exptime, seen.cas);
}

void expect_in_use(const Context& context, const std::string& key, std::string_view value,
                   std::size_t server) {
  std::string_view rest = value;
  bool is_ours = value.empty();
  while (!is_ours && !rest.empty()) is_ours = parse_line(take_line(rest)).has_value();
  if (is_ours) return;
  throw CorruptData(key +
                        (value.starts_with(in_use_mark) ? " was written by mcds 0.x, or is damaged"
                                                        : " holds another program's value") +
                        "; remove it, or use another name",
                    context.cluster.address_of(server));
}

Reply look_in_use(const Context& context, const std::string& key, const Reply& seen) {
  Reply known = seen.is(ReplyFailure::Kind::refused) ? context.cluster.execute(Request::get(key)) : seen;
  expect_in_use(context, key, known.value, known.server);
  return known;
}

void note_in_use(const Context& context, const std::string& key, const InUse& noted) {
  static_cast<void>(attempt([&] {
    for (int round = 0; round < most_notes; ++round) {
      const Reply seen = look_in_use(context, key, context.cluster.execute(Request::gets(key)));
      if (seen.unknown()) continue;
      if (seen.failed()) return;
      const Reply stored = context.cluster.execute(note_in_use(key, seen, noted, context.clock.wall()));
      if (stored.outcome == Outcome::stored || (stored.failed() && !stored.unknown())) return;
    }
  }));
}

}  // namespace mcds
