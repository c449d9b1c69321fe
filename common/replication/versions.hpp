// One value per key in N copies: all clients read what was acknowledged last, whichever copies missed it.
// Its contract stands at the end of this file.
#pragma once

#include "common/base/errors.hpp"
#include "common/primitives/context.hpp"
#include "common/replication/copies.hpp"
#include "common/replication/quorum.hpp"

namespace mcds {

// What is written while some copies are unreachable and all others have forgotten, so that those do not count
// as newer.
constexpr std::uint32_t first_in_doubt = 1U << 20;

// What a copy held when it was read, or was written since.
struct VersionedCopy {
  std::size_t server = 0;
  bool found = false;  // live or removed
  bool removed = false;
  bool written = false;  // by us
  bool begun = false;    // by us, where nothing was live
  bool unread = false;   // taken to hold nothing
  std::uint32_t number = 0;
  std::uint32_t flags = 0;  // of a single copy
  std::string value = {};
  CasUnique cas = {};
  std::optional<Failure> failure = {};  // it did not answer, or was perhaps written
  bool flood = false;                   // with `failure`: too much was asked for at once

  bool live() const { return found && !removed && !failure; }
};

struct VersionedItem {
  std::string key;
  std::vector<VersionedCopy> copies;  // as copy_servers() has them

  // Of those that answered; nullptr: no copy has anything.
  const VersionedCopy* newest() const;
  bool live() const {
    const VersionedCopy* copy = newest();
    return copy != nullptr && !copy->removed;
  }
  // Every copy that answered has it.
  bool live_everywhere() const;
  // One that answered has nothing at all, and another has something.
  bool lost_somewhere() const;
  bool any_failed() const {
    return std::ranges::any_of(copies, [](const auto& copy) { return copy.failure.has_value(); });
  }
  // Too much was asked for at once.
  bool flood() const { return std::ranges::any_of(copies, &VersionedCopy::flood); }
  // Throws the first failure.
  void expect_all() const;
  // The version of the next write; nullopt if the flags are another program's.
  std::optional<std::uint32_t> next_number() const;
  // By replication/quorum.hpp: why nothing is known, so that nothing is to be written; why a write is not
  // done; and why what was read, and written back where it was missing, is no answer.
  std::optional<Failure> failure_of_read() const {
    return failure_of(Part::reading, copies, [](const VersionedCopy& copy) { return copy.found; });
  }
  // A copy without a failure has what was written, or something newer.
  std::optional<Failure> failure_of_write() const {
    return failure_of(Part::changing, copies, [](const VersionedCopy&) { return true; });
  }
  std::optional<Failure> failure_of_answer() const {
    return failure_of(Part::answering, copies, [](const VersionedCopy&) { return true; });
  }
  // Whether two copies hold values that no version decides between.
  bool divergent() const;
  std::vector<CopyOutcome> outcomes() const;
};

// Whether what is found says that there is nothing any more.
bool is_removal(std::string_view value, std::uint32_t flags);

// Of an item without next_number().
CorruptData no_version_left(const std::string& key);

// What is to be in all copies of an item, or something newer.
struct VersionedWrite {
  VersionedItem* item;
  std::uint32_t number = 0;
  bool removed = false;
  std::string value = {};
  // It is not known to be listed anywhere: a copy where it turns out to be missing is not written.
  bool only_over_live = false;
  bool blocked = false;  // the answer to only_over_live
  // A copy that was not read holds something, or did not answer: all are to be read, and it is written anew.
  bool misread = false;
  bool held = false;  // with `misread`: one holds something
  // The first copy that answers.
  bool only_first = false;
  // Otherwise a value never expires, and the record of a removal expires after an hour.
  std::optional<Exptime> exptime = {};

  bool lacks(const VersionedCopy& copy) const;
};

// The removal of something that is there. At most one of several removers at a time is told that it did it.
struct VersionedRemoval {
  VersionedItem* item;
  std::uint32_t number = 0;
  // The answers.
  bool overtaken = false;  // another changed it, and nothing was written: it is to be read again
  std::optional<Failure> failure = {};
  std::string value = {};  // our word

  VersionedWrite write() const { return {.item = item, .number = number, .removed = true, .value = value}; }
  bool is_ours(const VersionedCopy& copy) const {
    return !copy.failure && copy.removed && copy.number == number && copy.value == value;
  }
  void judge();
};

class Versions {
 public:
  explicit Versions(const Context& context) : context_(context) {}

  // False: there is one copy, which is what it says and no more. Who writes then need not read before.
  bool in_use() const { return !is_only(context_.copies); }

