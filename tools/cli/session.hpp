// The composition root: global options, environment and config become the objects a verb works with.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/cluster/cluster.hpp"
#include "common/primitives/context.hpp"
#include "tools/cli/output.hpp"

namespace mcds {

// As given on the command line, before environment and config are consulted.
struct GlobalOptions {
  std::optional<std::string> servers, pool, profile, key_prefix, config, protocol;
  std::string output = "json";
  std::optional<Duration> timeout, connect_timeout;
  std::optional<std::uint64_t> copies;
  bool verbose = false;
};

class Session {
 public:
  explicit Session(GlobalOptions options);
  ~Session();

  Output& output() { return output_; }
  Clock& clock();
  Random& random();
  // Settled on first use: flags beat the environment, which beats the config. Throw Failure(configuration) or
  // InvalidInput.
  const std::shared_ptr<const Placement>& placement();
  // Everything a structure needs. Connects lazily, per server.
  Context context();
  const GlobalOptions& options() const { return options_; }
  // Fields every answer about one key carries: "server":"10.0.0.1:11211".
  std::string server_address(std::size_t server);

 private:
  struct Parts;
  GlobalOptions options_;
  Output output_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace mcds
