// Removes the items that a move leaves on their old servers.
//
// An old copy is removed if the new place has the same value and flags for at least as long; or all lines of
// the journal or log; or if the move's journal shows that the old copy was not written since it was copied,
// or not touched if only its end differs.
// Journals and single items come first. Segments come last, and only those that no old root names any more,
// so that a crash leaves no root without its segments.
#include <unistd.h>

#include <unordered_set>

#include "common/base/bounds.hpp"
#include "common/base/errors.hpp"
#include "common/operations/expiry.hpp"
#include "common/operations/map.hpp"
#include "common/operations/move/server_starts.hpp"
#include "common/operations/removal.hpp"
#include "common/operations/structure_merger.hpp"
#include "common/primitives/cas_update.hpp"

namespace mcds {

namespace {

using moving::Kind;
using moving::MoveDecision;
using moving::SpilledRecord;

// Limits the removals of an item whose cas comparison fails, because of a write or a new connection.
constexpr int max_attempts = 4;
// The difference of two ttls that may mean the same expiry: ticks of two clocks, and the rounding of a move.
constexpr auto ttl_wobble = std::chrono::seconds(3);

moving::MoveJournal journal_of(const Context& from, const Cluster& to, const std::string& path) {
  if (path.empty()) return {};
  if (access(path.c_str(), R_OK) != 0)
    throw refused_by_system(ErrorCode::cannot_read, "cannot read the journal " + path);
  moving::MoveJournal move_journal(
      path, moving::identity_of(from.cluster.placement(), to.placement(), from.key_prefix));
  if (!move_journal.has_history())
    throw Failure(ErrorCode::bad_data, "the journal " + path + " is empty; give the journal of the move");
  return move_journal;
}

}  // namespace

struct OldPlaces::Parts {
  Parts(const Context& from_context, Cluster& to_cluster, const MoveOptions& move_options,
        Cluster* of_old_servers, Cluster* of_new_servers)
      : from(from_context),
        to(to_cluster),
        from_statistics(of_old_servers == nullptr ? from.cluster : *of_old_servers),
        to_statistics(of_new_servers == nullptr ? to : *of_new_servers),
        options(move_options),
        map(from.cluster.placement(), to.placement(), from.key_prefix, from.copies),
        pool(from.cluster.placement().pool()),
        move_journal(journal_of(from, to, options.journal)),
        spill_files(move_journal.parts()) {
    const Pool& after = to.placement().pool();
    for (std::size_t i = 0; i < after.size(); ++i) {
      const auto same = [&](const Server& one) { return one.address() == after[i].address(); };
      if (std::ranges::any_of(pool, same)) continue;
      pool.push_back(after[i]);
      only_new.push_back(i);
    }
  }

  struct Removing {
    const SpilledRecord* record;
    CasUnique cas;
    bool may_be_same;
    const Reply* seen;
  };
  // Why an item stays; nullopt means that it can be removed.
  struct KeepReason {
    std::uint64_t Report::*count;  // nullptr: it is gone, which is not counted
    const char* reason;            // nullptr: nothing to report
    std::string message;
  };
  bool is_segment(const SpilledRecord& record) const {
    return record.kind == Kind::plain && map.vouching(record.key) != record.key;
  }
  void left(const SpilledRecord& record, const char* reason, const std::string& message) const {
    watch->left({record.key, record.from, record.to, reason, message});
  }

  void take(const LiveKey& key) {
    ++report.keys;
    const std::size_t old_servers = from.cluster.placement().pool().size();
    if (key.server >= old_servers) {
      report.misplaced += map.is_new_place(key.key, only_new[key.server - old_servers]) ? 0 : 1;
      return;
    }
    const MoveDecision decision = map.of(key.key, key.server);
    report.misplaced += decision.what == MoveDecision::What::misplaced ? 1 : 0;
    report.locks += decision.what == MoveDecision::What::lock ? 1 : 0;
    if (decision.what != MoveDecision::What::moves) return;
    ++report.on_old;
    const SpilledRecord record = moving::record_of(key, decision);
    if (is_segment(record)) return segments.add(record);
    spill_files[move_journal.part_of(moving::hash_of(record.key, record.copy))].add(record);
  }

