#include "common/structures/eventlog/conf.hpp"

#include <algorithm>
#include <utility>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/primitives/several/copies.hpp"

namespace mcds {

namespace {

constexpr std::string_view move_mark = "kept/";

}  // namespace

std::string LogMove::text() const {
  return std::string(move_mark) + std::to_string(change) + '/' + std::to_string(to) + '/' + from.text();
}

std::optional<LogMove> LogMove::parse(std::string_view what) {
  if (!what.starts_with(move_mark)) return std::nullopt;
  what.remove_prefix(move_mark.size());
  const auto change = parse_u64(take_word(what, '/'));
  const auto to = KeptNumber::parse(take_word(what, '/'));
  const auto from = KeptNumber::parse(what);
  if (!change || !to || to->unmarked || !from) return std::nullopt;
  return LogMove{*change, to->copies, *from};
}

std::vector<FormerRing> former_rings(std::span<const InUse> conf) {
  std::vector<FormerRing> rings;
  for (const InUse& one : conf) {
    std::string_view rest = one.what;
    const auto number = KeptNumber::parse(take_word(rest, '/'));
    const auto shape = RingShape::parse(rest);
    if (number && shape) rings.push_back({*number, *shape, one.until});
  }
  return rings;
}

std::vector<RingShape> shapes_in(std::span<const InUse> conf) {
  std::vector<RingShape> shapes;
  for (const InUse& one : conf) {
    if (const auto shape = RingShape::parse(one.what)) shapes.push_back(*shape);
  }
  return shapes;
}

std::optional<LogMove> last_move(std::span<const InUse> conf) {
  std::optional<LogMove> last;
  for (const InUse& one : conf) {
    const auto move = LogMove::parse(one.what);
    if (move && (!last || move->change > last->change)) last = move;
  }
  return last;
}

std::optional<LogMove> move_away(std::span<const InUse> conf, std::size_t copies) {
  const auto move = last_move(conf);
  return move && move->to != copies ? move : std::nullopt;
}

std::vector<InUse> united(std::vector<InUse> conf, std::span<const InUse> added) {
  for (const InUse& one : added) {
    const auto same = std::ranges::find_if(conf, [&](const InUse& other) { return other.what == one.what; });
    if (same == conf.end())
      conf.push_back(one);
    else
      same->until = std::max(same->until, one.until);
  }
  if (const auto last = last_move(conf)) {
    std::erase_if(conf, [&](const InUse& one) {
      const auto move = LogMove::parse(one.what);
      return move && move->change < last->change;
    });
    WallTime until{};
    for (const FormerRing& ring : former_rings(conf)) until = std::max(until, ring.until);
    for (InUse& one : conf) {
      if (LogMove::parse(one.what)) one.until = std::max(one.until, until);
    }
  }
  return conf;
}

std::vector<InUse> continued(std::span<const InUse> conf, const LogMove& move) {
  const std::string own = KeptNumber{move.to}.text() + '/';
  std::vector<InUse> lines;
  std::vector<InUse> shapes;
  for (const InUse& one : conf) {
    if (one.what.starts_with(own)) {
      shapes.push_back({one.what.substr(own.size()), one.until});
    } else if (RingShape::parse(one.what)) {
      lines.push_back({move.from.text() + '/' + one.what, one.until});
      shapes.push_back(one);
    } else if (one.what == move.text() || !LogMove::parse(one.what)) {
      lines.push_back(one);
    }
  }
  return united(std::move(lines), shapes);
}

std::vector<InUse> ConfCopies::all() const {
  std::vector<InUse> lines;
  for (const auto& copy : copies) {
    if (copy) lines = united(std::move(lines), *copy);
  }
  return lines;
}

bool ConfCopies::lacks(std::size_t copy) const {
  const auto lines = all();
  const auto is_shape = [](const InUse& one) { return RingShape::parse(one.what).has_value(); };
  if (!copies[copy]) return false;
  if (copies[copy]->empty() && !lines.empty()) return true;
  if (std::ranges::all_of(lines, is_shape)) return false;
  return united(*copies[copy], lines) != *copies[copy];
}

ConfCopies read_conf(const Context& context, const std::string& key, ConfAnswers wanted) {
  ConfCopies confs;
  std::vector<std::optional<Failure>> failures;
  for (const Reply& reply : execute_copies(context, Request::get(key))) {
    failures.push_back(attempt([&] { expect_read(context.cluster, reply); }).failure());
    const auto lines = parse_in_use(reply.outcome == Outcome::hit ? reply.value : "", context.clock.wall());
    confs.copies.push_back(failures.back() ? std::nullopt : std::optional(lines));
  }
  if (wanted == ConfAnswers::all) expect_all(failures);
  if (const auto failure = failure_of_all(failures); failure && wanted != ConfAnswers::any) raise(*failure);
  return confs;
}

bool change_conf(const Context& context, const std::string& key, const NextConf& next) {
  const auto decide = [&](const Observed& seen) -> std::optional<Write> {
    expect_in_use(context, key, seen.value, seen.server);
    const WallTime now = context.clock.wall();
    const auto after = next(parse_in_use(seen.value, now));
    if (!after) return std::nullopt;
    WallTime until = now;
    for (const InUse& one : *after) {
      if (one.until != WallTime::max()) until = std::max(until, one.until);
    }
    return Write{in_use_value(*after), Exptime::at(until, now)};
  };
  return cas_update(context, key, decide).written;
}

bool add_to_conf(const Context& context, const std::string& key, std::span<const InUse> lines) {
  return change_conf(context, key, [&](const std::vector<InUse>& seen) -> std::optional<std::vector<InUse>> {
    auto next = united(seen, lines);
    if (next == seen) return std::nullopt;
    return next;
  });
}

}  // namespace mcds
