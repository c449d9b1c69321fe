// Every key that the servers list, against where it belongs.
#pragma once

#include <map>
#include <unordered_map>

#include "common/cluster/keys/live.hpp"
#include "tools/commands/where/probe.hpp"

namespace mcds {

class Audit {
 public:
  Audit(Session& session, const WhereOptions& options, const Placements& placements);
  // False: not every server listed all its keys, so that what is missing on one may be there.
  bool read();
  ExitStatus run();

 private:
  struct Listing {
    std::uint64_t hash, bytes;
    std::uint32_t server;
    bool owner;
  };
  struct Sum {
    std::uint64_t keys = 0, bytes = 0;
  };
  void take(const LiveKey& key);
  bool is_plain(std::string_view key) const;
  void count_those_right();
  static bool all_owners(std::span<const Listing> group);
  ExitStatus judge(std::span<const Listing> group);
  std::vector<JsonObject> pairs() const;

  Session& session_;
  KeySelection selection_;
  const Placement& placement_;
  Probe probe_;
  std::vector<Listing> listings_;
  std::uint64_t bytes_ = 0;                                   // of listings that are counted and gone
  std::unordered_map<std::uint64_t, std::string> names_;      // of what may be wrong
  std::map<std::pair<std::size_t, std::size_t>, Sum> pairs_;  // where it is, where it belongs
  std::vector<JsonObject> examples_;
};

}  // namespace mcds
