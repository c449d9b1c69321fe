// mcds ring: how the keys divide over the servers. Asks no server.
#include <algorithm>
#include <array>
#include <memory>

#include "common/base/json.hpp"
#include "common/base/units.hpp"
#include "common/placement/ring_shares.hpp"
#include "tools/cli/program.hpp"
#include "tools/cli/session.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/ring_options.hpp"

namespace mcds {

namespace {

constexpr double bar_width = 40;

// `share` of `full` as a bar of eighths of a character.
std::string bar(double share, double full) {
  static constexpr std::array eighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto length = static_cast<std::size_t>(share / full * bar_width * 8 + 0.5);
  std::string text;
  for (std::size_t i = 0; i < length / 8; ++i) text += "█";
  return text + eighths[length % 8];
}

std::string padded(std::string text, std::size_t width) {
  text.append(width - std::min(width, text.size()), ' ');
  return text;
}

class Report {
 public:
  Report(Session& session, const Placement& placement, const RingShares& shares)
      : session_(session), placement_(placement), shares_(shares) {
    for (const Server& server : placement.pool()) width_ = std::max(width_, server.address().size());
    largest_ = *std::max_element(shares.shares.begin(), shares.shares.end());
  }

  void print(std::size_t index) {
    const JsonObject line = session_.output().mode() == OutputMode::text ? row(index) : answer(index);
    session_.output().answer(line, json_real(shares_.shares[index]));
  }

 private:
  JsonObject answer(std::size_t index) const {
    const Server& server = placement_.pool()[index];
    JsonObject line;
    line.bytes("server", server.address()).number("index", index);
    if (!server.name.empty()) line.bytes("name", server.name);
    line.number("weight", server.weight);
    line.real("share", shares_.shares[index]).real("fair", shares_.fair[index]);
    if (!shares_.points.empty()) line.number("points", shares_.points[index]);
    return line.bytes("method", shares_.exact ? "arcs" : "counted").bytes("profile", placement_.profile());
  }

  JsonObject row(std::size_t index) const {
    JsonObject line;
    line.bytes("server", padded(placement_.pool()[index].address(), width_));
    line.bytes("share", format_percent(shares_.shares[index])).bytes("fair", format_percent(shares_.fair[index]));
    if (!shares_.points.empty()) line.number("points", shares_.points[index]);
    return line.bytes("", bar(shares_.shares[index], largest_));
  }

  Session& session_;
  const Placement& placement_;
  const RingShares& shares_;
  std::size_t width_ = 0;
  double largest_ = 0;
};

ExitStatus show_shares(Session& session) {
  const Placement& placement = *session.placement();
  const RingShares shares = ring_shares(placement, session.key_prefix());
  Report report(session, placement, shares);
  for (std::size_t i = 0; i < placement.pool().size(); ++i) report.print(i);
  return ExitStatus::ok;
}

}  // namespace

void declare_ring_shares(Verb& verb) {
  verb.example("mcds ring")
      .example("mcds ring --as php-memcached -o text")
      .example("mcds -s 10.0.0.1,10.0.0.2/?3 ring | jq .share")
      .action([](Session& session) { return show_shares(session); });
}

void declare_ring(Command& command) { declare_ring_shares(command.itself()); }

}  // namespace mcds
