#include "common/placement/failover.hpp"

#include <string>

namespace mcds {

namespace {

// The tries of each client, the first at the key's own server included.
constexpr unsigned python_memcached_tries = 10;
constexpr unsigned cache_memcached_tries = 20;
constexpr unsigned dalli_tries = 20;
constexpr unsigned pecl_tries = 20;
constexpr unsigned spymemcached_tries = 7;
constexpr std::size_t nginx_steps = 20;

class Tries {
 public:
  Tries(const Rule& rule, const Distributor& distributor, std::string_view text,
        const std::vector<bool>& down)
      : rule_(rule), distributor_(distributor), text_(text), down_(down), first_(rule.hash_of(text)) {}

  std::optional<std::size_t> python_memcached() const {
    return first_alive(python_memcached_tries, [this, hash = first_](unsigned attempt) mutable {
      if (attempt > 0) hash = rule_.hash_of(std::to_string(hash) + std::to_string(attempt - 1));
      return place(hash);
    });
  }

  std::optional<std::size_t> cache_memcached() const {
    return first_alive(cache_memcached_tries, [this, hash = first_](unsigned attempt) mutable {
      if (attempt > 0) hash += rule_.hash_of(numbered(attempt));
      return place(hash);
    });
  }

  std::optional<std::size_t> dalli() const {
    return first_alive(dalli_tries, [this](unsigned attempt) {
      return place(attempt == 0 ? first_ : rule_.hash_of(numbered(attempt - 1)));
    });
  }

  // A numbered key is a separate key: rules that look at its text see the number.
  std::optional<std::size_t> pecl_memcache() const {
    return first_alive(pecl_tries + 1, [this](unsigned attempt) {
      if (attempt == 0) return place(first_);
      const std::string text = std::string(text_) + '-' + std::to_string(attempt - 1);
      return distributor_.server_of(rule_.hash_of(text), text);
    });
  }

  std::optional<std::size_t> spymemcached() const {
    return first_alive(spymemcached_tries, [this, hash = first_](unsigned attempt) mutable {
      if (attempt > 0) hash = (hash + rule_.hash_of(numbered(attempt - 1))) & 0xffffffffU;
      return place(hash);
    });
  }

  std::optional<std::size_t> next_server() const {
    const std::size_t home = place(first_);
    return first_alive(down_.size(), [&](unsigned attempt) { return (home + attempt) % down_.size(); });
  }

  std::optional<std::size_t> next_hash() const {
    return first_alive(down_.size(), [this](unsigned attempt) { return place(first_ + attempt); });
  }

  std::optional<std::size_t> next_point() const {
    const auto& points = distributor_.continuum()->points();
    const std::size_t from = distributor_.continuum()->find(first_);
    return first_alive(nginx_steps + 1,
                       [&](unsigned attempt) { return points[(from + attempt) % points.size()].server; });
  }

 private:
  std::size_t place(std::uint64_t hash) const { return distributor_.server_of(hash, text_); }
  std::string numbered(unsigned number) const { return std::to_string(number).append(text_); }

  template <typename Attempt>
  std::optional<std::size_t> first_alive(std::size_t tries, Attempt attempt) const {
    for (unsigned i = 0; i < tries; ++i) {
      const std::size_t server = attempt(i);
      if (!down_[server]) return server;
    }
    return std::nullopt;
  }

  const Rule& rule_;
  const Distributor& distributor_;
  std::string_view text_;
  const std::vector<bool>& down_;
  std::uint64_t first_;
};

}  // namespace

const char* name_of(Failover failover) {
  switch (failover) {
    case Failover::unknown:
      return "unknown";
    case Failover::lost:
      return "lost";
    case Failover::rebuilt:
      return "rebuilt";
    case Failover::next_server:
      return "next_server";
    case Failover::next_hash:
      return "next_hash";
    case Failover::next_point:
      return "next_point";
    case Failover::next_route:
      return "next_route";
    case Failover::python_memcached:
    case Failover::cache_memcached:
    case Failover::dalli:
    case Failover::pecl_memcache:
    case Failover::spymemcached:
      return "rehash";
  }
  return "";
}

std::optional<std::size_t> server_after_failures(const Rule& rule, const Distributor& distributor,
                                                 std::string_view text, const std::vector<bool>& down) {
  const Tries tries(rule, distributor, text, down);
  switch (rule.failover) {
    case Failover::next_server:
      return tries.next_server();
    case Failover::next_hash:
      return tries.next_hash();
    case Failover::next_point:
      return tries.next_point();
    case Failover::python_memcached:
      return tries.python_memcached();
    case Failover::cache_memcached:
      return tries.cache_memcached();
    case Failover::dalli:
      return tries.dalli();
    case Failover::pecl_memcache:
      return tries.pecl_memcache();
    case Failover::spymemcached:
      return tries.spymemcached();
    case Failover::lost:
    case Failover::unknown:
    case Failover::rebuilt:
    case Failover::next_route:
      break;
  }
  const std::size_t home = distributor.server_of(rule.hash_of(text), text);
  return down[home] ? std::nullopt : std::optional(home);
}

}  // namespace mcds
