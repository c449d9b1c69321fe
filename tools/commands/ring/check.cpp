// mcds ring check: what is wrong with the pool as this client sees it.
#include "common/placement/ring/check.hpp"

#include "tools/commands/commands.hpp"
#include "tools/commands/ring/keys.hpp"

namespace mcds {

namespace {

JsonObject describe(const Finding& finding, const Pool& pool) {
  JsonObject line =
      JsonObject("check", finding.check).bytes("severity", finding.problem ? "problem" : "note");
  return line.bytes("message", finding.message).strings("servers", labels_of(pool, finding.servers));
}

struct CheckOptions {
  std::optional<std::string> keys;
  bool live = false;
};

// Whether there are servers enough for the copies that structures are to have.
std::vector<Finding> check_copies(Session& session) {
  try {
    static_cast<void>(session.copies());
  } catch (const InvalidInput& failure) {
    return {{"too_few_servers", true, failure.what(), {}}};
  }
  return {};
}

// Per server: what it was found to hold, or what is placed on it.
std::vector<std::uint64_t> count_keys(Session& session, const CheckOptions& options,
                                      const Placement& placement, ExitStatus& status) {
  std::vector<std::uint64_t> counts(placement.pool().size());
  if (options.keys)
    status = read_keys_of(session, *options.keys,
                          [&](const RingKey& key) { ++counts[placement.server_of(key.key)]; });
  if (options.live) status = read_live_keys_of(session, [&](const RingKey& key) { ++counts[*key.server]; });
  return counts;
}

ExitStatus run_check(Session& session, const CheckOptions& options) {
  if (options.keys && options.live) throw InvalidInput("give either --keys or --live, not both");
  PlacementOptions placing = session.placement_options();
  placing.any_pool = true;
  const Pool& listed = session.pool().pool;
  const auto placement = make_placement(session.profile_name(), listed, placing);
  std::uint64_t problems = 0, notes = 0;
  const auto tell = [&](const std::vector<Finding>& findings) {
    for (const Finding& finding : findings) {
      ++(finding.problem ? problems : notes);
      session.output().detail(describe(finding, placement->pool()));
    }
  };
  tell(check_list(listed, *placement, placing));
  tell(check_ring(*placement, placing));
  tell(check_copies(session));
  ExitStatus read = ExitStatus::ok;
  if (options.keys || options.live)
    tell(check_counts(*placement, count_keys(session, options, *placement, read)));
  JsonObject summary =
      JsonObject().boolean("ok", problems == 0).number("problems", problems).number("notes", notes);
  summary.number("servers", placement->pool().size()).bytes("profile", placement->profile());
  session.output().answer(summary, std::to_string(problems));
  return worse(read, problems == 0 ? ExitStatus::ok : ExitStatus::problem);
}

}  // namespace

void declare_ring_check(Verb& verb) {
  const auto options = std::make_shared<CheckOptions>();
  verb.answer("check severity message servers")
      .answer("ok problems notes servers:integer profile")
      .example("mcds ring check")
      .example("mcds --servers-from nutcracker:/etc/nutcracker.yml ring check -o text")
      .example("mcds -s 10.0.0.1/?3,10.0.0.2/?1 --as gomemcache ring check")
      .option("--keys", "FILE", "also check whether these keys are distributed by weight; -: standard input",
              dash(&options->keys))
      .flag("--live", "the same for all keys that the servers hold now", options->live)
      .action(run_check, options);
}

}  // namespace mcds
