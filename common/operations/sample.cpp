#include "common/operations/sample.hpp"

#include "common/primitives/parts.hpp"
#include "common/primitives/structure_names.hpp"

namespace mcds {

void PlacementSample::take(const LiveKey& key) {
  if (counts_[key.server] == of_each_ || is_vote(key.key)) return;
  const auto ours = structure_in(key.key, key_prefix_);
  if (ours && (ours->name.in_several() || ours->name.structure == "lock" ||
               !placed(std::string(key.key), ours->key_prefix).with.empty()))
    return;
  ++counts_[key.server];
  const auto [at, is_new] = known_.emplace(std::string(key.key), keys_.size());
  if (is_new)
    keys_.push_back({at->first, {key.server}});
  else
    keys_[at->second].servers.push_back(key.server);
}

}  // namespace mcds
