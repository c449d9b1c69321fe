#include "common/base/fiber.hpp"

#include <cxxabi.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cassert>
#include <cstdint>
#include <vector>

#if __has_include(<sanitizer/common_interface_defs.h>)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#include "common/base/errors.hpp"
#include "common/base/sanitizers.hpp"

namespace mcds {

namespace {

constexpr std::size_t stack_size = 256 * 1024;

std::size_t guard_size() {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

// Stacks are reused within a kernel thread, because a simulation makes millions of fibers.
std::vector<Fiber::Stack>& idle_stacks() {
  thread_local std::vector<Fiber::Stack> stacks;
  return stacks;
}

Fiber::Stack map_stack() {
  void* bottom = ::mmap(nullptr, guard_size() + stack_size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (bottom == MAP_FAILED) throw Failure(ErrorCode::system, "no memory for a stack of 256 KiB");
  Fiber::Stack stack(static_cast<char*>(bottom));
  if (::mprotect(bottom, guard_size(), PROT_NONE) != 0)
    throw Failure(ErrorCode::system, "cannot guard a stack against overflow");
  return stack;
}

Fiber::Stack take_stack() {
  if (idle_stacks().empty()) return map_stack();
  auto stack = std::move(idle_stacks().back());
  idle_stacks().pop_back();
  return stack;
}

// AddressSanitizer reports a jump to an unknown stack as an overflow of the current one.
#ifdef MCDS_UNDER_ASAN
void report_start_of_switch(void** shadow, const void* bottom, std::size_t size) {
  __sanitizer_start_switch_fiber(shadow, bottom, size);
}
void report_end_of_switch(void* shadow, const void** bottom, std::size_t* size) {
  __sanitizer_finish_switch_fiber(shadow, bottom, size);
}
// Objects that a previous use left on the stack have no owner any more.
void report_new_use(const void* bottom, std::size_t size) {
  __asan_unpoison_memory_region(bottom, size);
}
#else
void report_start_of_switch(void**, const void*, std::size_t) {}
void report_end_of_switch(void*, const void**, std::size_t*) {}
void report_new_use(const void*, std::size_t) {}
#endif

// The runtime keeps the exceptions being handled per kernel thread, but each fiber needs its own. The ABI
// fixes the layout: a pointer and a counter.
using ExceptionState = std::array<char, 2 * sizeof(void*)>;

ExceptionState exchange_exceptions(const ExceptionState& next) {
  void* globals = abi::__cxa_get_globals();
  ExceptionState previous{};
  std::memcpy(previous.data(), globals, previous.size());
  std::memcpy(globals, next.data(), next.size());
  return previous;
}

}  // namespace

void Fiber::Unmap::operator()(char* bottom) const {
  report_new_use(bottom + guard_size(), stack_size);
  ::munmap(bottom, guard_size() + stack_size);
}

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)), stack_(take_stack()) {
  report_new_use(stack_.get() + guard_size(), stack_size);
}

Fiber::~Fiber() {
  assert(finished_ || !started_);
  idle_stacks().push_back(std::move(stack_));
}

void Fiber::begin() {
  ucontext_t context{};
  getcontext(&context);
  context.uc_stack.ss_sp = stack_.get() + guard_size();
  context.uc_stack.ss_size = stack_size;
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  makecontext(&context, reinterpret_cast<void (*)()>(&Fiber::enter), 2, static_cast<unsigned>(self),
              static_cast<unsigned>(static_cast<std::uint64_t>(self) >> 32));
  setcontext(&context);
}

void Fiber::enter(unsigned low, unsigned high) {
  auto* self =
      reinterpret_cast<Fiber*>(static_cast<std::uintptr_t>(low) | static_cast<std::uint64_t>(high) << 32);
  report_end_of_switch(nullptr, &self->owner_stack_.bottom, &self->owner_stack_.size);
  self->body_();
  self->finished_ = true;
  self->swap(self->own_, self->owner_, self->owner_stack_);
}

// A jump restores no registers, so the function it returns to must do nothing else.
void Fiber::jump(Point& to) {
  __builtin_longjmp(to.data(), 1);
}

void Fiber::leave(Point& from, Point& to) {
  if (__builtin_setjmp(from.data()) != 0) return;
  if (&to == &own_ && !started_) {
    started_ = true;
    begin();
  }
  jump(to);
}

void Fiber::swap(Point& from, Point& to, const Bounds& onto) {
  const ExceptionState mine = exchange_exceptions({});
  void* shadow = nullptr;
  report_start_of_switch(finished_ ? nullptr : &shadow, onto.bottom, onto.size);
  leave(from, to);
  Bounds before;
  report_end_of_switch(shadow, &before.bottom, &before.size);
  if (&to == &owner_) owner_stack_ = before;
  exchange_exceptions(mine);
}

void Fiber::resume() {
  assert(!finished_);
  swap(owner_, own_, {stack_.get() + guard_size(), stack_size});
}

void Fiber::pause() {
  swap(own_, owner_, owner_stack_);
}

}  // namespace mcds
