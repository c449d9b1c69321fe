// Reads keys from all servers, and reports where the copies of each key are and which of them are removed.
#pragma once

#include "common/operations/audit.hpp"
#include "tools/commands/where/options.hpp"

namespace mcds {

class Probe {
 public:
  Probe(Session& session, const WhereOptions& options, const Placements& placements);

  // add() collects keys and reads them in batches; run() finishes the rest. With --live, keys whose copies
  // differ are read again together; otherwise answers keep the order of the keys.
  ExitStatus add(const std::string& key);
  ExitStatus run();
  // Returns the number of keys that are answered together, in their order.
  std::size_t window() const { return audit_.window(); }
  // Adds what the copies of these keys show about the first profile. Prints and removes nothing.
  void gather(std::span<const std::string> keys, PruneEvidence& evidence);
  // Finishes a key whose copies are known, or counts a key that is known to be right.
  ExitStatus finish(const std::string& key, const KeyCopies& copies);
  void count_ok() { ++counts_[Verdict::ok]; }
  // See KeyAudit.
  bool differ_by_nature(const std::string& key) const { return audit_.differ_by_nature(key); }
  // Returns true if more than half of the counted keys are on none of the servers that the client reads.
  bool is_mostly_elsewhere() const;
  // Returns the counts of --live.
  JsonObject summary() const;
  // Returns what --prune removed.
  RemovalSummary::Removed removed() const;
  JsonObject selection() const;
  // Prints the summary. Its bare form is a verdict, which --list omits because the keys are the answer.
  void print_summary(const JsonObject& summary, ExitStatus status) const;

 private:
  ExitStatus finish_window();
  ExitStatus finish_unconfirmed();
  ExitStatus finish(const Placement& placement, const std::string& key, const KeyCopies& copies);
  ExitStatus count(const Findings& findings);

  Session& session_;
  const WhereOptions& options_;
  const Placements& placements_;
  KeyAudit audit_;
  std::vector<std::string> keys_;
  std::vector<std::string> uncertain_;  // with --live; to be read again
  std::map<Verdict, std::uint64_t> counts_;
  std::map<Removal, std::uint64_t> removals_;
  std::uint64_t not_on_owner_ = 0;
};

}  // namespace mcds
