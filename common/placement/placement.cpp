#include "common/placement/placement.hpp"

#include <algorithm>
#include <numeric>

#include "common/base/errors.hpp"
#include "common/placement/distribution.hpp"
#include "common/placement/failover.hpp"
#include "common/placement/mcrouter/routes.hpp"
#include "common/placement/profiles/profile.hpp"
#include "common/placement/rewrite.hpp"

namespace mcds {

namespace {

// The key without the prefix that the client adds after placing.
std::string_view without_prefix(const Rule& rule, std::string_view configured, std::string_view key) {
  const std::string_view prefix = configured.empty() ? rule.own_prefix : configured;
  if (rule.prefix == Prefix::stripped && key.starts_with(prefix)) key.remove_prefix(prefix.size());
  return key;
}

class ProfilePlacement final : public Placement {
 public:
  ProfilePlacement(const Profile& profile, Pool pool, PlacementOptions options)
      : profile_(profile), pool_(std::move(pool)), options_(std::move(options)) {
    // With one server there is nothing to choose: a hundred points would be a tenth of a cold start.
    if (pool_.size() > 1 || pool_.front().weight == 0) static_cast<void>(distributor());
  }

  const Pool& pool() const override { return pool_; }
  std::string_view profile() const override { return profile_.name; }
  const Continuum* continuum() const override { return distributor().continuum(); }

  std::uint64_t hash_of(std::string_view key) const override {
    std::string buffer;
    return profile_.rule.hash(hashed_text(key, buffer));
  }

  std::size_t server_of(std::string_view key) const override {
    return pool_.size() == 1 ? 0 : place_of(key).server;
  }

  Place place_of(std::string_view key) const override {
    std::string buffer;
    const auto text = hashed_text(key, buffer);
    const std::uint64_t hash = profile_.rule.hash(text);
    return {hash, pool_.size() == 1 ? 0 : distributor().server_of(hash, text)};
  }

  std::vector<std::size_t> servers_of(std::string_view key, std::size_t count) const override;
  std::optional<std::size_t> server_of_when_down(std::string_view key,
                                                 const std::vector<bool>& down) const override;

 private:
  // The client's pool without the dead servers, and what their indexes were in the whole one.
  struct Survivors {
    std::vector<bool> down;
    std::vector<std::size_t> indexes;
    std::shared_ptr<const Placement> placement;  // null: all are dead
  };
  const Survivors& survivors(const std::vector<bool>& down) const;

  const Distributor& distributor() const {
    if (distributor_ == nullptr) {
      distributor_ = make_distributor(profile_.rule, members_of(profile_.rule, pool_, options_.resolver));
    }
    return *distributor_;
  }

  std::string_view hashed_text(std::string_view key, std::string& buffer) const {
    const Rule& rule = profile_.rule;
    key = without_prefix(rule, options_.key_prefix, key);
    const std::string& tag = options_.hash_tag;
    if (rule.takes_tag && tag.size() == 2) key = rewrite::tagged(key, tag[0], tag[1]);
    return rule.rewrite == nullptr ? key : rule.rewrite(key, buffer);
  }

  const Profile& profile_;
  Pool pool_;
  PlacementOptions options_;
  mutable std::unique_ptr<const Distributor> distributor_;
  mutable Survivors survivors_;  // of the last question
};

const ProfilePlacement::Survivors& ProfilePlacement::survivors(const std::vector<bool>& down) const {
  if (survivors_.down == down) return survivors_;
  Survivors result{down, {}, nullptr};
  Pool pool;
  for (std::size_t i = 0; i < pool_.size(); ++i) {
    if (down[i]) continue;
    pool.push_back(pool_[i]);
    result.indexes.push_back(i);
  }
  if (!pool.empty()) result.placement = make_placement(profile_.name, std::move(pool), options_);
  return survivors_ = std::move(result);
}

std::optional<std::size_t> ProfilePlacement::server_of_when_down(std::string_view key,
                                                                 const std::vector<bool>& down) const {
  if (profile_.rule.failover == Failover::unknown) return Placement::server_of_when_down(key, down);
  if (profile_.rule.failover == Failover::rebuilt) {
    const Survivors& rest = survivors(down);
    return rest.placement == nullptr ? std::nullopt
                                     : std::optional(rest.indexes[rest.placement->server_of(key)]);
  }
  std::string buffer;
  return server_after_failures(profile_.rule, distributor(), hashed_text(key, buffer), down);
}

void add_once(std::vector<std::size_t>& servers, std::size_t server) {
  if (std::find(servers.begin(), servers.end(), server) == servers.end()) servers.push_back(server);
}

std::vector<std::size_t> ProfilePlacement::servers_of(std::string_view key, std::size_t count) const {
  count = std::min(count, pool_.size());
  std::vector<std::size_t> servers{server_of(key)};
  if (const Continuum* ring = continuum(); ring != nullptr && count > 1) {
    const auto& points = ring->points();
    const std::size_t from = ring->find(hash_of(key));
    for (std::size_t i = 1; i < points.size() && servers.size() < count; ++i) {
      add_once(servers, points[(from + i) % points.size()].server);
    }
  }
  for (std::size_t i = 1; servers.size() < count; ++i)
    add_once(servers, (servers.front() + i) % pool_.size());
  if (count < servers.size()) servers.resize(count);
  return servers;
}

}  // namespace

const char* name_of(Policy policy) {
  switch (policy) {
    case Policy::one:
      return "one";
    case Policy::all:
      return "all";
    case Policy::latest:
      return "latest";
    case Policy::random:
      return "random";
    case Policy::failover:
      return "failover";
  }
  return "";
}

Owners copies_on(const std::vector<std::size_t>& servers) {
  Owners owners{servers.size() == 1 ? Policy::one : Policy::all, {}};
  for (const std::size_t server : servers) owners.list.push_back({server});
  return owners;
}

std::optional<std::size_t> Placement::server_of_when_down(std::string_view, const std::vector<bool>&) const {
  throw InvalidInput("where keys of the profile '" + std::string(profile()) +
                     "' go while a server is down cannot be foretold; mcds where --profiles tells which can");
}

std::shared_ptr<const Placement> make_placement(std::string_view profile, Pool pool,
                                                const PlacementOptions& options) {
  if (pool.empty()) throw InvalidInput("the server list is empty");
  const Profile& known = profile_named(profile);
  if (known.rule.distribution != Distribution::routes)
    return std::make_shared<ProfilePlacement>(known, std::move(pool), options);
  if (options.routes == nullptr)
    throw InvalidInput("the profile mcrouter-routes needs --servers-from mcrouter:FILE");
  return make_routed_placement(std::move(pool), options.routes);
}

}  // namespace mcds
