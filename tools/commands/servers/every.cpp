// mcds servers --every: rates of all servers and of the pool, again and again.
#include <unistd.h>

#include "common/base/units.hpp"
#include "tools/cli/pause.hpp"
#include "tools/commands/servers/condition.hpp"
#include "tools/commands/servers/options.hpp"
#include "tools/commands/servers/rates.hpp"

namespace mcds {

namespace {

constexpr auto shortest_interval = std::chrono::milliseconds(100);
constexpr const char* home_and_clear = "\033[H\033[J";

class Observer {
 public:
  explicit Observer(Session& session)
      : session_(session),
        pool_(session.placement()->pool()),
        before_(pool_.size()),
        redraws_(session.output().mode() == OutputMode::text && isatty(STDOUT_FILENO) != 0) {}

  // The worst that a server is in now.
  ExitStatus look(bool print) {
    std::vector<Condition> conditions = ask_servers(session_.cluster(), {"", "items"}, conditions_);
    const SteadyTime at = session_.clock().steady();
    if (print && redraws_) session_.output().raw(home_and_clear);
    Rates all;
    std::size_t up = 0;
    ExitStatus status = status_of(conditions);
    for (std::size_t i = 0; i < pool_.size(); ++i) {
      const Condition& condition = conditions[i];
      std::optional<Sample> now;
      if (condition.up && !condition.refused) now = Sample::of(at, condition.stats[0], condition.stats[1]);
      up += condition.up ? 1 : 0;
      if (condition.refused) status = worse(status, ExitStatus::refused);
      if (print) print_server(i, condition, now, all);
      before_[i] = now;
    }
    if (print) print_pool(up, all);
    conditions_ = std::move(conditions);
    return status;
  }

 private:
  void print_server(std::size_t index, const Condition& condition, const std::optional<Sample>& now,
                    Rates& all) {
    JsonObject line;
    line.bytes("server", pool_[index].address());
    line.boolean("up", condition.up).time("at", session_.clock().wall());
    if (now && before_[index]) {
      const Rates rates(*before_[index], *now);
      line.raw("interval_s",
               format_fixed(std::chrono::duration<double>(now->at - before_[index]->at).count(), 3));
      if (rates.restarted()) line.boolean("restarted", true);
      rates.describe(line);
      all.add(rates);
    }
    if (!condition.error.empty()) line.bytes("error", condition.error);
    session_.output().answer(line, condition.up ? "up" : "down");
  }

  void print_pool(std::size_t up, const Rates& all) {
    if (session_.output().mode() != OutputMode::value) {
      JsonObject line;
      line.bytes("server", "*").boolean("up", up > 0).time("at", session_.clock().wall());
      all.describe(line);
      line.number("servers", pool_.size()).number("servers_up", up);
      session_.output().answer(line, {});
    }
    session_.output().next_table();
  }

  Session& session_;
  const Pool& pool_;
  std::vector<Condition> conditions_;  // at the last look
  std::vector<std::optional<Sample>> before_;
  bool redraws_;
};

}  // namespace

ExitStatus servers_every(Session& session, const ServersOptions& options) {
  if (*options.every < shortest_interval) throw InvalidInput("--every must be at least 100ms");
  if (options.count == 0) throw InvalidInput("-n must be at least 1");
  session.try_always();
  Pause pause;
  Observer observer(session);
  ExitStatus status = observer.look(false);
  SteadyTime next = session.clock().steady();
  for (std::uint64_t looks = 0; !options.count || looks < *options.count; ++looks) {
    // A look that takes longer than an interval is followed by the next whole one.
    next = std::max(next + *options.every, session.clock().steady());
    if (!pause.wait(next - session.clock().steady())) break;
    status = observer.look(true);
  }
  return status;
}

}  // namespace mcds
