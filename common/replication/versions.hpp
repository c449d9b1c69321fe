// Versions keeps one value per key in N copies, so that all clients read what was acknowledged last,
// whichever copies missed it. Its contract is at the end of this file.
#pragma once

#include "common/base/errors.hpp"
#include "common/primitives/context.hpp"
#include "common/replication/copies.hpp"
#include "common/replication/quorum.hpp"

namespace mcds {

// The first version of a value that is written while some copies are unreachable and all others are empty.
// Versions in the unreachable copies do not count as newer.
constexpr std::uint32_t first_uncertain_version = 1U << 20;

// The state of one copy, as it was read or written since.
struct VersionedCopy {
  std::size_t server = 0;
  bool found = false;  // a value or a tombstone was found
  bool removed = false;
  bool written = false;  // by this client
  bool begun = false;    // by this client, over no live value
  bool unread = false;   // assumed empty
  std::uint32_t number = 0;
  std::uint32_t flags = 0;  // only of a single copy
  std::string value = {};
  CasUnique cas = {};
  std::optional<Failure> failure = {};  // it did not answer, or its write failed or may have been applied
  bool flood = false;                   // with `failure`: the replies exceeded the memory limit

  bool live() const { return found && !removed && !failure; }
};

struct VersionedItem {
  std::string key;
  std::vector<VersionedCopy> copies;  // in the order of copy_servers()

  // Returns the newest of the copies that answered, or nullptr if all of them are empty.
  const VersionedCopy* newest() const;
  bool live() const {
    const VersionedCopy* copy = newest();
    return copy != nullptr && !copy->removed;
  }
  // Returns true if every copy that answered has a live value.
  bool live_everywhere() const;
  // Returns true if one copy that answered is empty and another is not.
  bool lost_somewhere() const;
  bool any_failed() const {
    return std::ranges::any_of(copies, [](const auto& copy) { return copy.failure.has_value(); });
  }
  // Returns true if the replies to one batch exceeded the memory limit: ask for fewer keys.
  bool flood() const { return std::ranges::any_of(copies, &VersionedCopy::flood); }
  // Returns the version of the next write, or nullopt if another program's flags leave no higher one.
  std::optional<std::uint32_t> next_number() const;
  // Each of these returns a failure by the rules of replication/quorum.hpp. failure_of_read(): too little is
  // known to write anything. failure_of_write(): the write is not done. failure_of_answer(): the value that
  // was read, and written back where it was missing, may not be answered.
  std::optional<Failure> failure_of_read() const {
    return failure_of(QuorumPhase::reading, copies, [](const VersionedCopy& copy) { return copy.found; });
  }
  // A copy without a failure has what was written, or something newer.
  std::optional<Failure> failure_of_write() const {
    return failure_of(QuorumPhase::writing, copies, [](const VersionedCopy&) { return true; });
  }
  std::optional<Failure> failure_of_answer() const {
    return failure_of(QuorumPhase::answering, copies, [](const VersionedCopy&) { return true; });
  }
  // Returns true if two copies hold different values and no version decides between them.
  bool divergent() const;
  std::vector<CopyOutcome> outcomes() const;
};

// Returns true if `value` and `flags` are a tombstone.
bool is_removal(std::string_view value, std::uint32_t flags);

// Returns the error for an item without next_number().
CorruptData no_version_left(const std::string& key);

// A value or tombstone that every copy of an item is to have, unless it has something newer.
struct VersionedWrite {
  VersionedItem* item;
  std::uint32_t number = 0;
  bool removed = false;
  std::string value = {};
  // Set if the index may not list the name: a copy without a live value is then not written.
  bool only_over_live = false;
  bool blocked = false;  // result of only_over_live
  // A copy that was assumed empty holds something or did not answer. Read all copies and write again.
  bool misread = false;
  bool held = false;  // with `misread`: a copy holds something
  // Writes only the first copy that answers.
  bool only_first = false;
  // By default a value never expires, and a tombstone expires after an hour.
  std::optional<Exptime> exptime = {};

  bool lacks(const VersionedCopy& copy) const;
};

// The removal of a live value. Of concurrent removers, at most one gets the answer that it removed the value.
struct VersionedRemoval {
  VersionedItem* item;
  std::uint32_t number = 0;
  // The fields below are results.
  bool superseded = false;  // another client changed it and nothing was written; read it again
  std::optional<Failure> failure = {};
  std::string value = {};  // our tombstone

  VersionedWrite write() const { return {.item = item, .number = number, .removed = true, .value = value}; }
  bool is_ours(const VersionedCopy& copy) const {
    return !copy.failure && copy.removed && copy.number == number && copy.value == value;
  }
  void judge();
};

class Versions {
 public:
  explicit Versions(const Context& context) : context_(context) {}

  // Returns false for a single copy. It is always authoritative, so a writer need not read it first.
  bool in_use() const { return !has_single_copy(context_.copies); }

