// The controlling terminal's foreground, lent to a child's process group and taken back.
#pragma once

#include <sys/types.h>

#include "common/base/descriptors.hpp"

namespace mcds {

class Terminal {
 public:
  // Opens the controlling terminal, if there is one. Keep SIGTTOU blocked while using it.
  Terminal();

  bool exists() const { return descriptor_ >= 0; }
  // Our process group has it.
  bool is_ours() const;
  // Whether the child should have it from the start. Not when our output goes into a pipe: whoever reads
  // there is in our process group and may want the terminal (`… | less`); the child gets it when it asks.
  bool lend_at_start() const;
  void lend(pid_t group);
  // If it was lent: from the process below us that has it now.
  void take_back();

 private:
  Descriptor descriptor_;
  bool lent_ = false;
};

}  // namespace mcds
