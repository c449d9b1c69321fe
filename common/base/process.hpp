// Child processes: pipes to them, waiting for them, and their signals.
#pragma once

#include <sys/types.h>

#include <string_view>
#include <utility>

namespace mcds {

// Descriptors: an owner, complete writes, and the limit of open descriptors.

// Owns a descriptor and closes it, unless it is standard input.
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
  int release() { return std::exchange(number_, -1); }  // the caller must close it

 private:
  int number_;
};

// Raises the soft limit to the hard one. Returns false if it is already that high.
bool raise_descriptor_limit();
// Restores the limit that the process started with, for a command that may depend on small descriptors
// (select(2)). It may be called between fork and exec.
void restore_descriptor_limit();
// Returns the current soft limit.
unsigned long descriptor_limit();

// Writes all bytes and waits as long as necessary. Returns false with errno on an error.
bool write_all(int descriptor, std::string_view bytes);

// A pipe whose ends are closed by the destructor and on exec.
struct Pipe {
  Descriptor read_end, write_end;

  // `flags` are those of pipe2(). Throws Failure(system).
  static Pipe make(int flags = 0);
};

// Sets the signals that this program depends on. SIGPIPE and SIGXFSZ are ignored, as the failed write reports
// the error. SIGCHLD is not, as the kernel would reap our children. Call it once at the start.
void settle_signals();
// Restores the signals of the start, for a program that is run. It may be called between fork and exec.
void restore_signals();

// Calls fork(). Throws Failure(system).
pid_t fork_process();
// Waits for a child to exit and returns its status.
int reap(pid_t pid);
// Terminates a child and waits for it to exit.
void end_process(pid_t pid);

// Called in a child of `parent`: it then ends with the parent, no signal of the terminal reaches it, and its
// standard streams are /dev/null.
void work_beside(pid_t parent, const char* name);

}  // namespace mcds
