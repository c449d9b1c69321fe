// Asks all servers for keys and says of each where its copies are and which of them go.
#pragma once

#include "common/operations/audit.hpp"
#include "tools/commands/where/options.hpp"

namespace mcds {

class Probe {
 public:
  Probe(Session& session, const WhereOptions& options, const Placements& placements);

  // Keys are asked for in trips: `run` finishes what is left. With --live copies that differ are looked at
  // again together, at the end or when there are many; otherwise answers keep the order of the keys.
  ExitStatus add(const std::string& key);
  ExitStatus run();
  // How many are answered together, in their order.
  std::size_t window() const { return audit_.window(); }
  // What these keys say of the first profile; nothing is printed or removed.
  void gather(std::span<const std::string> keys, PruneEvidence& evidence);
  // One whose copies are known, and one that is known to be right.
  ExitStatus finish(const std::string& key, const KeyCopies& copies);
  void count_ok() { ++counts_[Verdict::ok]; }
  // See KeyAudit.
  bool differ_by_nature(const std::string& key) const { return audit_.differ_by_nature(key); }
  // Whether more than half of what was counted is nowhere where the client looks.
  bool is_mostly_elsewhere() const;
  // What was counted of --live.
  JsonObject summary() const;
  // What --prune did.
  RemovalSummary::Removed removed() const;
  JsonObject selection() const;
  // Its bare form is a verdict; with --list it is omitted, for the keys are the answer.
  void print_summary(const JsonObject& summary, ExitStatus status) const;

 private:
  ExitStatus finish_window();
  ExitStatus finish_doubtful();
  ExitStatus finish(const Placement& placement, const std::string& key, const KeyCopies& copies);
  ExitStatus count(const Findings& findings);

  Session& session_;
  const WhereOptions& options_;
  const Placements& placements_;
  KeyAudit audit_;
  std::vector<std::string> keys_;
  std::vector<std::string> doubtful_;  // with --live
  std::map<Verdict, std::uint64_t> counts_;
  std::map<Removal, std::uint64_t> removals_;
  std::uint64_t strays_ = 0;
};

}  // namespace mcds
