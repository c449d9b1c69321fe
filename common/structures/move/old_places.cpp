// What is left on old places after a move.
#include <algorithm>

#include "common/cluster/keys/same_item.hpp"
#include "common/structures/move/map.hpp"
#include "common/structures/move/move.hpp"
#include "common/structures/move/spool.hpp"

namespace mcds {

namespace {

using moving::Fate;
using moving::Kind;
using moving::Spooled;

constexpr std::size_t most_items = 512;
constexpr std::size_t most_bytes = std::size_t{1} << 20;
// Of a removal whose compare fails: the item was written, or the connection was another one by then.
constexpr int most_attempts = 4;

}  // namespace

struct OldPlaces::Parts {
  Parts(const Context& from_context, Cluster& to_cluster, const MoveOptions& move_options)
      : from(from_context),
        to(to_cluster),
        options(move_options),
        map(from.cluster.placement(), to.placement(), from.key_prefix, from.copies),
        pool(from.cluster.placement().pool()) {
    const Pool& after = to.placement().pool();
    for (std::size_t i = 0; i < after.size(); ++i) {
      const auto same = [&](const Server& one) { return one.address() == after[i].address(); };
      if (std::any_of(pool.begin(), pool.end(), same)) continue;
      pool.push_back(after[i]);
      only_new.push_back(i);
    }
  }

  void take(const LiveKey& key);
  struct Copies;
  struct Removing {
    const Spooled* record;
    CasUnique cas;
    bool may_be_same;
    const Reply* seen;
  };
  std::vector<Spooled> part_from_same(std::vector<Removing>& removals, const Move::Watch& watch);
  void remove(const std::vector<Spooled>& batch, bool even_last, const Move::Watch& watch, int attempt = 1);

  Context from;
  Cluster& to;
  MoveOptions options;
  moving::Map map;
  Pool pool;                          // old servers, then those that are new
  std::vector<std::size_t> only_new;  // their places in the new pool
  moving::Spool spool;
  Report report;
};

void OldPlaces::Parts::take(const LiveKey& key) {
  ++report.keys;
  const std::size_t old_servers = from.cluster.placement().pool().size();
  if (key.server >= old_servers) {
    report.astray += map.is_new_place(key.key, only_new[key.server - old_servers]) ? 0 : 1;
    return;
  }
  const Fate fate = map.of(key.key, key.server);
  report.astray += fate.what == Fate::What::astray ? 1 : 0;
  report.locks += fate.what == Fate::What::lock ? 1 : 0;
  if (fate.what != Fate::What::moves) return;
  ++report.on_old;
  Spooled record{static_cast<std::uint16_t>(key.server), static_cast<std::uint16_t>(fate.to), fate.kind};
  record.size_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(key.size_bytes, UINT32_MAX));
  record.key = key.key;
  spool.add(record);
}

// Each record's copies: on its old server, where its new server vouches for it, and under its own key there. The first and the
// last may be one item.
struct OldPlaces::Parts::Copies {
  Copies(Parts& parts, const std::vector<Spooled>& batch) : may_be_same(batch.size()) {
    std::vector<Request> here, there, own;
    std::vector<std::size_t> vouched;  // by another key
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const Spooled& record = batch[i];
      here.push_back(Request::gets(record.key).on(record.from));
      const std::string vouching = parts.map.vouching(record.key);
      there.push_back(Request::gets(parts.map.wire_key(vouching, record.to)).on(record.to));
      if (vouching == record.key) continue;
      own.push_back(Request::gets(parts.map.wire_key(record.key, record.to)).on(record.to));
      vouched.push_back(i);
    }
    old_ones = parts.from.cluster.execute(here);
    new_ones = parts.to.execute(there);
    std::vector<Reply> own_ones = parts.to.execute(own);
    for (std::size_t i = 0; i < batch.size(); ++i) may_be_same[i] = look_alike(old_ones[i], new_ones[i]);
    for (std::size_t k = 0; k < vouched.size(); ++k) {
      may_be_same[vouched[k]] = look_alike(old_ones[vouched[k]], own_ones[k]);
      if (own_ones[k].failed()) new_ones[vouched[k]] = std::move(own_ones[k]);
    }
  }

  static bool look_alike(const Reply& one, const Reply& other) {
    return one.outcome == Outcome::hit && other.outcome == Outcome::hit &&
           mcds::may_be_same(one.cas, other.cas) && one.flags == other.flags && one.value == other.value;
  }

  std::vector<Reply> old_ones, new_ones;
  std::vector<bool> may_be_same;
};

