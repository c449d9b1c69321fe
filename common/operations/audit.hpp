// KeyAudit: compares the copies of keys on all servers of a pool with the servers where their client reads.
// It removes copies that the client never reads or, on request, copies that differ.
//
// Round trips: one for each batch of keys. Keys whose copies differ are read up to three more times, after
// pauses, because copies that are rewritten one after the other differ for a moment. A removal takes two (see
// remove_copies). When things fail: a copy whose server does not answer is neither compared nor removed. A
// run that was interrupted can be repeated.
#pragma once

#include "common/cluster/keys/probe.hpp"
#include "common/operations/move/server_starts.hpp"

namespace mcds {

struct AuditOptions {
  bool prune = false, dry_run = false;      // dry_run: nothing is removed; `not_on_owner` is what would be
  bool even_last = false;                   // see find_not_on_owner
  bool divergent = false;                   // also remove the copies of an application's key that differ
  std::optional<std::string> journal = {};  // the file that records the copies removed for `divergent`
};

// The file of `journal`. It records the copies to remove before the first one is removed, so that an
// interrupted run can continue.
class DropJournal {
 public:
  // Throws like moving::MoveJournal.
  DropJournal(const std::string& path, Cluster& cluster, const std::string& key_prefix, Clock& clock);

  // has() returns true if the journal has this copy and the copy was not written since, nor its server
  // started or flushed. add() records the copies on these servers; call it before they are removed.
  bool has(const std::string& key, const KeyCopy& copy) const;
  void add(const std::string& key, const KeyCopies& copies, std::span<const std::size_t> servers);

 private:
  moving::MoveJournal move_journal_;
  moving::ValidFrom valid_from_;
};

// The state of one key, and what was done about it.
struct Findings {
  const Placement& placement;
  Placement::Place place;
  Owners owners;  // the key's server first
  const std::string& key;
  const KeyCopies& copies;
  bool compares;                               // copies that agree have the same bytes
  std::vector<std::size_t> not_on_owner = {};  // servers whose copy is to be pruned, or would be
  std::vector<RemovedCopy> removed = {};
};

class KeyAudit {
 public:
  // `clock` must outlive it. The keys are read through `cluster`.
  KeyAudit(std::unique_ptr<Cluster> cluster, Clock& clock, std::string key_prefix, AuditOptions options);

  // Returns how many keys ask() should get at a time.
  std::size_t window() const { return window_; }
  // Returns the copies of each key. Throws InvalidInput for a key that is stored under several names.
  std::vector<KeyCopies> ask(std::span<const std::string> keys);
  // Reads keys with differing copies again, after pauses. Calls `answer` with the position in `keys` and the
  // copies once they agree, or after the last pause.
  using Answer = std::function<void(std::size_t position, KeyCopies copies)>;
  void ask_again(std::span<const std::string> keys, const Answer& answer);
  bool is_uncertain(const std::string& key, const KeyCopies& copies) const {
    return copies_differ(copies) && !differ_by_nature(key);
  }
  // Returns true if copies that agree may have different bytes: each copy of a journal, log or counter has
  // its own incarnation. Only elements have the same bytes everywhere.
  bool differ_by_nature(const std::string& key) const;
  // Removes the copies that must go, or only finds them.
  void prune(Findings& findings);

 private:
  std::vector<std::size_t> to_drop(const Findings& findings) const;
  void drop(Findings& findings, const std::string& wire_key, std::vector<std::size_t> servers);

  std::unique_ptr<Cluster> cluster_;
  Clock& clock_;
  std::string key_prefix_;
  AuditOptions options_;
  std::size_t window_, trip_;             // in keys
  std::unique_ptr<DropJournal> journal_;  // set with `divergent`
};

}  // namespace mcds
