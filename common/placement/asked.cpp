#include "common/placement/asked.hpp"

#include "common/base/errors.hpp"
#include "common/placement/profiles/profile.hpp"
#include "common/placement/ring/shares.hpp"

namespace mcds {

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
  for (const bool own : {true, false}) {  // libmemcached's own names for it come first
    for (const Profile& profile : all_profiles()) {
      if (needs_source(profile.rule.distribution) || profile.name.starts_with("libmemcached-") != own)
        continue;
      if (agrees(profile.name)) return profile.name;
    }
  }
  return {};
}

}  // namespace mcds