// Sets the cas uniques of those that are another item, and tells the others.
// Returns those that were written since.
std::vector<Spooled> OldPlaces::Parts::part_from_same(std::vector<Removing>& removals,
                                                      const Move::Watch& watch) {
  std::vector<TwoPlaces> places;
  for (const Removing& one : removals) {
    const Spooled& record = *one.record;
    if (one.may_be_same)
      places.push_back({record.key, record.from, map.wire_key(record.key, record.to), record.to,
                        [seen = one.seen](const Reply& now) {
                          return now.cas == seen->cas && now.flags == seen->flags && now.value == seen->value;
                        }});
  }
  const std::vector<Sameness> found = are_same(from.cluster, to, places);
  std::size_t next = 0;
  std::vector<Spooled> written;
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
    watch.left({one.record->key, one.record->from, one.record->to, "same", why_kept(sameness.answer)});
    return true;
  });
  return written;
}

void OldPlaces::Parts::remove(const std::vector<Spooled>& batch, bool even_last, const Move::Watch& watch,
                              int attempt) {
  const Copies copies(*this, batch);
  const auto left = [&](const Spooled& record, const char* reason, const std::string& message) {
    watch.left({record.key, record.from, record.to, reason, message});
  };
  std::vector<Removing> removed;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Spooled& record = batch[i];
    const Reply &here = copies.old_ones[i], &there = copies.new_ones[i];
    const Reply* failed = here.failed() ? &here : there.failed() ? &there : nullptr;
    if (failed != nullptr) {
      ++report.failed;
      left(record, "unavailable", failed->failure->message);
    } else if (here.outcome != Outcome::hit) {
      ++report.changed;
    } else if (there.outcome != Outcome::hit && !even_last) {
      ++report.only_there;
      left(record, "only_there", "its new server has none; it may be the only one");
    } else if (options.dry_run && copies.may_be_same[i]) {
      ++report.failed;
      left(record, "same", why_kept(Sameness::Answer::unknown));
    } else if (options.dry_run) {
      ++report.removed;
    } else {
      removed.push_back({&record, here.cas, copies.may_be_same[i], &here});
    }
  }
  std::vector<Spooled> again;
  const auto try_again = [&](const Spooled& record) {
    if (attempt < most_attempts) return again.push_back(record);
    ++report.failed;
    left(record, "changed", "it is written on its old server all the time; a client still uses the old list");
  };
  for (const Spooled& record : part_from_same(removed, watch)) try_again(record);
  std::vector<Request> removals;
  for (const auto& [record, cas, may_be_same, seen] : removed)
    removals.push_back((cas.value == 0 ? Request::remove(record->key) : Request::remove_if(record->key, cas))
                           .on(record->from));
  const std::vector<Reply> replies = from.cluster.execute(removals);
  for (std::size_t i = 0; i < replies.size(); ++i) {
    const Spooled& record = *removed[i].record;
    if (replies[i].failed()) {
      ++report.failed;
      left(record, replies[i].unknown() ? "unknown" : "unavailable", replies[i].failure->message);
    } else if (replies[i].outcome != Outcome::exists) {
      ++(replies[i].outcome == Outcome::deleted ? report.removed : report.changed);
    } else {
      try_again(record);
    }
  }
  if (!again.empty()) remove(again, even_last, watch, attempt + 1);
}

OldPlaces::OldPlaces(const Context& from, Cluster& to, const MoveOptions& options)
    : parts_(std::make_unique<Parts>(from, to, options)) {}

OldPlaces::~OldPlaces() = default;

const Pool& OldPlaces::pool() const {
  return parts_->pool;
}

const OldPlaces::Report& OldPlaces::list(const ReadKeys& read) {
  Parts& parts = *parts_;
  const std::string& prefix = parts.options.prefix.empty() ? parts.from.key_prefix : parts.options.prefix;
  parts.report.dumps = read(parts.pool, [&](const LiveKey& key) {
    if (key.key.starts_with(prefix)) parts.take(key);
    return true;
  });
  return parts.report;
}

const OldPlaces::Report& OldPlaces::remove(bool even_last, const Move::Watch& watch) {
  Parts& parts = *parts_;
  parts.spool.rewind();
  std::vector<Spooled> batch;
  std::size_t bytes = 0;
  std::uint64_t done = 0;
  const auto send = [&] {
    if (batch.empty()) return;
    parts.remove(batch, even_last, watch);
    watch.progress(done += batch.size());
    batch.clear();
    bytes = 0;
  };
  while (auto record = parts.spool.next()) {
    bytes += moving::reckoned_size(*record);
    batch.push_back(std::move(*record));
    if (batch.size() >= most_items || bytes >= most_bytes) send();
  }
  send();
  return parts.report;
}

}  // namespace mcds
