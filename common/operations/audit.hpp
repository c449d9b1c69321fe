// Compares the copies of keys over all servers of a pool with where their client looks, and removes those
// that it never reads, or, if it is told to, those that differ.
//
// Round trips: one for each batch of keys; those whose copies differ are asked for up to three times more,
// after pauses, because copies that are rewritten one after the other differ for a moment. A removal costs
// two (see remove_copies). When things fail: a copy whose server does not answer is neither compared nor
// removed, and a run that ends may be repeated.
#pragma once

#include "common/cluster/keys/probe.hpp"
#include "common/operations/move/ledger.hpp"

namespace mcds {

struct AuditOptions {
  bool prune = false, dry_run = false;      // dry_run: nothing is removed, and `strays` is what would be
  bool even_last = false;                   // see strays_of
  bool divergent = false;                   // copies of an application's key that differ are removed, too
  std::optional<std::string> journal = {};  // of these, the file that says what they were
};

// What is known of one key, and what was done.
struct Findings {
  const Placement& placement;
  Placement::Place place;
  Owners owners;  // the key's server first
  const std::string& key;
  const KeyCopies& copies;
  bool compares;                         // whether copies that agree are the same bytes
  std::vector<std::size_t> strays = {};  // to be pruned, or that would be
  std::vector<RemovedCopy> removed = {};
};

class KeyAudit {
 public:
  // Both references outlive it. `cluster`: of the placement by which keys are asked for.
  KeyAudit(std::unique_ptr<Cluster> cluster, Clock& clock, std::string key_prefix, AuditOptions options);

  // Returns how many keys are answered together, in their order.
  std::size_t window() const { return window_; }
  // Returns the copies of each key. Throws InvalidInput for one that is kept under several names.
  std::vector<KeyCopies> ask(std::span<const std::string> keys);
  // Asks again for keys whose copies differed, after pauses, and gives `answer` each key's position in `keys`
  // and its copies when they agree, or after the last pause.
  using Answer = std::function<void(std::size_t position, KeyCopies copies)>;
  void ask_again(std::span<const std::string> keys, const Answer& answer);
  bool is_doubtful(const std::string& key, const KeyCopies& copies) const {
    return copies_differ(copies) && !differ_by_nature(key);
  }
  // Returns whether copies of it that agree may be different bytes: each copy of a journal, log or counter
  // has an incarnation of its own, only elements are the same everywhere.
  bool differ_by_nature(const std::string& key) const;
  // Removes what is to go, or finds what would.
  void prune(Findings& findings);

 private:
  std::vector<std::size_t> to_drop(const Findings& findings) const;
  void drop(Findings& findings, const std::string& wire_key, std::vector<std::size_t> servers);

  std::unique_ptr<Cluster> cluster_;
  Clock& clock_;
  std::string key_prefix_;
  AuditOptions options_;
  std::size_t window_, trip_;             // keys
  std::unique_ptr<DropJournal> journal_;  // of `divergent`
};

}  // namespace mcds
