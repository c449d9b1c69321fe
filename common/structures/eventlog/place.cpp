#include "common/structures/eventlog/place.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace mcds {

namespace {

// Of conf values.
std::vector<InUse> united(std::span<const std::string> confs, WallTime now) {
  std::vector<InUse> all;
  for (const std::string& conf : confs) all = mcds::united(std::move(all), parse_in_use(conf, now));
  return all;
}

// What all of it says counts where nothing of it is in use any more: the server that still has it has a
// slower clock.
bool has_left(std::span<const std::string> confs, std::size_t copies, WallTime now) {
  const auto in_use = united(confs, now);
  return move_away(in_use.empty() ? united(confs, WallTime{}) : in_use, copies).has_value();
}

// Of two conf values.
bool share_a_shape(std::string_view one, std::string_view other) {
  const auto shapes = shapes_in(parse_in_use(one, WallTime{}));
  const auto others = shapes_in(parse_in_use(other, WallTime{}));
  return std::ranges::any_of(
      shapes, [&](const RingShape& shape) { return std::ranges::find(others, shape) != others.end(); });
}

}  // namespace

LogPlace::LogPlace(Context of, std::string_view called, const std::optional<RingShape>& asked)
    : context(std::move(of)),
      copies(context),
      name(called),
      kept(
          context, "eventlog", name, ":conf", share_a_shape,
          [this](Recopying& change) { move_log(context, name, change); },
          [this](std::span<const std::string> confs, std::size_t number) {
            return has_left(confs, number, context.clock.wall());
          }),
      keys(kept.key(), shape, copies.size()) {
  use_shape(asked);
}

void LogPlace::take_keys() {
  // That the present lines may be stored is not forgotten.
  const bool perhaps = std::ranges::any_of(writers, std::mem_fn(&PartWriter::perhaps));
  keys = LogKeys(kept.key(), shape, copies.size());
  writers.clear();
  for (std::size_t i = 0; i < copies.size(); ++i) {
    writers.emplace_back(copies.at(i), shape, keys, guessed);
    if (perhaps) writers.back().follow();
  }
}

void LogPlace::use_shape(const std::optional<RingShape>& asked) {
  guessed = !asked;
  shape = asked.value_or(RingShape{});
  take_keys();
}

std::optional<RingShape> LogPlace::newest_in_use() const {
  const auto shapes = shapes_in(read_conf(context, keys.conf()).all());
  return shapes.empty() ? std::nullopt : std::optional(shapes.back());
}

bool LogPlace::elsewhere() {
  bool found = kept.elsewhere();
  if (const auto move = restore_left()) {
    if (move->to != copies.size()) kept.refuse(move->to);
    found = true;
  }
  if (found) take_keys();
  let_begin();
  return found;
}

// If one does not answer it is begun all the same, because it tells readers of the shape; they look for what
// it may not say: LogFound::conf_may_lack.
void LogPlace::let_begin() {
  const auto read = [&](bool) { return read_conf(context, keys.conf()); };
  const auto write = [&](const ConfCopies& confs, std::size_t copy) {
    add_to_conf(copies.at(copy), keys.conf(), confs.all());
  };
  if (!keys.has_one_copy()) static_cast<void>(repair(copies, context.clock, read, write));
  for (PartWriter& writer : writers) writer.may_begin();
}

std::optional<LogMove> LogPlace::restore_left() {
  const auto move = last_move(united(kept.take_left(), context.clock.wall()));
  if (!move) return std::nullopt;
  const KeptNumber& from = move->from;
  const auto conf =
      read_conf(context.in_copies(from.copies), keys_under(from, context, name).conf(), ConfAnswers::one)
          .all();
  const KeptNumber to{move->to};
  const Replicas theirs(context.in_copies(to.copies));
  expect_any(theirs.each([&](std::size_t copy) {
    add_to_conf(theirs.at(copy), keys_under(to, context, name).conf(), continued(conf, *move));
  }));
  return move;
}

void LogPlace::refuse(const LogMove& move) {
  // It may have been changed again since.
  static_cast<void>(kept.elsewhere());
  kept.refuse(move.to);
}

void LogPlace::remember(std::span<const InUse> conf) {
  const WallTime now = context.clock.wall();
  for (const FormerRing& ring : former_rings(conf)) {
    const auto known = std::ranges::find_if(formers, [&](const FormerRing& other) {
      return other.number == ring.number && other.shape == ring.shape;
    });
    if (known == formers.end())
      formers.push_back(ring);
    else
      known->until = std::max(known->until, ring.until);
  }
  std::erase_if(formers, [&](const FormerRing& ring) { return ring.until <= now; });
}

std::string LogPlace::key_of(const PartName& part) const {
  for (const FormerRing& former : formers) {
    if (former.shape == shape && ring_of(former.number) == part.ring())
      return keys_of(former).part(part.stored());
  }
  return keys.part(part.stored());
}

}  // namespace mcds
