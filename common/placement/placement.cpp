#include "common/placement/placement.hpp"

#include <set>

#include "common/base/errors.hpp"
#include "common/placement/mcrouter/routes.hpp"
#include "common/placement/profiles/profile.hpp"
#include "common/placement/rewrite.hpp"
#include "common/placement/ring/shares.hpp"

namespace mcds {

namespace {

// Returns the key without the prefix that the client adds after placing.
std::string_view without_prefix(const Rule& rule, std::string_view configured, std::string_view key) {
  const std::string_view prefix = configured.empty() ? rule.own_prefix : configured;
  if (rule.prefix == Prefix::stripped && key.starts_with(prefix)) key.remove_prefix(prefix.size());
  return key;
}

class ProfilePlacement final : public Placement {
 public:
  // `name` is the profile's name with its parameters.
  ProfilePlacement(std::string_view name, Pool pool, PlacementOptions options)
      : name_(name),
        profile_(profile_named(name)),
        listed_(std::move(pool)),
        pool_(without_repeats(listed_)),
        options_(std::move(options)),
        rule_(rule_with_parameters(profile_, name_, options_)) {
    if (name_.find(':') == std::string::npos) name_ = profile_.name;
    if (!options_.any_pool) refuse_equal_names();
    if (pool_.size() < listed_.size() && !options_.any_pool) take_repeats();
    // One server leaves no choice, and a hundred points would take a tenth of a cold start.
    if (pool_.size() > 1 || pool_.front().weight == 0) static_cast<void>(distributor());
  }

  const Pool& pool() const override { return pool_; }
  std::string_view profile() const override { return name_; }
  bool takes_any_byte() const override { return rule_.any_byte; }
  bool replicates() const override { return rule_.copies > 1 && pool_.size() > 1; }
  bool has_plain_owners() const override { return !replicates() && rule_.wire == nullptr; }
  Owners owners_of(std::string_view key) const override;
  const Continuum* continuum() const override { return distributor().continuum.get(); }

  std::uint64_t hash_of(std::string_view key) const override {
    std::string buffer;
    return rule_.hash_of(hashed_text(key, buffer));
  }

  std::size_t server_of(std::string_view key) const override {
    return pool_.size() == 1 ? 0 : place_of(key).server;
  }

  Place place_of(std::string_view key) const override {
    std::string buffer;
    const auto text = hashed_text(key, buffer);
    const std::uint64_t hash = rule_.hash_of(text);
    return {hash, pool_.size() == 1 ? 0 : distributor().server_of(hash, text)};
  }

  std::vector<std::size_t> servers_of(std::string_view key, std::size_t count) const override;
  std::optional<std::size_t> server_of_when_down(std::string_view key,
                                                 const std::vector<bool>& down) const override;

 private:
  // The client's pool without the dead servers, with their indexes in the whole pool.
  struct Survivors {
    std::vector<bool> down;
    std::vector<std::size_t> indexes;
    std::shared_ptr<const Placement> placement;  // null: all are dead
  };
  const Survivors& survivors(const std::vector<bool>& down) const;

  const Distributor& distributor() const {
    if (!distributor_.server_of) distributor_ = make_distributor(rule_, listed_members());
    return distributor_;
  }

  // Returns the members as often as they are listed, with their indexes in pool().
  std::vector<Member> listed_members() const {
    std::vector<Member> members = members_of(rule_, listed_, options_.resolver);
    if (!options_.buckets.empty()) return in_buckets(members);
    if (pool_.size() == listed_.size()) return members;
    const std::vector<std::size_t> indexes = indexes_without_repeats(listed_);
    for (Member& member : members) member.index = static_cast<std::uint32_t>(indexes[member.index]);
    return members;
  }

  std::vector<Member> in_buckets(const std::vector<Member>& members) const {
    std::vector<Member> buckets;
    for (const std::size_t place : options_.buckets) {
      if (place >= members.size())
        throw InvalidInput("buckets= names server " + std::to_string(place) + " of " +
                           std::to_string(members.size()) + "; the first is 0");
      buckets.push_back(members[place]);
    }
    return buckets;
  }

  void refuse_equal_names() const {
    std::set<std::string_view> names;
    for (const Server& server : pool_) {
      if (!server.name.empty() && !names.insert(server.name).second)
        throw InvalidInput("two servers have the same name; rename one: " + server.name);
    }
  }

  // Clients that divide by the number of entries support repeated servers; others do not.
  void take_repeats() {
    const std::vector<std::size_t> firsts = first_of_each(listed_);
    std::size_t twice = 0;
    while (firsts[twice] == twice) ++twice;
    if (rule_.distribution != Distribution::modulo || rule_.order != Order::as_given) {
      throw Failure(ErrorCode::configuration,
                    "the server " + listed_[twice].address() +
                        " is listed twice; list it once, with a weight (see mcds ring check)");
    }
    if (rule_.failover != Failover::lost) rule_.failover = Failover::unknown;
  }