  // Returns true if the two copies may be one item, because their servers may be one. Without cas tokens this
  // depends on the servers alone.
  bool may_be_same(const SpilledRecord& record, const Reply& here, const Reply& there) {
    if (here.outcome != Outcome::hit || there.outcome != Outcome::hit || here.cas != there.cas) return false;
    if (here.cas.value != 0 && (here.flags != there.flags || here.value != there.value)) return false;
    if (!different) different = moving::different_servers(from_statistics, to_statistics);
    return !different->contains({record.from, record.to});
  }

  // The copies of each record on its old and new server. A segment is judged by the root: the new place must
  // have it, the old place must not. The segment's new copy is read because it may be the same item.
  struct Copies {
    Copies(Parts& parts, const std::vector<SpilledRecord>& batch)
        : roots(batch.size()), may_be_same(batch.size()) {
      std::vector<Request> here, there, own, old_roots;
      std::vector<std::size_t> vouched;
      for (std::size_t i = 0; i < batch.size(); ++i) {
        const SpilledRecord& record = batch[i];
        here.push_back(Request::probe(record.key, record.from));
        const bool segment = parts.is_segment(record);
        const std::string name = segment ? parts.map.vouching(record.key) : record.key;
        there.push_back(Request::probe(parts.map.wire_key(name, record.to), record.to));
        if (!segment) continue;
        own.push_back(Request::probe(parts.map.wire_key(record.key, record.to), record.to));
        old_roots.push_back(Request::probe(name, record.from));
        vouched.push_back(i);
      }
      asked = parts.from.clock.wall();
      const SteadyTime begun = parts.from.clock.steady();
      // Read the old copies first: if both are one item that is written in between, the old token removes
      // nothing.
      old_ones = parts.from.cluster.execute(here);
      new_ones = parts.to.execute(there);
      took = parts.from.clock.steady() - begun;
      answered = parts.from.clock.wall();
      std::vector<Reply> own_ones = parts.to.execute(own);
      std::vector<Reply> found_roots = parts.from.cluster.execute(old_roots);
      for (std::size_t i = 0; i < batch.size(); ++i)
        may_be_same[i] = parts.may_be_same(batch[i], old_ones[i], new_ones[i]);
      for (std::size_t k = 0; k < vouched.size(); ++k) {
        may_be_same[vouched[k]] = parts.may_be_same(batch[vouched[k]], old_ones[vouched[k]], own_ones[k]);
        if (own_ones[k].failed()) new_ones[vouched[k]] = std::move(own_ones[k]);
        roots[vouched[k]] = std::move(found_roots[k]);
      }
    }

    std::vector<Reply> old_ones, new_ones;
    std::vector<std::optional<Reply>> roots;  // of segments: the root on the old server
    std::vector<bool> may_be_same;
    WallTime asked{}, answered{};
    Duration took{};
  };

  // Returns the journal's record if the old server has stored nothing under this key since the move read it.
  const moving::Copied* not_written_since(const SpilledRecord& record, const Reply& here) const {
    const moving::Copied* copied = move_journal.find(moving::hash_of(record.key, record.copy));
    const bool found = copied != nullptr && copied->settled && copied->cas != 0 &&
                       copied->cas == here.cas.value && copied->index >= valid_from[record.from];
    return found ? copied : nullptr;
  }

  std::optional<KeepReason> compare(const SpilledRecord& record, const Reply& here, const Reply& there,
                                    const Copies& read) const {
    const moving::Copied* const as_copied = not_written_since(record, here);
    if (here.flags == there.flags && here.value == there.value) {
      const auto never = std::chrono::seconds::max();
      const auto ttl = [&](const Reply& reply) {
        return reply.age.ttl->count() < 0 ? never : *reply.age.ttl;
      };
      const auto most = ttl_wobble + std::chrono::ceil<std::chrono::seconds>(read.took);
      const bool known = here.age.ttl && there.age.ttl;
      if (!known || ttl(there) == never || (ttl(here) != never && ttl(here) <= ttl(there) + most))
        return std::nullopt;
      // If the old copy still ends as it was copied, a client of the new list has shortened the new one.
      if (as_copied && moving::agrees({as_copied->expires_s, here.age.ttl, read.asked, read.answered},
                                      clocks[record.from].value_or(moving::ClockLook{})))
        return std::nullopt;
      return KeepReason{&Report::differs, "differs",
                        "the item has the same value as on its new server but lasts longer: a client of the "
                        "old list touched it, and ring move --again copies its expiry; or one of the new "
                        "list shortened it there, which the move's --journal shows"};
    }
    if (as_copied) return std::nullopt;
    if (moving::StructureMerger::is_of(record.kind, here.value) &&
        moving::StructureMerger::is_of(record.kind, there.value)) {
      const auto has_all = attempt([&] {
        return moving::StructureMerger(from, to).has_all({record.key, record.from, record.to}, record.kind,
                                                         here.value);
      });
      if (!has_all.failure() && has_all.value()) return std::nullopt;
    }
    const char* const advice =
        options.journal.empty() ? "; give the move's --journal, or"
        : here.cas.value == 0   ? "; without cas (-C) a journal cannot show that it is not, so"
                                : "; the journal does not show that it is unchanged since it was copied, so";
    return KeepReason{&Report::differs, "differs",
                      std::string("the item differs from the one on its new server and may be newer") +
                          advice + " compare them with mcds where --probe"};
  }

