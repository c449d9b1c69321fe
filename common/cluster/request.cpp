#include "common/cluster/request.hpp"

#include <algorithm>
#include <array>

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

std::optional<Exptime> Exptime::absolute(std::int64_t second) {
  if (second <= longest_relative || second > latest) return std::nullopt;
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

}  // namespace mcds
