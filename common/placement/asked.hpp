// A client that is asked where its keys are instead of being imitated: libmemcached, configured by its own
// string. The profile `libmemcached-configured` places keys by it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "common/placement/placement.hpp"

namespace mcds {

class AskedClient {
 public:
  virtual ~AskedClient() = default;
  // In the client's order, each as often as it has it, with the weights of its configuration.
  virtual const Pool& servers() const = 0;
  // What it puts before every key, whether it hashes that or not; or empty.
  virtual const std::string& key_prefix() const = 0;
  // On how many servers it keeps each key: the key's own, and those that follow in the list.
  virtual std::size_t copies() const = 0;
  // Of a key without the prefix; `server` is an index into servers(). Throws Failure(configuration) if the
  // client ended or does not answer.
  virtual Placement::Place place_of(std::string_view key) const = 0;
  // These keys are asked for next: it may be told of all at once.
  virtual void expect(const std::vector<std::string>& keys) const = 0;
  // The same configuration with all weights 1.
  virtual std::shared_ptr<const AskedClient> with_equal_weights() const = 0;
};

// `pool`: the client's own servers. Throws InvalidInput if it is another one, or `client` is null.
std::shared_ptr<const Placement> make_asked_placement(const Pool& pool,
                                                      std::shared_ptr<const AskedClient> client);

// The best known of the other profiles that places a sample of keys as this placement does; empty: none.
std::string_view same_profile(const Placement& placement, const PlacementOptions& options);

}  // namespace mcds
