#include "common/placement/distribution.hpp"

#include <algorithm>
#include <string>

#include "common/base/errors.hpp"

namespace mcds {

namespace {

constexpr std::size_t max_points = std::size_t{1} << 24;

class Slots final : public Distributor {
 public:
  explicit Slots(std::vector<std::uint32_t> servers) : servers_(std::move(servers)) {}
  std::size_t server_of(std::uint64_t hash, std::string_view) const override {
    return servers_[hash % servers_.size()];
  }

 private:
  std::vector<std::uint32_t> servers_;
};

class Mask final : public Distributor {
 public:
  explicit Mask(std::vector<std::uint32_t> servers) : servers_(std::move(servers)) {}
  std::size_t server_of(std::uint64_t hash, std::string_view) const override {
    return servers_[hash & (servers_.size() - 1)];
  }

 private:
  std::vector<std::uint32_t> servers_;
};

class Ring final : public Distributor {
 public:
  explicit Ring(Continuum continuum) : continuum_(std::move(continuum)) {}
  std::size_t server_of(std::uint64_t hash, std::string_view) const override {
    return continuum_.server_of(hash);
  }
  const Continuum* continuum() const override { return &continuum_; }

 private:
  Continuum continuum_;
};

// Jump consistent hash (Lamping and Veach).
class Jump final : public Distributor {
 public:
  explicit Jump(std::vector<std::uint32_t> servers) : servers_(std::move(servers)) {}
  std::size_t server_of(std::uint64_t hash, std::string_view) const override {
    std::int64_t bucket = -1;
    for (std::int64_t next = 0; next < static_cast<std::int64_t>(servers_.size());) {
      bucket = next;
      hash = hash * 2862933555777941757U + 1;
      next = static_cast<std::int64_t>(static_cast<double>(bucket + 1) *
                                       (2147483648.0 / static_cast<double>((hash >> 33) + 1)));
    }
    return servers_[static_cast<std::size_t>(bucket)];
  }

 private:
  std::vector<std::uint32_t> servers_;
};

class Furc final : public Distributor {
 public:
  explicit Furc(std::vector<std::uint32_t> servers) : servers_(std::move(servers)) {}
  std::size_t server_of(std::uint64_t, std::string_view text) const override {
    return servers_[key_hash::furc(text, servers_.size())];
  }

 private:
  std::vector<std::uint32_t> servers_;
};

// The highest hash of NAME-KEY; of equal ones the greater name.
class Rendezvous final : public Distributor {
 public:
  Rendezvous(KeyHash hash, std::vector<Member> members) : hash_(hash), members_(std::move(members)) {}
  std::size_t server_of(std::uint64_t, std::string_view text) const override {
    const Member* best = nullptr;
    std::uint64_t best_score = 0;
    thread_local std::string named;
    for (const auto& member : members_) {
      named.assign(member.name).append(1, '-').append(text);
      const auto score = hash_(named);
      if (best != nullptr && (score < best_score || (score == best_score && member.name <= best->name)))
        continue;
      best = &member;
      best_score = score;
    }
    return best->index;
  }

 private:
  KeyHash hash_;
  std::vector<Member> members_;
};

// The highest hash of KEYNAME; of equal ones the server with the highest hash of NAME, of those the first.
class RendezvousKeyFirst final : public Distributor {
 public:
  RendezvousKeyFirst(KeyHash hash, std::vector<Member> members) : hash_(hash), members_(std::move(members)) {
    for (const auto& member : members_) own_.push_back(hash_(member.name));
  }
  std::size_t server_of(std::uint64_t, std::string_view text) const override {
    std::size_t best = 0;
    std::pair<std::uint64_t, std::uint64_t> best_score;
    thread_local std::string named;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      named.assign(text).append(members_[i].name);
      const std::pair score{hash_(named), own_[i]};
      if (i > 0 && score <= best_score) continue;
      best = i;
      best_score = score;
    }
    return members_[best].index;
  }

 private:
  KeyHash hash_;
  std::vector<Member> members_;
  std::vector<std::uint64_t> own_;
};

// The highest hash of NAME-ROUNDKEY over as many rounds as a server's weight; of equal ones the first.
class Election final : public Distributor {
 public:
  Election(KeyHash hash, std::vector<Member> members) : hash_(hash), members_(std::move(members)) {}
  std::size_t server_of(std::uint64_t, std::string_view text) const override {
    std::size_t best = members_.front().index;
    std::uint64_t best_score = 0;
    for (const auto& member : members_) {
      for (std::uint32_t round = 0; round < member.weight; ++round) {
        const auto score = hash_(member.name + '-' + std::to_string(round) + std::string(text));
        if (score <= best_score) continue;
        best = member.index;
        best_score = score;
      }
    }
    return best;
  }

 private:
  KeyHash hash_;
  std::vector<Member> members_;
};

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
      throw InvalidInput("the weights are too large: their sum is above 16 million");
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
      throw InvalidInput("the weights are too large: more than 16 million points");
  }
  if (points.empty()) throw InvalidInput("every server has the weight 0; give at least one server a weight");
  return {std::move(points), rule.search, rule.ties, rule.bits};
}

// PECL memcache looks the ring up in 1024 places and keeps what it found.
std::vector<std::uint32_t> sampled(const Continuum& continuum) {
  constexpr std::uint64_t buckets = 1024;
  std::vector<std::uint32_t> servers;
  for (std::uint64_t i = 0; i < buckets; ++i)
    servers.push_back(continuum.server_of(i * (0xffffffffU / buckets)));
  return servers;
}

}  // namespace

std::unique_ptr<const Distributor> make_distributor(const Rule& rule, const std::vector<Member>& members) {
  switch (rule.distribution) {
    case Distribution::modulo:
      return std::make_unique<Slots>(slots_of(members, rule.repeats));
    case Distribution::mask:
      return std::make_unique<Mask>(slots_of(members, false));
    case Distribution::ring:
      return std::make_unique<Ring>(continuum_of(rule, members));
    case Distribution::bucketed:
      return std::make_unique<Slots>(sampled(continuum_of(rule, members)));
    case Distribution::jump:
      return std::make_unique<Jump>(slots_of(members, false));
    case Distribution::furc:
      return std::make_unique<Furc>(slots_of(members, false));
    case Distribution::rendezvous:
      return std::make_unique<Rendezvous>(rule.hash, members);
    case Distribution::rendezvous_key_first:
      return std::make_unique<RendezvousKeyFirst>(rule.hash, members);
    case Distribution::election:
      return std::make_unique<Election>(rule.hash, members);
    case Distribution::routes:  // placed by make_routed_placement
    case Distribution::asked:   // by make_asked_placement
      break;
  }
  return nullptr;
}

}  // namespace mcds
