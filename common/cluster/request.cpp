#include "common/cluster/request.hpp"

#include <algorithm>

#include "common/base/errors.hpp"
#include "common/base/units.hpp"

namespace mcds {

namespace {

constexpr std::int64_t longest_relative = 30 * 24 * 3600;

}  // namespace

Exptime Exptime::after(Duration ttl, WallTime now) {
  const std::int64_t seconds = std::max<std::int64_t>(1, ceil_seconds(ttl));
  if (seconds <= longest_relative) return Exptime(seconds);
  const std::int64_t absolute =
      std::chrono::ceil<std::chrono::seconds>(now.time_since_epoch()).count() + seconds;
  if (absolute > latest)
    throw InvalidInput("memcached cannot store an expiry after 2038-01-19; use a shorter ttl");
  return Exptime(absolute);
}

Exptime Exptime::at(WallTime boundary, WallTime now) {
  return after(boundary - now, now);
}

std::optional<Exptime> Exptime::absolute(std::int64_t second) {
  if (second <= longest_relative || second > latest) return std::nullopt;
  return Exptime(second);
}

const char* name_of(Op op) {
  switch (op) {
    case Op::get:
      return "get";
    case Op::gets:
      return "gets";
    case Op::probe:
      return "probe";
    case Op::add:
      return "add";
    case Op::set:
      return "set";
    case Op::replace:
      return "replace";
    case Op::cas:
      return "cas";
    case Op::append:
      return "append";
    case Op::incr:
      return "incr";
    case Op::decr:
      return "decr";
    case Op::touch:
      return "touch";
    case Op::add_and_get:
      return "add_and_get";
    case Op::remove:
      return "remove";
    case Op::remove_if:
      return "remove_if";
    case Op::incr_or_create:
      return "incr_or_create";
    case Op::append_or_create:
      return "append_or_create";
    case Op::version:
      return "version";
    case Op::stats:
      return "stats";
  }
  return "";
}

}  // namespace mcds