  std::optional<KeepReason> judge(const SpilledRecord& record, const Copies& copies, std::size_t i) const {
    const Reply &here = copies.old_ones[i], &there = copies.new_ones[i];
    const auto& root = copies.roots[i];
    for (const Reply* reply : {&here, &there, root ? &*root : &here}) {
      if (reply->failed()) return KeepReason{&Report::failed, "unavailable", reply->failure->message};
    }
    if (here.outcome != Outcome::hit) return KeepReason{nullptr, nullptr, {}};
    if (root && root->outcome == Outcome::hit &&
        !roots_to_go.contains(std::to_string(record.from) + ' ' + map.vouching(record.key)))
      return KeepReason{&Report::differs, "differs", "the item is a part of a structure that stays there"};
    const bool only_there = there.outcome != Outcome::hit;
    if (only_there && !even_last)
      return KeepReason{&Report::only_there, "only_there",
                        "the new server does not have the item, so this copy may be the only one"};
    if (here.cas.value == 0 && !options.without_cas)
      return KeepReason{
          &Report::failed, "without_cas",
          "the server runs without cas (-C), so a write at the same moment would be lost; stop the "
          "writers and give --without-cas"};
    if (here.cas.value == 0 && copies.may_be_same[i])
      return KeepReason{&Report::failed, "same", why_kept(Sameness::Answer::unknown)};
    if (only_there || root) return std::nullopt;
    return compare(record, here, there, copies);
  }

  // Counts an item that stays, or that a dry run would remove.
  void count(const std::optional<KeepReason>& stays, const SpilledRecord& record, bool may_be_same) {
    if (stays) {
      if (stays->count != nullptr) ++(report.*stays->count);
      if (stays->reason != nullptr) left(record, stays->reason, stays->message);
    } else if (may_be_same) {
      ++report.failed;
      left(record, "same", why_kept(Sameness::Answer::unknown));
    } else {
      ++report.removed;
      if (record.kind == Kind::journal) roots_to_go.insert(std::to_string(record.from) + ' ' + record.key);
    }
  }

  // Completes the removals that may hit the same item: sets the cas token of different items, drops and
  // reports the others. Returns the records of items that were written since.
  std::vector<SpilledRecord> part_from_same(std::vector<Removing>& removals) {
    std::vector<SourceAndTarget> places;
    for (const Removing& one : removals) {
      const SpilledRecord& record = *one.record;
      if (one.may_be_same)
        places.push_back({record.key, record.from, map.wire_key(record.key, record.to), record.to,
                          [seen = one.seen](const Reply& now) {
                            return now.cas == seen->cas && now.flags == seen->flags &&
                                   now.value == seen->value;
                          }});
    }
    const std::vector<Sameness> found = are_same(from.cluster, to, places);
    std::size_t next = 0;
    std::vector<SpilledRecord> written;
    std::erase_if(removals, [&](Removing& one) {
      if (!one.may_be_same) return false;
      const Sameness& sameness = found[next++];
      one.cas = sameness.cas;
      if (sameness.answer == Sameness::Answer::written) {
        written.push_back(*one.record);
        return true;
      }
      if (sameness.answer == Sameness::Answer::different) return false;
      ++report.failed;
      left(*one.record, "same", why_kept(sameness.answer));
      return true;
    });
    return written;
  }