  std::string_view hashed_text(std::string_view key, std::string& buffer) const {
    const Rule& rule = rule_;
    key = without_prefix(rule, options_.key_prefix, key);
    const std::string& tag = options_.hash_tag;
    if (rule.takes_tag && tag.size() == 2) key = rewrite::tagged(key, tag[0], tag[1]);
    if (rule.rewrite != nullptr) key = rule.rewrite(key, buffer);
    return options_.salt.empty() ? key : (buffer = std::string(key) + options_.salt);
  }

  std::string name_;
  const Profile& profile_;
  Pool listed_;
  Pool pool_;
  PlacementOptions options_;
  Rule rule_;
  mutable Distributor distributor_;
  mutable Survivors survivors_;  // for the latest `down`
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
  if (!pool.empty()) result.placement = make_placement(name_, std::move(pool), options_);
  return survivors_ = std::move(result);
}

std::optional<std::size_t> ProfilePlacement::server_of_when_down(std::string_view key,
                                                                 const std::vector<bool>& down) const {
  if (rule_.failover == Failover::unknown) return Placement::server_of_when_down(key, down);
  if (rule_.failover == Failover::rebuilt) {
    const Survivors& rest = survivors(down);
    return rest.placement == nullptr ? std::nullopt
                                     : std::optional(rest.indexes[rest.placement->server_of(key)]);
  }
  std::string buffer;
  return server_after_failures(rule_, distributor(), hashed_text(key, buffer), down);
}

Owners ProfilePlacement::owners_of(std::string_view key) const {
  constexpr std::size_t max_tries = 20;  // for each copy; the client gives up too
  std::vector<std::size_t> servers{server_of(key)};
  const std::size_t wanted = std::min(rule_.copies, pool_.size());
  if (rule_.replication == Replication::next_servers) servers = followed(std::move(servers), wanted);
  if (rule_.replication == Replication::next_tries && wanted > 1) {
    std::string buffer;
    std::string text(hashed_text(key, buffer));
    const bool is_first_try = rule_.rewrite == rewrite::pecl_session;  // KEY-0 is tried first, otherwise KEY
    is_first_try ? text.pop_back() : text.push_back('-');
    for (std::size_t i = is_first_try ? 1 : 0; servers.size() < wanted && i < max_tries * wanted; ++i) {
      const std::string tried = text + std::to_string(i);
      add_once(servers, distributor().server_of(rule_.hash_of(tried), tried));
    }
  }
  Owners owners = copies_on(servers);
  std::string buffer;
  if (rule_.wire == nullptr) return owners;
  // A prefix that the client adds after placing is also added after this rewrite.
  const std::string_view rest = without_prefix(rule_, options_.key_prefix, key);
  const std::string_view wire = rule_.wire(rest, buffer);
  if (wire == rest) return owners;
  for (Owner& owner : owners.list)
    owner.wire_key = std::string(key.substr(0, key.size() - rest.size())).append(wire);
  return owners;
}

std::vector<std::size_t> ProfilePlacement::servers_of(std::string_view key, std::size_t count) const {
  count = std::min(count, pool_.size());
  if (count < 2) return std::vector<std::size_t>(count, server_of(key));
  const Place place = place_of(key);
  std::vector<std::size_t> servers;
  servers.reserve(count);
  servers.push_back(place.server);
  if (const Continuum* ring = continuum(); ring != nullptr) {
    const auto& points = ring->points();
    const std::size_t from = ring->find(place.hash);
    for (std::size_t i = 1; i < points.size() && servers.size() < count; ++i) {
      add_once(servers, points[(from + i) % points.size()].server);
    }
  }
  return followed(std::move(servers), count);
}

}  // namespace

const char* name_of(Policy policy) {
  constexpr std::array words{"one", "all", "latest", "random", "failover"};
  static_assert(words.size() == static_cast<std::size_t>(Policy::failover) + 1);
  return words[static_cast<std::size_t>(policy)];
}

void add_once(std::vector<std::size_t>& servers, std::size_t server) {
  if (std::ranges::find(servers, server) == servers.end()) servers.push_back(server);
}

std::vector<std::size_t> Placement::followed(std::vector<std::size_t> servers, std::size_t count) const {
  const std::size_t all = pool().size();
  for (std::size_t i = 1; servers.size() < std::min(count, all); ++i)
    add_once(servers, (servers.front() + i) % all);
  return servers;
}

Owners copies_on(const std::vector<std::size_t>& servers) {
  Owners owners{servers.size() == 1 ? Policy::one : Policy::all, {}};
  for (const std::size_t server : servers) owners.list.push_back({server});
  return owners;
}

std::optional<std::size_t> Placement::server_of_when_down(std::string_view, const std::vector<bool>&) const {
  throw InvalidInput(
      "where keys of the profile '" + std::string(profile()) +
      "' go while a server is down cannot be predicted; see when_down in mcds where --profiles");
}

Operation operation_named(std::string_view word) {
  if (word == "get") return Operation::get;
  if (word == "set") return Operation::set;
  if (word == "delete") return Operation::remove;
  throw InvalidInput("--operation must be get, set or delete");
}

std::shared_ptr<const Placement> make_placement(std::string_view profile, Pool pool,
                                                const PlacementOptions& options) {
  if (pool.empty()) throw InvalidInput("the server list is empty; give at least one server");
  const Profile& known = profile_named(profile);
  if (known.rule.distribution == Distribution::asked) return make_asked_placement(pool, options.asked);
  if (known.rule.distribution != Distribution::routes)
    return std::make_shared<ProfilePlacement>(profile, std::move(pool), options);
  if (options.routes == nullptr)
    throw InvalidInput("the profile mcrouter-routes needs --servers-from mcrouter:FILE");
  return make_routed_placement(std::move(pool), options.routes, options.operation);
}

namespace {

class AskedPlacement final : public Placement {
 public:
  explicit AskedPlacement(std::shared_ptr<const AskedClient> client)
      : client_(std::move(client)),
        pool_(without_repeats(client_->servers())),
        indexes_(indexes_without_repeats(client_->servers())) {}

