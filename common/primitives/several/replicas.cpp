#include "common/primitives/several/replicas.hpp"

#include <algorithm>
#include <memory>

namespace mcds {

namespace {

class CopyPlacement final : public Placement {
 public:
  CopyPlacement(const Placement& inner, std::size_t copy) : inner_(inner), copy_(copy) {}
  const Pool& pool() const override { return inner_.pool(); }
  std::string_view profile() const override { return inner_.profile(); }
  std::uint64_t hash_of(std::string_view key) const override { return inner_.hash_of(key); }
  std::size_t server_of(std::string_view key) const override {
    const auto servers = inner_.servers_of(key, copy_ + 1);
    return servers[std::min(copy_, servers.size() - 1)];
  }
  std::vector<std::size_t> servers_of(std::string_view key, std::size_t) const override {
    return {server_of(key)};
  }

 private:
  const Placement& inner_;
  std::size_t copy_;
};

}  // namespace

Replicas::Replicas(const Context& context)
    : runs_(context, context.copies, [&placement = context.cluster.placement()](std::size_t copy) {
        return std::make_unique<CopyPlacement>(placement, copy);
      }) {}

}  // namespace mcds
