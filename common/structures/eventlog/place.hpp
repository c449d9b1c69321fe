// Where one client finds a log: under which keys, in which shape and how many copies, what it was kept in
// before, and what to do where it has left. Writers, readers and recopy begin here.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/primitives/several/kept.hpp"
#include "common/primitives/several/replicas.hpp"
#include "common/structures/eventlog/part_writer.hpp"

namespace mcds {

struct LogPlace {
  LogPlace(Context context, std::string_view name, const std::optional<RingShape>& shape);
  LogPlace(const LogPlace&) = delete;
  LogPlace& operator=(const LogPlace&) = delete;

  // From now on; without one it is a guess: where nothing of it is there yet, the newest in use is taken.
  void use_shape(const std::optional<RingShape>& asked);
  std::optional<RingShape> newest_in_use() const;

  // If nothing is found: whether it is under other keys, which are used from now on. Begins what is not
  // there.
  bool elsewhere();
  // A copy of the conf key that is missing gets what the others say, and directories may be created.
  void let_begin();
  // If the last look found only places that the log has left: its conf key, which was lost, gets what they
  // say.
  std::optional<LogMove> restore_left();
  // Throws that the log is kept in another number of copies by now.
  [[noreturn]] void refuse(const LogMove& move);

  // The former rings that it names.
  void remember(std::span<const InUse> conf);
  LogKeys keys_of(const FormerRing& former) const {
    return keys_under(former.number, context, name, former.shape);
  }
  std::string key_of(const PartName& name) const;

  Context context;
  Replicas copies;
  std::string name;
  Kept kept;
  RingShape shape;
  bool guessed = false;
  LogKeys keys;
  std::vector<PartWriter> writers;  // one per copy
  std::vector<FormerRing> formers;  // of all shapes, as far as is known

 private:
  void take_keys();
};

// Changes the number of copies, or ends the log: Kept::Move (recopy.cpp; eventlog.hpp has the protocol).
void move_log(const Context& context, std::string_view name, Recopying& change);

}  // namespace mcds
