// Cooperative threads on one kernel thread: what runs, when, is the owner's choice alone.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>

namespace mcds {

class Fiber {
 public:
  // Mapped, with a page below it that must not be touched: a recursion that is too deep ends the program at
  // once instead of writing over a neighbour.
  struct Unmap {
    void operator()(char* bottom) const;
  };
  using Stack = std::unique_ptr<char, Unmap>;

  explicit Fiber(std::function<void()> body);
  // The body must have returned, or never started: an abandoned stack would leak what lives on it.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs the body until it pauses or returns. Exceptions must not leave the body.
  void resume();
  // Called from within the body: back to resume()'s caller.
  void pause();
  bool finished() const { return finished_; }
  bool started() const { return started_; }

 private:
  // A place in a function that a jump returns to. libc's setjmp refuses to jump to another stack, and
  // swapcontext makes a system call for the signal mask at each switch. AddressSanitizer must not look at
  // functions that a jump leaves: what it marks in their frames would stay.
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
  Bounds owner_stack_;  // the one resume() was called on, as far as a sanitizer tells
  bool started_ = false;
  bool finished_ = false;
};

}  // namespace mcds
