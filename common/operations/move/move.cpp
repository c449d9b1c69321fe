#include "common/operations/move/move.hpp"

#include <set>

#include "common/operations/move/copier.hpp"

namespace mcds {

namespace {

using moving::Map;
using moving::MoveDecision;
using moving::SpilledRecord;
using moving::SpillFile;

constexpr std::size_t sample_size = 2000;

}  // namespace

struct Move::Parts {
  Parts(const Context& from_context, Cluster& to_cluster, MoveOptions move_options, Cluster* by_others)
      : from(from_context),
        to(to_cluster),
        statistics(by_others == nullptr ? to : *by_others),
        options(std::move(move_options)),
        map(from.cluster.placement(), to.placement(), from.key_prefix, from.copies),
        sample(from.cluster.placement().pool().size(), from.key_prefix,
               sample_size / from.cluster.placement().pool().size() + 1) {
    if (!options.journal.empty() && !options.dry_run)
      move_journal = std::make_unique<moving::MoveJournal>(
          options.journal, moving::identity_of(from.cluster.placement(), to.placement(), from.key_prefix),
          &from.clock);
    else
      move_journal = std::make_unique<moving::MoveJournal>();
    report.servers.resize(from.cluster.placement().pool().size());
    const std::size_t spill_files_needed = Map::passes * move_journal->parts();
    if (!options.dry_run) {
      for (std::size_t i = 0; i < spill_files_needed; ++i) spill_files.emplace_back();
    }
  }

  SpillFile& spill_file(std::size_t pass, std::size_t part) {
    return spill_files[pass * move_journal->parts() + part];
  }

  void take(const LiveKey& key);
  void expect_cas() const;

  Context from;
  Cluster& to;
  Cluster& statistics;
  MoveOptions options;
  Map map;
  std::unique_ptr<moving::MoveJournal> move_journal;
  std::vector<SpillFile> spill_files;  // by pass and part of the journal
  MoveReport report;
  PlacementSample sample;
};

void Move::Parts::take(const LiveKey& key) {
  sample.take(key);
  MovedServer& server = report.servers[key.server];
  ++server.keys;
  const MoveDecision decision = map.of(key.key, key.server);
  using What = MoveDecision::What;
  server.stays += decision.what == What::stays ? 1 : 0;
  server.arrived += decision.what == What::arrived ? 1 : 0;
  server.misplaced += decision.what == What::misplaced ? 1 : 0;
  server.locks += decision.what == What::lock ? 1 : 0;
  if (decision.what != What::moves) return;
  ++server.moves;
  MovedPair& pair = report.pairs[{key.server, decision.to}];
  ++pair.keys;
  pair.size_bytes += key.size_bytes;
  if (options.dry_run) return;
  SpilledRecord record = moving::record_of(key, decision);
  spill_file(decision.pass, move_journal->part_of(moving::hash_of(key.key, decision.copy))).add(record);
}

// Refuses servers without cas. There a change since the copy cannot be detected or copied without a gap, and
// the last step of the procedure would remove it.
void Move::Parts::expect_cas() const {
  const auto expect_of = [](Cluster& cluster, const std::set<std::size_t>& servers,
                            const std::string& advice) {
    std::vector<Request> requests;
    for (const std::size_t server : servers) requests.push_back(Request::stats(server, "settings"));
    for (const Reply& reply : cluster.execute(requests)) {
      if (reply.failed() || statistic(reply.value, "cas_enabled") != "no") continue;
      throw NotApplied(
          ErrorCode::refused,
          "nothing was copied: the server runs without cas (-C), so what clients write during the "
          "move would be lost; " +
              advice + "stop all writers during the move, and give --without-cas to every step",
          cluster.address_of(reply.server));
    }
  };
  std::set<std::size_t> old_servers, new_servers;
  for (const auto& [servers, pair] : report.pairs) {
    old_servers.insert(servers.first);
    new_servers.insert(servers.second);
  }
  expect_of(statistics, new_servers, "start it without -C, or ");
  expect_of(from.cluster, old_servers, "");
}

Move::Move(const Context& from, Cluster& to, MoveOptions options, Cluster* statistics)
    : parts_(std::make_unique<Parts>(from, to, std::move(options), statistics)) {
  if (parts_->options.again && !parts_->options.dry_run && !parts_->move_journal->has_history())
    throw InvalidInput("--again needs the --journal of the first run");
}

Move::~Move() = default;

bool Move::continues() const {
  return parts_->move_journal->has_history();
}

const MoveReport& Move::report() const {
  return parts_->report;
}

const std::vector<KeyLocation>& Move::sample() const {
  return parts_->sample.keys();
}

std::uint64_t Move::list(const ReadKeys& read) {
  Parts& parts = *parts_;
  KeySelection selection = parts.options.selection;
  selection.key_prefix = parts.from.key_prefix;
  parts.report.dumps = read([&](const LiveKey& key) {
    if (selection.has(key.key)) parts.take(key);
    return true;
  });
  if (!parts.options.without_cas) parts.expect_cas();
  std::uint64_t count = 0;
  for (const auto& [servers, pair] : parts.report.pairs) count += pair.keys;
  return count;
}

const MoveReport& Move::copy(const Watch& watch) {
  Parts& parts = *parts_;
  const moving::ServerRestarts restarts(parts.statistics);
  const SteadyTime started = parts.from.clock.steady();
  parts.report.lost.assign(parts.to.placement().pool().size(), 0);
  moving::Copier copier(parts.from, parts.to, parts.map, *parts.move_journal, parts.options, parts.report,
                        watch, moving::read_clocks(parts.statistics, parts.from.clock),
                        moving::ValidFrom(*parts.move_journal, parts.from.cluster, parts.statistics));
  for (std::size_t pass = 0; pass < Map::passes; ++pass) {
    for (std::size_t part = 0; part < parts.move_journal->parts(); ++part) {
      parts.move_journal->load(part);
      SpillFile& spill_file = parts.spill_file(pass, part);
      spill_file.rewind();
      while (auto record = spill_file.next()) copier.take(std::move(*record));
    }
    copier.finish();
  }
  parts.report.copying = parts.from.clock.steady() - started;
  parts.report.restarts = restarts.look();
  return parts.report;
}

}  // namespace mcds
