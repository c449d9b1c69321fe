// Fiber: cooperative threads on one kernel thread. The owner alone decides which fiber runs, and when.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>

namespace mcds {

class Fiber {
 public:
  // Frees a stack. Stacks are mapped with a guard page below, so that a recursion that is too deep crashes
  // the program at once instead of overwriting other memory.
  struct Unmap {
    void operator()(char* bottom) const;
  };
  using Stack = std::unique_ptr<char, Unmap>;

  explicit Fiber(std::function<void()> body);
  // The body must have returned or never started: the objects on an unfinished stack would leak.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs the body until it pauses or returns. The body must not throw.
  void resume();
  // Returns to resume()'s caller. Call it from within the body.
  void pause();
  bool finished() const { return finished_; }
  bool started() const { return started_; }

 private:
  // A position in a function that a jump returns to. libc's setjmp refuses to jump to another stack, and
  // swapcontext makes a system call for the signal mask at each switch. AddressSanitizer must not instrument
  // functions that a jump leaves, because its marks in their frames would stay.
  using Point = std::array<void*, 5>;
  struct Bounds {
    const void* bottom = nullptr;
    std::size_t size = 0;
  };
  [[gnu::noinline, gnu::no_sanitize_address]] void begin();
  static void enter(unsigned low, unsigned high);
  [[noreturn, gnu::noinline, gnu::no_sanitize_address]] static void jump(Point& to);
  [[gnu::noinline, gnu::no_sanitize_address]] void leave(Point& from, Point& to);
  void swap(Point& from, Point& to, const Bounds& onto);

  std::function<void()> body_;
  Stack stack_;
  Point own_{};
  Point owner_{};
  Bounds owner_stack_;  // the stack of resume()'s caller, as far as a sanitizer reports it
  bool started_ = false;
  bool finished_ = false;
};

}  // namespace mcds
