#include <algorithm>

#include "common/base/errors.hpp"
#include "common/placement/identity.hpp"
#include "common/placement/points.hpp"
#include "common/placement/profile.hpp"

namespace mcds {

namespace {

constexpr Client libmemcached{"libmemcached", "1.1.4, 1.0.18", "C"};
constexpr Client gomemcache{"gomemcache", "20141109, HEAD", "Go"};

constexpr Rule modulo(KeyHash hash) {
  return {.hash = hash};
}
constexpr Rule lm_ring(KeyHash hash, PointMaker points) {
  return {.distribution = Distribution::ring,
          .hash = hash,
          .identity = identity::libmemcached,
          .zero_weight_is_one = true,
          .points = points};
}

constexpr Profile profiles[] = {
    {"gomemcache", &gomemcache, "default", modulo(key_hash::crc32)},
    {"ketama", &libmemcached, "KETAMA_WEIGHTED=1", lm_ring(key_hash::md5, points::ketama)},
    {"libmemcached-default", &libmemcached, "default", modulo(key_hash::one_at_a_time_signed)},
    {"libmemcached-ketama-weighted", &libmemcached, "KETAMA_WEIGHTED=1",
     lm_ring(key_hash::md5, points::ketama)},
    {"libmemcached-modula-crc", &libmemcached, "HASH=CRC", modulo(key_hash::crc15)},
};

constexpr Alias aliases[] = {{"libmemcached", "libmemcached-default"}};

}  // namespace

std::span<const Profile> all_profiles() {
  return profiles;
}
std::span<const Alias> all_aliases() {
  return aliases;
}

const Profile& profile_named(std::string_view name) {
  for (const auto& alias : aliases) {
    if (alias.name == name) return profile_named(alias.profile);
  }
  for (const auto& profile : profiles) {
    if (profile.name == name) return profile;
  }
  throw InvalidInput("no profile '" + std::string(name) + "'; see mcds where --profiles");
}

}  // namespace mcds
