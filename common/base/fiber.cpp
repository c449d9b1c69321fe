#include "common/base/fiber.hpp"

#include <cxxabi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <vector>

#include "common/base/errors.hpp"

namespace mcds {

namespace {

constexpr std::size_t stack_size = 256 * 1024;

std::size_t guard_size() {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

// Stacks are reused, by the same kernel thread: a simulation makes millions of fibers.
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

// The runtime keeps the exceptions being handled per kernel thread; each fiber needs its own. The ABI fixes
// the layout: a pointer and a counter.
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
  ::munmap(bottom, guard_size() + stack_size);
}

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)), stack_(take_stack()) {
  getcontext(&own_);
  own_.uc_stack.ss_sp = stack_.get() + guard_size();
  own_.uc_stack.ss_size = stack_size;
  own_.uc_link = nullptr;
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  makecontext(&own_, reinterpret_cast<void (*)()>(&Fiber::enter), 2, static_cast<unsigned>(self),
              static_cast<unsigned>(static_cast<std::uint64_t>(self) >> 32));
}

Fiber::~Fiber() {
  assert(finished_ || !started_);
  idle_stacks().push_back(std::move(stack_));
}

void Fiber::enter(unsigned low, unsigned high) {
  auto* self =
      reinterpret_cast<Fiber*>(static_cast<std::uintptr_t>(low) | static_cast<std::uint64_t>(high) << 32);
  self->body_();
  self->finished_ = true;
  self->pause();
}

void Fiber::swap(ucontext_t& from, ucontext_t& to) {
  const ExceptionState mine = exchange_exceptions({});
  swapcontext(&from, &to);
  exchange_exceptions(mine);
}

void Fiber::resume() {
  assert(!finished_);
  started_ = true;
  swap(owner_, own_);
}

void Fiber::pause() {
  swap(own_, owner_);
}

}  // namespace mcds
