// What is left on old places after a move.
#include <algorithm>

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

void OldPlaces::Parts::remove(const std::vector<Spooled>& batch, bool even_last, const Move::Watch& watch,
                              int attempt) {
  std::vector<Request> here, there;
  for (const Spooled& record : batch) {
    here.push_back(Request::gets(record.key).on(record.from));
    const std::string vouching = map.vouching(record.key);
    there.push_back(Request::get(map.wire_key(vouching, record.to)).on(record.to));
  }
  const std::vector<Reply> old_ones = from.cluster.execute(here);
  const std::vector<Reply> new_ones = to.execute(there);
  const auto left = [&](const Spooled& record, const char* reason, const std::string& message) {
    watch.left({record.key, record.from, record.to, reason, message});
  };
  std::vector<Request> removals;
  std::vector<const Spooled*> removed;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Spooled& record = batch[i];
    const Reply* failed = old_ones[i].failed() ? &old_ones[i] : new_ones[i].failed() ? &new_ones[i] : nullptr;
    if (failed != nullptr) {
      ++report.failed;
      left(record, "unavailable", failed->failure->message);
    } else if (old_ones[i].outcome != Outcome::hit) {
      ++report.changed;
    } else if (new_ones[i].outcome != Outcome::hit && !even_last) {
      ++report.only_there;
      left(record, "only_there", "its new server has none; it may be the only one");
    } else if (options.dry_run) {
      ++report.removed;
    } else {
      const CasUnique cas = old_ones[i].cas;
      removals.push_back((cas.value == 0 ? Request::remove(record.key) : Request::remove_if(record.key, cas))
                             .on(record.from));
      removed.push_back(&record);
    }
  }
  const std::vector<Reply> replies = from.cluster.execute(removals);
  std::vector<Spooled> again;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (replies[i].failed()) {
      ++report.failed;
      left(*removed[i], replies[i].unknown() ? "unknown" : "unavailable", replies[i].failure->message);
    } else if (replies[i].outcome != Outcome::exists) {
      ++(replies[i].outcome == Outcome::deleted ? report.removed : report.changed);
    } else if (attempt < most_attempts) {
      again.push_back(*removed[i]);
    } else {
      ++report.failed;
      left(*removed[i], "changed",
           "it is written on its old server all the time; a client still uses the old list");
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
