#include "common/cluster/request.hpp"

#include <algorithm>
#include <array>

#include "common/base/errors.hpp"
#include "common/base/units.hpp"

namespace mcds {

namespace {

constexpr std::int64_t max_relative = 30 * 24 * 3600;

}  // namespace

Exptime Exptime::after(Duration ttl, WallTime now) {
  const std::int64_t seconds = std::max<std::int64_t>(1, ceil_seconds(ttl));
  if (seconds <= max_relative) return Exptime(seconds);
  const std::int64_t absolute =
      std::chrono::ceil<std::chrono::seconds>(now.time_since_epoch()).count() + seconds;
  if (absolute > latest)
    throw InvalidInput("memcached cannot store an expiry after 2038-01-19; use a shorter ttl");
  return Exptime(absolute);
}

std::optional<Exptime> Exptime::absolute(std::int64_t second) {
  if (second <= max_relative || second > latest) return std::nullopt;
  return Exptime(second);
}

const char* name_of(Op op) {
  constexpr std::array words{"get",
                             "gets",
                             "probe",
                             "add",
                             "set",
                             "replace",
                             "cas",
                             "append",
                             "incr",
                             "decr",
                             "touch",
                             "remove",
                             "remove_if",
                             "add_and_get",
                             "incr_or_create",
                             "append_or_create",
                             "version",
                             "stats"};
  static_assert(words.size() == static_cast<std::size_t>(Op::stats) + 1);
  return words[static_cast<std::size_t>(op)];
}

const char* name_of(Outcome outcome) {
  constexpr std::array words{"hit",    "miss",      "stored",  "not_stored",
                             "exists", "not_found", "deleted", "failed"};
  static_assert(words.size() == static_cast<std::size_t>(Outcome::failed) + 1);
  return words[static_cast<std::size_t>(outcome)];
}

Reply Reply::failed_with(ReplyFailure::Kind kind, std::string message, std::size_t server, bool late) {
  Reply reply = of(Outcome::failed, server);
  reply.failure = std::make_shared<const ReplyFailure>(ReplyFailure{kind, std::move(message), late});
  return reply;
}

Reply Reply::of_text(std::string value, std::size_t server) {
  constexpr std::size_t max_shown = 40;
  std::string shown = "'";
  for (const char c : std::string_view(value).substr(0, max_shown)) shown += c >= 0x20 && c < 0x7f ? c : '?';
  shown += value.size() > max_shown ? "…'" : "'";
  Reply reply = failed_with(
      ReplyFailure::Kind::not_a_number,
      "the value " + shown + " is not a number, so it was not changed; does another program use this key?",
      server);
  reply.value = std::move(value);
  return reply;
}

}  // namespace mcds
