
#include "common/base/errors.hpp"
#include "common/placement/profiles/profile.hpp"

namespace mcds {

namespace {

constexpr std::size_t max_points = std::size_t{1} << 24;

// Jump consistent hash (Lamping and Veach).
std::size_t jump(std::uint64_t hash, std::size_t servers) {
  std::int64_t bucket = -1;
  for (std::int64_t next = 0; next < static_cast<std::int64_t>(servers);) {
    bucket = next;
    hash = hash * 2862933555777941757U + 1;
    next = static_cast<std::int64_t>(static_cast<double>(bucket + 1) *
                                     (2147483648.0 / static_cast<double>((hash >> 33) + 1)));
  }
  return static_cast<std::size_t>(bucket);
}

// Returns the server with the highest hash of NAME-KEY; among equal ones the greater name.
std::size_t rendezvous(KeyHash hash, const std::vector<Member>& members, std::string_view text) {
  const Member* best = nullptr;
  std::uint64_t best_score = 0;
  thread_local std::string named;
  for (const auto& member : members) {
    named.assign(member.name).append(1, '-').append(text);
    const auto score = hash(named);
    if (best != nullptr && (score < best_score || (score == best_score && member.name <= best->name)))
      continue;
    best = &member;
    best_score = score;
  }
  return best->index;
}

// Returns the server with the highest hash of KEYNAME; among equal ones that with the highest hash of NAME
// (`own`), then the first.
std::size_t rendezvous_key_first(KeyHash hash, const std::vector<Member>& members,
                                 const std::vector<std::uint64_t>& own, std::string_view text) {
  std::size_t best = 0;
  std::pair<std::uint64_t, std::uint64_t> best_score;
  thread_local std::string named;
  for (std::size_t i = 0; i < members.size(); ++i) {
    named.assign(text).append(members[i].name);
    const std::pair score{hash(named), own[i]};
    if (i > 0 && score <= best_score) continue;
    best = i;
    best_score = score;
  }
  return members[best].index;
}

// Returns the server with the highest hash of NAME-ROUNDKEY, where the weight is the number of rounds; among
// equal ones the first.
std::size_t elected(KeyHash hash, const std::vector<Member>& members, std::string_view text) {
  std::size_t best = members.front().index;
  std::uint64_t best_score = 0;
  for (const auto& member : members) {
    for (std::uint32_t round = 0; round < member.weight; ++round) {
      const auto score = hash(member.name + '-' + std::to_string(round) + std::string(text));
      if (score <= best_score) continue;
      best = member.index;
      best_score = score;
    }
  }
  return best;
}

Shares shares_of(const std::vector<Member>& members, std::size_t points_per_weight) {
  Shares shares{members.size(), 0, false, points_per_weight};
  for (const auto& member : members) {
    shares.total_weight += member.weight;
    shares.weighted |= member.weight > 1;
  }
  shares.total_weight = std::max<std::uint64_t>(shares.total_weight, 1);
  return shares;
}

std::vector<std::uint32_t> slots_of(const std::vector<Member>& members, bool repeats) {
  std::vector<std::uint32_t> slots;
  for (const auto& member : members) {
    slots.insert(slots.end(), repeats ? member.weight : 1, member.index);
    if (slots.size() > max_points)
      throw InvalidInput("the weights are too large: their sum is above 16 million; use smaller ones");
  }
  if (slots.empty()) throw InvalidInput("every server has the weight 0; give at least one server a weight");
  return slots;
}

Continuum continuum_of(const Rule& rule, const std::vector<Member>& members) {
  const Shares shares = shares_of(members, rule.points_per_weight);
  std::vector<Point> points;
  std::vector<std::uint64_t> values;
  for (const auto& member : members) {
    values.clear();
    rule.points(member, shares, rule.point_hash != nullptr ? rule.point_hash : rule.hash, values);
    for (const auto value : values) points.push_back({value, member.index});
    if (points.size() > max_points)
      throw InvalidInput("the weights are too large: more than 16 million points; use smaller ones");
  }
  if (points.empty()) throw InvalidInput("every server has the weight 0; give at least one server a weight");
  return {std::move(points), rule.search, rule.ties, rule.bits};
}

// PECL memcache searches the ring for 1024 positions and uses the results instead of the ring.
std::vector<std::uint32_t> sampled(const Continuum& continuum) {
  constexpr std::uint64_t buckets = 1024;
  std::vector<std::uint32_t> servers;
  for (std::uint64_t i = 0; i < buckets; ++i)
    servers.push_back(continuum.server_of(i * (0xffffffffU / buckets)));
  return servers;
}

}  // namespace

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
  // Makes the client's tries in turn; the first one is at the key's own server.
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
      // A numbered key is a separate key, so rules that look at its text see the number.
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
    case Failover::next_route: break;
  }
  return down[home] ? std::nullopt : std::optional(home);
}

Distributor make_distributor(const Rule& rule, const std::vector<Member>& members) {
  using Text = std::string_view;
  switch (rule.distribution) {
    case Distribution::modulo:
      return {[slots = slots_of(members, rule.repeats)](std::uint64_t hash, Text) {
        return slots[hash % slots.size()];
      }};
    case Distribution::mask:
      return {[slots = slots_of(members, false)](std::uint64_t hash, Text) {
        return slots[hash & (slots.size() - 1)];
      }};
    case Distribution::ring: {
      const auto ring = std::make_shared<const Continuum>(continuum_of(rule, members));
      return {[circle = ring.get()](std::uint64_t hash, Text) { return circle->server_of(hash); }, ring};
    }
    case Distribution::bucketed:
      return {[slots = sampled(continuum_of(rule, members))](std::uint64_t hash, Text) {
        return slots[hash % slots.size()];
      }};
    case Distribution::jump:
      return {[slots = slots_of(members, false)](std::uint64_t hash, Text) {
        return slots[jump(hash, slots.size())];
      }};
    case Distribution::furc:
      return {[slots = slots_of(members, false)](std::uint64_t, Text text) {
        return slots[key_hash::furc(text, slots.size())];
      }};
    case Distribution::rendezvous:
      return {
          [hash = rule.hash, members](std::uint64_t, Text text) { return rendezvous(hash, members, text); }};
    case Distribution::rendezvous_key_first: {
      std::vector<std::uint64_t> own;
      for (const auto& member : members) own.push_back(rule.hash(member.name));
      return {[hash = rule.hash, members, own](std::uint64_t, Text text) {
        return rendezvous_key_first(hash, members, own, text);
      }};
    }
    case Distribution::election:
      return {[hash = rule.hash, members](std::uint64_t, Text text) { return elected(hash, members, text); }};
    case Distribution::routes:  // placed by make_routed_placement
    case Distribution::asked:   // by make_asked_placement
      break;
  }
  return {};
}

}  // namespace mcds