  std::vector<VersionedItem> read(std::span<const std::string> keys) const {
    return finish_read(begin_read({keys.begin(), keys.end()}));
  }
  // read in two steps.
  struct Reading {
    std::vector<std::string> keys = {};     // of what is asked for they are in the requests
    std::size_t unread = 0;                 // copies of each key
    std::vector<std::size_t> servers = {};  // of those
    std::unique_ptr<Pending> replies = {};
  };
  // `unread`: so many of the first copies are taken to hold nothing, as far as the others hold nothing; those
  // of which one holds something, or does not answer, are read whole.
  Reading begin_read(std::vector<std::string> keys, std::size_t unread = 0) const;
  // `items`: of an earlier reading, whose memory is used again.
  std::vector<VersionedItem> finish_read(Reading reading, std::vector<VersionedItem> items = {}) const;

  void write(std::span<VersionedWrite> writes) const;
  // write in two steps: what each copy is due is on its way between them. Writes and items stay where they
  // are.
  class Writing;
  Writing begin_write(std::span<VersionedWrite> writes) const;
  void finish_write(Writing writing) const;
  void remove(std::span<VersionedRemoval> removals) const;
  // Of values that were written with two copies, those of which one copy has ours and the other a removal by
  // who did not see that copy: it may have found nothing to remove. Nothing is asked if there are none.
  std::vector<std::size_t> unseen(std::span<const VersionedWrite> writes) const;

  // What was read elsewhere: the replies to one key's gets, one per copy.
  VersionedItem item_of(std::string key, std::span<const Reply> replies) const;

  // What a reader writes to the copies that differ.
  static std::vector<VersionedWrite> owed(std::span<VersionedItem> items);
  // Writes that, and says of each item why what was read is no answer. `which`: only of these, the others are
  // only judged as read.
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

// A write that has begun; dropped, it may be applied.
class Versions::Writing {
 public:
  explicit Writing(std::span<VersionedWrite> writes) : writes_(writes) {}

 private:
  friend class Versions;
  struct Sent {
    VersionedWrite* write;
    VersionedCopy* copy;
  };
  std::span<VersionedWrite> writes_;
  int round_ = 0;
  std::vector<Sent> sent_;
  std::unique_ptr<Pending> replies_;  // to them
};

}  // namespace mcds

// Key layout
//   <key> = <the value's bytes>   flags: the version, a number from 1; 0: written by another program, or
//                                 before 0.2
//   <key> = removed by <16 hex digits>   flags: 0x80000000 + version: removed, by whom; lives for an hour.
//                                        Before 0.3 empty
//                                 (0x6d636473: removed, before 0.2)
//   <key> = 0                     the same for counters, which any program may increment: then it exists
//                                 again
//   A single copy has no version: its flags are its user's.
// The protocol: the multi-writer register of Attiya, Bar-Noy, Dolev 1995, and Lynch, Shvartsman 1997
//   write   reads all copies, then gives each that answered the highest version plus one: by cas on what was
//           read, or by add if there was nothing. A copy that changed meanwhile is read again, and left alone
//           if it is newer by now. With two copies one may have it, and the other a newer removal by who did
//           not see it, and perhaps found nothing to remove: elements call that outcome unknown.
//   read    takes the highest version. If a copy has a lower one, or has lost it, read writes the highest
//           there before it answers. Two values of one version were written at the same time: a removal wins
//           over the larger value, and the larger over the smaller. Of values without version the first
//           copy's counts, and none overwrites another.
//   remove  writes a word that says whose it is to the first copy that answers, then to the others. No word
//           is replaced by another of its version. Who finds its own on most copies removed it; who meets
//           another's reads again if it has written nothing, else the outcome is unknown. So at most one
//           remover is told that it did it. (A reader may spread the word, and a setter overtake it: then the
//           remover's outcome is unknown.)
//   When a write is done, what a reader may answer, and when nothing may be written: replication/quorum.hpp.
//   new     Who takes a value for new may leave the first copies unread, or all, as long as the others hold
//           nothing: an add is refused if something is there. Then, or if an unread one does not answer, what
//           the others got counts for nothing: all copies are read, and it is written anew above what they
//           hold; from 2^20 if nothing is held and an unread one does not answer. Until then they hold
//           version 1 of it, which any other version that a reader meets outvotes.
//   No decision depends on clocks.
// Invariants
//   Nothing older ever replaces something newer, because every writer compares. A request that is executed
//   late meets another cas unique, an existing item, or a higher version.
//   A copy that forgot has version 0 and outvotes no other.
// What memcached cannot promise
//   A copy that was unreachable for more than an hour and returns with old data restores an element that was
//   removed meanwhile, if no one asked for the element within an hour of its return. A copy that returns
//   counts again if all copies written meanwhile have forgotten. A client that reaches only copies that
//   missed a write reads the value before it. A write while some copies are unreachable and all others have
//   forgotten starts at version 2^20, so that the unreachable ones do not count as newer.
//   With two copies, of two writes that reached one copy each, and not the same one, either may count, unless
//   both copies were read in between.
// Round trips
//   read 1, 1 more if copies differ; write 2, remove 3, 2 more per rival.
