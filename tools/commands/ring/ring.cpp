// Implements mcds ring: shows how the keys divide over the servers. Contacts servers only with --live.

#include "common/cluster/libmemcached/configured.hpp"
#include "tools/commands/ring/keys.hpp"
#include "tools/commands/ring/svg.hpp"

namespace mcds {

namespace {

constexpr std::size_t bar_width = 40;

struct SharesOptions {
  std::optional<std::string> svg;
  RingKeys keys;
};

// The user's own keys per server; empty if none were requested.
struct OwnKeys {
  std::vector<std::uint64_t> counts;
  std::vector<bool> unlisted;

  explicit OwnKeys(std::size_t servers) : counts(servers), unlisted(servers) {}
};

JsonObject describe(const Placement& placement, const RingShares& shares, const OwnKeys& keys,
                    std::size_t index, bool for_people) {
  const Server& server = placement.pool()[index];
  const double share = shares.shares[index], fair = shares.fair[index];
  JsonObject line("server", server.address());
  if (for_people) {
    line.bytes("share", format_percent(share)).bytes("fair", format_percent(fair));
  } else {
    line.number("index", index);
    if (!server.name.empty()) line.bytes("name", server.name);
    line.number("weight", server.weight).real("share", share).real("fair", fair);
  }
  if (!shares.points.empty()) line.number("points", shares.points[index]);
  // The count of a server that did not list its keys is unknown.
  if (!keys.counts.empty())
    keys.unlisted[index] ? line.raw("keys", "null") : line.number("keys", keys.counts[index]);
  if (for_people) return line.bytes("bar", bar(share / *std::ranges::max_element(shares.shares), bar_width));
  return line.bytes("method", shares.exact ? "arcs" : "counted").bytes("profile", placement.profile());
}

// Counts the user's own keys, if any, and adds them to the drawing as dots.
ExitStatus take_keys(Session& session, const SharesOptions& options, RingDrawing& drawing, OwnKeys& keys) {
  const Placement& placement = *session.placement();
  const TakeRingKey take = [&](const RingKey& key) {
    ++keys.counts[placement.server_of(key.key)];
    if (options.svg) drawing.keys.push_back(draw_key(placement, drawing, key.key));
  };
  return options.keys.read(session, take, &keys.unlisted);
}

// Returns the findings of `ring check` as sentences.
std::vector<std::string> problems_of(Session& session, const std::vector<std::uint64_t>& counts) {
  const Placement& placement = *session.placement();
  const PlacementOptions placing = session.placement_options();
  std::vector<std::string> problems;
  for (const auto& findings : {check_list(session.pool().pool, placement, placing),
                               check_ring(placement, placing), check_counts(placement, counts)}) {
    for (const Finding& finding : findings) {
      if (finding.problem) problems.push_back(finding.message);
    }
  }
  return problems;
}

// Returns the pool's name as the user gave it: a pool of the config, or another program's file.
std::string name_of_pool(Session& session) {
  const GlobalOptions& options = session.options();
  if (options.servers) return {};
  if (options.servers_from) return *options.servers_from;
  if (options.pool) return "pool " + *options.pool;
  if (session.settings().said_by(Origin::environment, "servers")) return {};
  const auto name = session.settings().text("pool");
  return name ? "pool " + *name : "";
}

// Returns the time as `2026-11-21 08:30 UTC`.
std::string date_now(Session& session) {
  std::string text = format_time(session.clock().wall()).substr(0, 16);
  text[10] = ' ';
  return text + " UTC";
}

ExitStatus show_shares(Session& session, const SharesOptions& options) {
  options.keys.check();
  const Placement& placement = *session.placement();
  const bool to_stdout = options.svg == "-";
  // The file is opened before anything is computed, so that an unwritable file is reported early.
  const OutputFile file(to_stdout ? std::nullopt : options.svg, "cannot write the drawing",
                        OutputFile::From::start);
  const RingShares shares = ring_shares(placement, session.key_prefix());
  RingDrawing drawing = draw_ring(placement, shares);
  drawing.pool = name_of_pool(session);
  drawing.date = date_now(session);
  const bool counts = options.keys.any();
  OwnKeys keys(counts ? placement.pool().size() : 0);
  const ExitStatus status = counts ? take_keys(session, options, drawing, keys) : ExitStatus::ok;
  const bool in_text = session.output().mode() == OutputMode::text && !to_stdout;
  if (options.svg || in_text) drawing.problems = problems_of(session, keys.counts);
  if (options.svg && !to_stdout) file.write(svg_of(drawing));
  if (to_stdout) {
    session.output().raw(svg_of(drawing));
  } else {
    for (std::size_t i = 0; i < placement.pool().size(); ++i)
      session.output().answer(describe(placement, shares, keys, i, in_text), json_real(shares.shares[i]));
  }
  if (in_text) {
    for (const std::string& problem : drawing.problems) session.output().warning(problem);
  }
  return status;
}

void declare_ring_shares(Verb& verb) {
  const auto options = std::make_shared<SharesOptions>();
  verb.answer("server index name? weight share fair points? keys:integer|null? method profile")
      .field("share number part of all keys that this server gets")
      .field(
          "keys integer|null how many of the counted keys are placed here; null: this server could not list "
          "its keys")
      .example("mcds ring")
      .example("mcds ring --as php-memcached -o text")
      .example("mcds ring --svg ring.svg --live")
      .option("--svg", "FILE", "draw the ring; -: print the drawing instead of the shares",
              dash(&options->svg))
      .option("--keys", "FILE", "also count these keys per server, and draw them; - reads standard input",
              dash(&options->keys.file))
      .flag("--live", "also count all keys that the servers hold now, and draw them", options->keys.live)
      .action(show_shares, options);
}

// Implements mcds ring check: finds faults of the pool as this client sees it.

JsonObject describe(const Finding& finding, const Pool& pool) {
  JsonObject line =
      JsonObject("check", finding.check).bytes("severity", finding.problem ? "problem" : "note");
  return line.bytes("message", finding.message).strings("servers", labels_of(pool, finding.servers));
}

// Reports if there are fewer servers than copies.
std::vector<Finding> check_copies(Session& session) {
  try {
    static_cast<void>(session.copies());
  } catch (const InvalidInput& failure) {
    return {{"too_few_servers", true, failure.what(), {}}};
  }
  return {};
}

// Returns the number of keys per server: live keys that it holds, or given keys that are placed on it.
std::vector<std::uint64_t> count_keys(Session& session, const RingKeys& keys, const Placement& placement,
                                      ExitStatus& status) {
  std::vector<std::uint64_t> counts(placement.pool().size());
  status = keys.read(session, [&](const RingKey& key) {
    ++counts[key.server ? *key.server : placement.server_of(key.key)];
  });
  return counts;
}

ExitStatus run_check(Session& session, const RingKeys& keys) {
  keys.check();
  PlacementOptions placing = session.placement_options();
  placing.any_pool = true;
  const Pool& listed = session.pool().pool;
  const auto placement = make_placement(session.profile_name(), listed, placing);
  std::uint64_t problems = 0, notes = 0;
  const auto report = [&](const std::vector<Finding>& findings) {
    for (const Finding& finding : findings) {
      ++(finding.problem ? problems : notes);
      session.output().detail(describe(finding, placement->pool()));
    }
  };
  report(check_list(listed, *placement, placing));
  report(check_ring(*placement, placing));
  report(libmemcached::check_installed(listed, *placement));
  report(check_copies(session));
  ExitStatus read = ExitStatus::ok;
  if (keys.any()) report(check_counts(*placement, count_keys(session, keys, *placement, read)));
  JsonObject summary =
      JsonObject().boolean("ok", problems == 0).number("problems", problems).number("notes", notes);
  summary.number("servers", placement->pool().size()).bytes("profile", placement->profile());
  session.output().answer(summary, std::to_string(problems));
  return worse(read, problems == 0 ? ExitStatus::ok : ExitStatus::problem);
}

void declare_ring_check(Verb& verb) {
  const auto keys = std::make_shared<RingKeys>();
  verb.answer("check severity message servers")
      .answer("ok problems notes servers:integer profile")
      .field("servers string[] the servers that it is about; of the summary, their number")
      .example("mcds ring check")
      .example("mcds --servers-from nutcracker:/etc/nutcracker.yml ring check -o text")
      .example("mcds -s 10.0.0.1/?3,10.0.0.2/?1 --as gomemcache ring check")
      .option("--keys", "FILE",
              "also check whether these keys are distributed by weight; - reads standard input",
              dash(&keys->file))
      .flag("--live", "also check whether all keys that the servers hold now are distributed by weight",
            keys->live)
      .action(run_check, keys);
}

}  // namespace

void declare_ring(Command& command) {
  command.exits(
      "2 check found a problem, more keys would move than --max-moved allows, move left something, or a new "
      "server lost items|65 a line is not a valid key, there are no keys to judge by, the journal is of "
      "another move, or --as does not explain where the keys are|66 the keys cannot be read|69 a server does "
      "not answer|73 the drawing or the journal cannot be written|75 the journal is in use|76 a server has "
      "no command to list its keys, or move meets a server without cas|78");
  declare_ring_shares(command.itself());
  declare_ring_diff(command.verb("diff", "print which keys a change of pool or client would move"));
  declare_ring_move(
      command.verb("move", "copy the keys that a change of pool or client moves to their new servers"));
  declare_ring_check(command.verb("check", "check the pool for mistakes, as this client sees it"));
}

}  // namespace mcds
