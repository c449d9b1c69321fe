#include "common/placement/failover.hpp"

#include <array>
#include <string>

namespace mcds {

const char* name_of(Failover failover) {
  constexpr std::array words{"unknown",    "lost",   "rebuilt", "next_server", "next_hash", "next_point",
                             "next_route", "rehash", "rehash",  "rehash",      "rehash",    "rehash"};
  static_assert(words.size() == static_cast<std::size_t>(Failover::spymemcached) + 1);
  return words[static_cast<std::size_t>(failover)];
}

std::optional<std::size_t> server_after_failures(const Rule& rule, const Distributor& distributor,
                                                 std::string_view text, const std::vector<bool>& down) {
  const std::uint64_t first = rule.hash_of(text);
  const auto place = [&](std::uint64_t hash) { return distributor.server_of(hash, text); };
  const std::size_t home = place(first);
  const auto hash_numbered = [&](unsigned number) {
    return rule.hash_of(std::to_string(number).append(text));
  };
  // The tries of each client, the first at the key's own server included.
  const auto first_alive = [&](std::size_t tries, auto server_at) -> std::optional<std::size_t> {
    for (unsigned attempt = 0; attempt < tries; ++attempt) {
      const std::size_t server = attempt == 0 ? home : server_at(attempt);
      if (!down[server]) return server;
    }
    return std::nullopt;
  };
  switch (rule.failover) {
    case Failover::next_server:
      return first_alive(down.size(), [&](unsigned attempt) { return (home + attempt) % down.size(); });
    case Failover::next_hash:
      return first_alive(down.size(), [&](unsigned attempt) { return place(first + attempt); });
    case Failover::next_point: {
      const auto& points = distributor.continuum->points();
      const std::size_t from = distributor.continuum->find(first);
      return first_alive(1 + 20,
                         [&](unsigned attempt) { return points[(from + attempt) % points.size()].server; });
    }
    case Failover::python_memcached:
      return first_alive(10, [&, hash = first](unsigned attempt) mutable {
        return place(hash = rule.hash_of(std::to_string(hash) + std::to_string(attempt - 1)));
      });
    case Failover::cache_memcached:
      return first_alive(
          20, [&, hash = first](unsigned attempt) mutable { return place(hash += hash_numbered(attempt)); });
    case Failover::dalli:
      return first_alive(20, [&](unsigned attempt) { return place(hash_numbered(attempt - 1)); });
    case Failover::pecl_memcache:
      // A numbered key is a separate key: rules that look at its text see the number.
      return first_alive(1 + 20, [&](unsigned attempt) {
        const std::string numbered = std::string(text) + '-' + std::to_string(attempt - 1);
        return distributor.server_of(rule.hash_of(numbered), numbered);
      });
    case Failover::spymemcached:
      return first_alive(7, [&, hash = first](unsigned attempt) mutable {
        return place(hash = (hash + hash_numbered(attempt - 1)) & 0xffffffffU);
      });
    case Failover::lost:
    case Failover::unknown:
    case Failover::rebuilt:
    case Failover::next_route:
      break;
  }
  return down[home] ? std::nullopt : std::optional(home);
}

}  // namespace mcds