  void remove(const std::vector<SpilledRecord>& batch, int attempt = 1) {
    const Copies copies(*this, batch);
    std::vector<Removing> removed;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const auto stays = judge(batch[i], copies, i);
      if (!stays && !options.dry_run)
        removed.push_back({&batch[i], copies.old_ones[i].cas, copies.may_be_same[i], &copies.old_ones[i]});
      else
        count(stays, batch[i], copies.may_be_same[i]);
    }
    std::vector<SpilledRecord> again;
    const auto try_again = [&](const SpilledRecord& record) {
      if (attempt < max_attempts) return again.push_back(record);
      ++report.changed;
      left(record, "changed", "the item keeps changing on its old server; a client still uses the old list");
    };
    for (const SpilledRecord& record : part_from_same(removed)) try_again(record);
    std::vector<Request> removals;
    for (const auto& [record, cas, may_be_same, seen] : removed)
      removals.push_back(removal_of(record->key, cas).on(record->from));
    const std::vector<Reply> replies = from.cluster.execute(removals);
    for (std::size_t i = 0; i < replies.size(); ++i) {
      const SpilledRecord& record = *removed[i].record;
      if (replies[i].failed()) {
        ++report.failed;
        left(record, replies[i].unknown() ? "unknown" : "unavailable", replies[i].failure->message);
      } else if (replies[i].outcome != Outcome::exists) {
        report.removed += replies[i].outcome == Outcome::deleted ? 1 : 0;
      } else {
        try_again(record);
      }
    }
    if (!again.empty()) remove(again, attempt + 1);
  }

  void remove_all(moving::SpillFile& spill_file, std::uint64_t& done) {
    std::vector<SpilledRecord> batch;
    std::size_t bytes = 0;
    const auto send = [&] {
      if (batch.empty()) return;
      remove(batch);
      watch->progress(done += batch.size());
      batch.clear();
      bytes = 0;
    };
    spill_file.for_each([&](SpilledRecord record) {
      bytes += moving::reckoned_size(record.size_bytes);
      batch.push_back(std::move(record));
      if (batch.size() >= batch_items || bytes >= batch_bytes) send();
    });
    send();
  }

  Context from;
  Cluster& to;
  Cluster &from_statistics, &to_statistics;
  MoveOptions options;
  moving::Map map;
  Pool pool;                          // old servers, then servers of the new pool only
  std::vector<std::size_t> only_new;  // their indexes in the new pool
  moving::MoveJournal move_journal;
  std::vector<moving::SpillFile> spill_files;  // by part of the journal
  moving::SpillFile segments;
  std::vector<std::uint64_t> valid_from;          // of old servers, as in moving::ValidFrom
  moving::Clocks clocks{};                        // of old servers; empty without a journal
  std::optional<moving::OldAndNew> different{};   // moving::different_servers(), once it was needed
  std::unordered_set<std::string> roots_to_go{};  // with dry_run: removed roots, with their server
  bool even_last = false;
  const Move::Watch* watch = nullptr;
  Report report;
};

OldPlaces::OldPlaces(const Context& from, Cluster& to, const MoveOptions& options, Cluster* from_statistics,
                     Cluster* to_statistics)
    : parts_(std::make_unique<Parts>(from, to, options, from_statistics, to_statistics)) {}

OldPlaces::~OldPlaces() = default;

const Pool& OldPlaces::pool() const {
  return parts_->pool;
}

const OldPlaces::Report& OldPlaces::list(const ReadKeys& read) {
  Parts& parts = *parts_;
  KeySelection selection = parts.options.selection;
  selection.key_prefix = parts.from.key_prefix;
  parts.report.dumps = read(parts.pool, [&](const LiveKey& key) {
    if (selection.has(key.key)) parts.take(key);
    return true;
  });
  return parts.report;
}

const OldPlaces::Report& OldPlaces::remove(bool even_last, const Move::Watch& watch) {
  Parts& parts = *parts_;
  parts.even_last = even_last;
  parts.watch = &watch;
  if (!parts.options.journal.empty()) {
    parts.valid_from =
        moving::ValidFrom(parts.move_journal, parts.from_statistics, parts.to_statistics).old_servers;
    parts.clocks = moving::read_clocks(parts.from_statistics, parts.from.clock);
  }
  std::uint64_t done = 0;
  for (std::size_t part = 0; part < parts.spill_files.size(); ++part) {
    parts.move_journal.load(part);
    parts.remove_all(parts.spill_files[part], done);
  }
  parts.remove_all(parts.segments, done);
  return parts.report;
}

}  // namespace mcds
