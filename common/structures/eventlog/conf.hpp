// What a log's conf key (common/primitives/in_use.hpp) says is in use, each until its time is over:
//   60x60          a shape, with this number of copies
//   1/60x60        a ring of the log as it was kept before, in one copy: readers read it too. `2u/60x60`: in
//                  two, under the keys of before 0.2
//   kept/3/2/1     since the third change of its number the log is kept in 2 copies, before that in 1. Of
//                  several such lines the highest change counts. If the number is not that of the key, the
//                  log has left this key.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/primitives/in_use.hpp"
#include "common/structures/eventlog/format.hpp"

namespace mcds {

// Another for each; see PartName::ring.
inline std::int64_t ring_of(const KeptNumber& number) {
  return static_cast<std::int64_t>(number.copies + (number.unmarked ? most_numbered + 1 : 0));
}
inline LogKeys keys_under(const KeptNumber& number, const Context& context, std::string_view name,
                          const RingShape& shape = {}) {
  return {number.key(context, "eventlog", name), shape, number.copies};
}

struct FormerRing {
  KeptNumber number;
  RingShape shape;
  WallTime until;  // all its chunks have expired then
};

struct LogMove {
  std::uint64_t change = 0;
  std::size_t to = 1;
  KeptNumber from;

  std::string text() const;
  static std::optional<LogMove> parse(std::string_view what);
};

std::vector<FormerRing> former_rings(std::span<const InUse> conf);
// The shapes with this number of copies, the newest last.
std::vector<RingShape> shapes_in(std::span<const InUse> conf);
// The last change.
std::optional<LogMove> last_move(std::span<const InUse> conf);
// Whether it is the conf of a log that is kept in another number of copies by now.
std::optional<LogMove> move_away(std::span<const InUse> conf, std::size_t copies);

// What the conf says of a log that has left by `move`, of which this one did: the rings that it had, and the
// shapes that it goes on with.
std::vector<InUse> continued(std::span<const InUse> conf, const LogMove& move);

// Lines of both, each until the later of its ends; of moves only the last, which counts as long as any former
// ring: readers find that one's events late, and it must not seem to be the log's place then.
std::vector<InUse> united(std::vector<InUse> conf, std::span<const InUse> added);

// What the copies of one conf key say.
struct ConfCopies {
  std::vector<std::optional<std::vector<InUse>>> copies;  // nullopt: no answer

  std::vector<InUse> all() const;
  // What one says of other numbers of copies all are to say, and until when each shape is in use then. One
  // that is lost is to say all: nobody may put anything before the next one is lost.
  bool lacks(std::size_t copy) const;
  // Each line says until when it counts.
  static bool may_be_late() { return false; }
};

// Throws if too few of them answer.
enum class ConfAnswers { any, one, all };
ConfCopies read_conf(const Context& context, const std::string& key, ConfAnswers wanted = ConfAnswers::any);

// Puts what `next` makes of it in a conf key's place, by cas; nullopt: leave it, and false. Throws if there
// is no answer.
using NextConf = std::function<std::optional<std::vector<InUse>>(const std::vector<InUse>& seen)>;
bool change_conf(const Context& context, const std::string& key, const NextConf& next);
// False: they stood there.
bool add_to_conf(const Context& context, const std::string& key, std::span<const InUse> lines);

}  // namespace mcds
