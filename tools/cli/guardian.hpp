// A separate process that outlives us by a moment: if we end without having dismissed it, SIGKILL
// included, it ends the process groups we had started and removes our directory. It notices by the end of a
// pipe whose only write end is ours. It also kills the groups when a deadline passes that we, frozen, let
// pass.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "common/base/clock.hpp"
#include "common/base/process.hpp"

namespace mcds {

// Becomes this program. Returns if it cannot: the errno.
int execute(const std::vector<std::string>& words);

class Guardian {
 public:
  // Forks: call it while the program has one thread. `directory`, unless empty, is removed with all it holds.
  explicit Guardian(const std::string& directory = {});
  // Dismisses it: nothing is killed or removed. Reaps it.
  ~Guardian();
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

  // Safe in a fork and from other threads: one write each, which never blocks.
  void watch(pid_t group) const;
  void forget(pid_t group) const;
  void set_deadline(SteadyTime deadline) const;

 private:
  void tell(char what, long long value) const;
  pid_t pid_ = -1;
  Descriptor pipe_;
};

}  // namespace mcds
