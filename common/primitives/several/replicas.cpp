#include "common/primitives/several/replicas.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "common/primitives/several/side_by_side.hpp"

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

struct Replicas::Parts {
  Context whole;
  std::optional<SideBySide> copies;  // none: `whole` is the only one

  explicit Parts(const Context& context) : whole(context) {
    if (whole.copies == 1) return;
    const Placement& placement = whole.cluster.placement();
    copies.emplace(whole, whole.copies,
                   [&](std::size_t copy) { return std::make_unique<CopyPlacement>(placement, copy); });
  }
};

Replicas::Replicas(const Context& context) : parts_(std::make_unique<Parts>(context)) {}
Replicas::~Replicas() = default;
Replicas::Replicas(Replicas&&) noexcept = default;
Replicas& Replicas::operator=(Replicas&&) noexcept = default;

std::size_t Replicas::size() const {
  return parts_->whole.copies;
}

Context& Replicas::at(std::size_t copy) const {
  return parts_->copies ? parts_->copies->at(copy) : parts_->whole;
}

void Replicas::run(const std::function<void(std::size_t copy)>& work) const {
  if (!parts_->copies) return work(0);
  parts_->copies->each(work);
}

}  // namespace mcds
