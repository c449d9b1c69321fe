// mcds doctor: what is wrong with a pool, and what to do about it.
#include "common/operations/doctor/gather.hpp"
#include "tools/commands/doctor/report.hpp"

namespace mcds {

namespace {

constexpr auto shortest_interval_of_doctor = std::chrono::milliseconds(100);

struct DoctorOptions {
  Duration interval = std::chrono::seconds(10);
  std::optional<std::string> only, skip, baseline;
  bool live = false, connections = false, checks = false;
};

std::set<std::string, std::less<>> names_in(const std::optional<std::string>& list, const char* option) {
  std::set<std::string, std::less<>> names;
  if (!list) return names;
  for (const std::string_view word : split(*list, ',')) {
    if (const std::string wrong = doctor::no_check(word); !wrong.empty())
      throw InvalidInput(std::string(option) + ": " + wrong);
    names.emplace(word);
  }
  return names;
}

ExitStatus print_checks(Session& session) {
  for (const doctor::Check& check : doctor::all_checks()) {
    JsonObject line = JsonObject("check", check.name)
                          .bytes("severity", doctor::name_of(check.severity))
                          .bytes("about", check.about);
    line.bytes("needs", doctor::name_of(check.needs)).bytes("message", check.sentence);
    session.output().answer(line.bytes("advice", check.advice), check.name);
  }
  return ExitStatus::ok;
}

ExitStatus run_doctor(Session& session, const DoctorOptions& options) {
  if (options.checks) return print_checks(session);
  if (options.interval < shortest_interval_of_doctor) throw InvalidInput("--for must be at least 100ms");
  if (session.clock().steady() + options.interval > session.deadline())
    throw InvalidInput("--for must be shorter than --deadline");
  const auto only = names_in(options.only, "--only"), skip = names_in(options.skip, "--skip");
  const auto wanted = [&](const doctor::Check& check) {
    return (only.empty() || only.contains(check.name)) && !skip.contains(check.name);
  };
  static_cast<void>(session.config());  // a mistake in it shows before the looks
  PlacementOptions placing = session.placement_options();
  placing.any_pool = true;
  const Pool& listed = session.pool().pool;
  const auto placement = make_placement(session.profile_name(), listed, placing);
  session.try_always();
  Pause pause;
  doctor::Examination seen = doctor::gather(placement, listed, session.clock(),
                                            {.connecting = session.connect_options(),
                                             .placing = placing,
                                             .interval = options.interval,
                                             .connections = options.connections,
                                             .wait = [&](Duration left) { return pause.wait(left); }});
  if (options.live)
    seen.live = doctor::look_at_keys(*placement, session.clock(),
                                     {.reading = LiveKeysOptions::of(session.connect_options()),
                                      .placing = placing,
                                      .key_prefix = session.key_prefix()});
  return report_findings(session, seen, wanted, options.baseline);
}

}  // namespace

void declare_doctor(Command& command) {
  const auto options = std::make_shared<DoctorOptions>();
  command.itself()
      .answer("finding severity servers evidence others? accepted? message advice")
      .answer("ok problems warnings notes servers:integer for_s trips unknown")
      .answer("check severity about:string needs message advice")
      .field("unknown {lacks servers checks}[] checks that could not be made, and why")
      .example("mcds doctor -o text")
      .example("mcds doctor --for 1s --live -o text")
      .example("mcds doctor --for 2s --only down,connections_full,evicts_young")
      .example("mcds doctor --for 1s --baseline doctor.last")
      .option("--for", "D", "the time between the two looks; default 10s", &options->interval)
      .flag("--live", "also list a part of the keys: misplaced ones, and structures", options->live)
      .flag("--connections", "also look for idle connections, which costs with their number",
            options->connections)
      .option("--only", "CHECK,...", "only these checks", &options->only)
      .option("--skip", "CHECK,...", "all checks but these", &options->skip)
      .option("--baseline", "FILE", "print what is new since the run that wrote FILE, and write it anew",
              &options->baseline)
      .flag("--checks", "print what is looked for, and ask no server", options->checks)
      .metrics()
      .action(run_doctor, options);
}

}  // namespace mcds