  const Pool& pool() const override { return pool_; }
  std::string_view profile() const override { return "libmemcached-configured"; }
  std::uint64_t hash_of(std::string_view key) const override { return place_of(key).hash; }
  std::size_t server_of(std::string_view key) const override { return place_of(key).server; }
  bool replicates() const override { return client_->copies() > 1 && pool_.size() > 1; }
  bool has_plain_owners() const override { return !replicates(); }

  Place place_of(std::string_view key) const override {
    const Place place = client_->place_of(without_prefix(key));
    return {place.hash, indexes_[place.server]};
  }

  void expect(const std::vector<std::string>& keys) const override {
    std::vector<std::string> asked;
    for (const std::string& key : keys) asked.emplace_back(without_prefix(key));
    client_->expect(asked);
  }

  Owners owners_of(std::string_view key) const override {
    std::vector<std::size_t> servers;
    const std::size_t first = client_->place_of(without_prefix(key)).server;
    for (std::size_t i = 0; i < std::min(client_->copies(), indexes_.size()); ++i)
      add_once(servers, indexes_[(first + i) % indexes_.size()]);
    return copies_on(servers);
  }

 private:
  std::string_view without_prefix(std::string_view key) const {
    if (key.starts_with(client_->key_prefix())) key.remove_prefix(client_->key_prefix().size());
    return key;
  }

  std::shared_ptr<const AskedClient> client_;
  Pool pool_;
  std::vector<std::size_t> indexes_;  // of the client's servers, in the pool
};

}  // namespace

std::shared_ptr<const Placement> make_asked_placement(const Pool& pool,
                                                      std::shared_ptr<const AskedClient> client) {
  if (client == nullptr ||
      !std::ranges::equal(pool, client->servers(), {}, &Server::address, &Server::address))
    throw InvalidInput(
        "the profile libmemcached-configured needs --servers-from libmemcached:STRING, and its servers");
  return std::make_shared<AskedPlacement>(std::move(client));
}

std::string_view same_profile(const Placement& placement, const PlacementOptions& options) {
  constexpr std::size_t compared = 420;
  SampleKeys sample(options.key_prefix);
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < compared; ++i) keys.push_back(sample.next());
  placement.expect(keys);
  const auto agrees = [&](std::string_view profile) {
    try {
      const auto other = make_placement(profile, options.asked->servers(), options);
      return other->replicates() == placement.replicates() &&
             std::ranges::all_of(keys, [&](const std::string& key) {
               return other->owners_of(key).list == placement.owners_of(key).list;
             });
    } catch (const Failure&) {
      return false;  // it cannot use this pool
    }
  };
  for (const bool own : {true, false}) {  // libmemcached's own names come first
    for (const Profile& profile : all_profiles()) {
      if (needs_source(profile.rule.distribution) || profile.name.starts_with("libmemcached-") != own)
        continue;
      if (agrees(profile.name)) return profile.name;
    }
  }
  return {};
}

}  // namespace mcds