  std::vector<VersionedItem> read(std::span<const std::string> keys) const {
    return finish_read(begin_read({keys.begin(), keys.end()}));
  }
  // begin_read() and finish_read() are the two steps of read().
  struct Reading {
    std::vector<std::string> keys = {};     // empty for a single copy: the requests have the keys
    std::size_t unread = 0;                 // number of copies of each key that are not read
    std::vector<std::size_t> servers = {};  // of the unread copies
    std::unique_ptr<Pending> replies = {};
  };
  // Assumes the first `unread` copies of each key to be empty as long as the others are. If one of the others
  // holds something or does not answer, finish_read() reads all copies of that key.
  Reading begin_read(std::vector<std::string> keys, std::size_t unread = 0) const;
  // Returns the items. Reuses the memory of `items`, which come from an earlier reading.
  std::vector<VersionedItem> finish_read(Reading reading, std::vector<VersionedItem> items = {}) const;

  void write(std::span<VersionedWrite> writes) const;
  // begin_write() sends what each copy needs, and finish_write() waits for the replies. The writes and items
  // must stay in place in between.
  // If a Writing is dropped, its requests may still be applied.
  struct Writing {
    struct Sent {
      VersionedWrite* write;
      VersionedCopy* copy;
    };
    std::span<VersionedWrite> writes;
    int round = 0;
    std::vector<Sent> sent = {};
    std::unique_ptr<Pending> replies = {};  // to `sent`
  };
  Writing begin_write(std::span<VersionedWrite> writes) const;
  void finish_write(Writing writing) const;
  void remove(std::span<VersionedRemoval> removals) const;
  // Returns the writes with two copies of which one has our value and the other a tombstone from a remover
  // that did not see that value and may have found nothing to remove. Sends no request if there are none.
  std::vector<std::size_t> unseen(std::span<const VersionedWrite> writes) const;

  // Returns the item for replies that the caller has read: the replies to one key's gets, one per copy.
  VersionedItem item_of(std::string key, std::span<const Reply> replies) const;

  // Returns the writes that bring older copies to the newest version.
  static std::vector<VersionedWrite> writes_needed(std::span<VersionedItem> items);
  // Writes back what differs, and returns for each item the failure if what was read may not be answered. If
  // `which` is given, only items that it accepts are written back; the others are judged as they were read.
  using Which = std::function<bool(const VersionedItem& item)>;
  std::vector<std::optional<Failure>> settle(std::span<VersionedItem> items, const Which& which = {}) const;

 private:
  std::vector<Request> gets(Reading& reading) const;
  void read_whole(std::vector<VersionedItem>& items) const;
  void take(VersionedCopy& copy, Reply&& reply) const;
  void put_request(const VersionedWrite& write, const VersionedCopy& copy, std::vector<Request>& batch) const;
  bool is_due(VersionedWrite& write, VersionedCopy& copy, bool too_often) const;
  std::vector<Request> due(Writing& writing) const;
  void take_written(Writing& writing, std::span<const Reply> replies) const;

  Context context_;
};

}  // namespace mcds

// Key layout
//   <key> = <the value's bytes>         flags: the version, from 1; 0: of another program, or before 0.2
//   <key> = removed by <16 hex digits>  a tombstone that identifies the remover and expires after an hour;
//                                       flags: 0x80000000 + version. Before 0.3 it was empty; before 0.2 its
//                                       flags were 0x6d636473.
//   <key> = 0                           a tombstone of a counter, which any program may increment: then the
//                                       counter exists again
//   A single copy has no version; its flags are the user's.
// Protocol: the multi-writer register of Attiya, Bar-Noy, Dolev 1995, and Lynch, Shvartsman 1997
//   write   reads all copies, then gives each that answered the highest version plus one: by cas on what was
//           read, or by add if it was empty. A copy that changed meanwhile is read again, and left alone if
//           it is newer.
//   read    takes the highest version. If a copy has a lower one or is empty, read writes the highest there
//           before it answers. Two values with the same version were written concurrently: a tombstone wins
//           over a value, and the larger value over the smaller. Of values without version the first copy's
//           counts, and none overwrites another.
//   remove  writes its tombstone to the first copy that answers, then to the others; versions.cpp explains
//           who removed it.
//   new     A writer that expects a value to be new may leave the first copies unread while the others are
//           empty; versions.cpp explains how it finds out otherwise.
//   No decision depends on clocks.
// Invariants
//   An older value never replaces a newer one, because every writer compares. A request that is executed late
//   meets another cas token, an existing item, or a higher version.
//   An empty copy has version 0 and outvotes no other.
// When things fail
//   A copy that was unreachable for more than an hour and returns with old data restores an element that was
//   removed meanwhile, unless the element is read within an hour of its return. A copy that returns counts
//   again if all copies written meanwhile are empty. A client that reaches only copies that missed a write
//   reads the value before it. A write while some copies are unreachable and all others are empty starts at
//   version 2^20, so that the unreachable ones do not count as newer.
//   With two copies, of two writes that reached one copy each, and not the same one, either may count, unless
//   both copies were read in between. One copy may also have the value and the other a newer tombstone by a
//   remover that did not see it; elements report that outcome as unknown.
// Round trips
//   read 1, 1 more if copies differ; write 2, remove 3, 2 more per conflicting write.
