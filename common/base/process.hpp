// Processes that are made here: pipes to them, waiting for their end, and the signals they begin with.
#pragma once

#include <sys/types.h>

#include "common/base/descriptors.hpp"

namespace mcds {

// Both ends are closed at the end, and on exec.
struct Pipe {
  Descriptor read_end, write_end;

  // `flags`: those of pipe2(). Throws Failure(system).
  static Pipe make(int flags = 0);
};

// Sets the signals of which we rely on what they do: SIGPIPE and SIGXFSZ are ignored, as the write that fails
// says it, and SIGCHLD is not, as the kernel would reap our children. Call it once, at the start.
void settle_signals();
// Sets them as they were when the program began: for a program that is run. May be called between fork and
// exec.
void restore_signals();

// As fork(). Throws Failure(system).
pid_t fork_process();
// Waits for the end of a child; its status.
int reap(pid_t pid);
// Ends a child, and waits for that.
void end_process(pid_t pid);

// In a child that works beside `parent`, which made it: it ends with that, no signal of our terminal reaches
// it, and its standard streams lead nowhere.
void work_beside(pid_t parent, const char* name);

}  // namespace mcds
