// CopyCountGuard prevents two structures of the same name with different copy counts. The count is part of
// every key, so a client with the wrong --copies reads a miss. Call the guard before you report that miss or
// create anything: it throws if the structure exists with another count. Its contract is below.
#pragma once

#include <set>

#include "common/primitives/context.hpp"

namespace mcds {

class CopyCountGuard {
 public:
  // Returns true if these roots, all found under one copy count, mean that the structure exists. A counter
  // needs this because its removal leaves a tombstone. By default any root counts.
  using RootsExist = std::function<bool(std::span<const std::string> roots, std::size_t copies)>;
  // Removes what the caller has just created. Returns true if nothing of it is left.
  using Undo = std::function<bool()>;

  // The root is the key that exists as long as the structure does; `root_suffix` is what follows key() in it,
  // such as ":i" for a table. Throws InvalidInput if no key can contain `name`.
  CopyCountGuard(const Context& context, std::string_view structure, std::string_view name,
                 std::string_view root_suffix, RootsExist roots_exist = {});

  // Returns the structure's key, which is the prefix of all its other keys.
  const std::string& key() const { return key_; }

  // Throws Failure(bad_data) if the structure exists with another copy count and not with this one. A check
  // that is less than a second old is not repeated. A failed check is never reused. Returns true if it has
  // just found that the structure does not exist.
  bool check();

  // Checks again after a creation, before it is acknowledged. If another count is found, calls `undo` and
  // throws Failure(bad_data), or UnknownOutcome if `undo` fails. Also throws UnknownOutcome if a server that
  // answered check() does not answer now.
  void confirm_creation(const Undo& undo);

  // Serves callers that make the check themselves: find_other_count() returns another count under which the
  // structure exists, and refuse_creation() is the second half of confirm_creation() for it.
  std::optional<std::size_t> find_other_count() const;
  [[noreturn]] void refuse_creation(std::size_t other, const Undo& undo) const;

 private:
  struct Survey;  // the roots found under every copy count
  Survey survey() const;
  std::string key_for(std::size_t copies) const;
  [[noreturn]] void refuse(std::size_t other) const;
  std::string created() const;

  Context context_;
  std::string structure_, name_, root_suffix_, key_;
  RootsExist roots_exist_;
  std::optional<SteadyTime> checked_at_;
  std::set<std::size_t> silent_servers_;  // servers that did not answer the last check
};

// Implements Undo for plain items: reads `gets`, then deletes each item that `is_ours` accepts, by its cas
// token. With `in_order` it deletes one item per trip. Returns false if any item is left.
using IsOurs = std::function<bool(std::size_t get, const Reply& found)>;
bool remove_created(Cluster& cluster, std::span<const Request> gets, const IsOurs& is_ours,
                    bool in_order = false);

}  // namespace mcds

// Key layout
//   <namespace><structure>:<name>      kept in one copy:                table:blocked
//   <namespace><structure><N>:<name>   kept in N copies, N at least 2:  table2:blocked
// Invariants
//   A client with the wrong count never reads, overwrites or repairs the other structure: its keys differ.
//   A creator checks twice. Of two creators with different counts, at least one sees the other, undoes its
//   creation and is refused. A third client may briefly see a root that is then undone.
// Round trips
//   None while the structure exists, or if the pool has one server; 1 for a miss or creation, at most once a
//   second; 1 more to confirm.
// When things fail
//   A server that answers neither check may hide a root, so the structure can be created a second time with
//   another count. Nothing of either is lost; each is read with its own count. Refusing instead would be
//   worse: the single copy's root is on the first server of several copies, so nothing could be created while
//   that server is down.
