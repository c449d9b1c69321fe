#include "common/base/fiber.hpp"

#include <cxxabi.h>

#include <array>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <vector>

namespace mcds {

namespace {

constexpr std::size_t stack_size = 256 * 1024;

// Stacks are reused, by the same kernel thread: a simulation makes millions of fibers.
std::vector<std::unique_ptr<char[]>>& idle_stacks() {
  thread_local std::vector<std::unique_ptr<char[]>> stacks;
  return stacks;
}

std::unique_ptr<char[]> take_stack() {
  if (idle_stacks().empty()) return std::unique_ptr<char[]>(new char[stack_size]);
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

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)), stack_(take_stack()) {
  getcontext(&own_);
  own_.uc_stack.ss_sp = stack_.get();
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
