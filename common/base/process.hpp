// Processes that are made here: pipes to them, waiting for their end, and the signals they begin with.
#pragma once

#include <sys/types.h>

#include <string_view>
#include <utility>

namespace mcds {

// Descriptors: one that is closed at the end, writing to one until all is written, and how many of them this
// process may have open.

// Closes it at the end, unless it is standard input.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { reset(); }
  operator int() const { return number_; }
  void reset();
  int release() { return std::exchange(number_, -1); }  // it is no longer closed

 private:
  int number_;
};

// Raises the soft limit to the hard one. False: there is nothing left to raise.
bool raise_descriptor_limit();
// As it was when the process began: for a command that is run, which may rely on small numbers (select(2)).
// May be called between fork and exec.
void restore_descriptor_limit();
// The soft limit now in force.
unsigned long descriptor_limit();

// Whole, however long the descriptor makes it wait; false, with errno, when it takes no more.
bool write_all(int descriptor, std::string_view bytes);

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
