// mcds ring check: what is wrong with the pool as this client sees it.
#include "common/placement/ring/check.hpp"

#include "common/base/json.hpp"
#include "tools/cli/program.hpp"
#include "tools/cli/session.hpp"
#include "tools/commands/ring/options.hpp"

namespace mcds {

namespace {

JsonObject describe(const Finding& finding, const Pool& pool) {
  JsonObject line;
  line.bytes("check", finding.check).bytes("severity", finding.problem ? "problem" : "note");
  std::vector<std::string> addresses;
  for (const std::size_t server : finding.servers) addresses.push_back(pool[server].address());
  return line.bytes("message", finding.message).strings("servers", addresses);
}

ExitStatus run_check(Session& session) {
  const Placement& placement = *session.placement();
  std::uint64_t problems = 0, notes = 0;
  for (const Finding& finding : check_ring(placement, session.placement_options())) {
    ++(finding.problem ? problems : notes);
    if (session.output().mode() != OutputMode::value)
      session.output().answer(describe(finding, placement.pool()), "");
  }
  JsonObject summary;
  summary.boolean("ok", problems == 0).number("problems", problems).number("notes", notes);
  summary.number("servers", placement.pool().size()).bytes("profile", placement.profile());
  session.output().answer(summary, std::to_string(problems));
  return problems == 0 ? ExitStatus::ok : ExitStatus::problem;
}

}  // namespace

void declare_ring_check(Verb& verb) {
  verb.example("mcds ring check")
      .example("mcds --servers-from nutcracker:/etc/nutcracker.yml ring check -o text")
      .example("mcds -s 10.0.0.1/?3,10.0.0.2/?1 --as gomemcache ring check")
      .action([](Session& session) { return run_check(session); });
}

}  // namespace mcds
