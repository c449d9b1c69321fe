// What `mcds where` was asked, and its parts that ask servers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/placement/placement.hpp"
#include "tools/cli/exit_status.hpp"

namespace mcds {

class Session;

struct WhereOptions {
  std::vector<std::string> keys;
  bool explain = false;
  bool profiles = false;
  bool probe = false;
  bool prune = false;
  bool even_last = false;
  bool dry_run = false;
  bool yes = false;
  std::optional<std::string> down;
  bool guess = false;
  std::optional<std::uint64_t> sample;
};

using Placements = std::vector<std::shared_ptr<const Placement>>;

// where_probe.cpp: where the copies are.
ExitStatus where_probe(Session& session, const WhereOptions& options, const Placements& placements);
// where_down.cpp: where the client goes while servers are dead.
ExitStatus where_down(Session& session, const WhereOptions& options, const Placements& placements);
// where_guess.cpp: which client put the keys where they are.
ExitStatus where_guess(Session& session, const WhereOptions& options);

}  // namespace mcds
