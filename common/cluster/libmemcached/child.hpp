// A child process that calls libmemcached for us: the library aborts its process at answers and words that
// it does not expect, and may wait for ever. Messages go over a pair of sockets; a child that crashed, or
// is late, is a line that says no more. It has no descriptor of ours, no signal of our terminal reaches it,
// and it ends with us.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "common/base/clock.hpp"
#include "common/base/process.hpp"

namespace mcds::libmemcached {

// Whole messages. Both sides are this program: a size in front of texts, numbers as they are in memory.
class Line {
 public:
  explicit Line(int descriptor) : descriptor_(descriptor) {}

  // False: the other side has ended, or does not take it in time.
  bool send(const void* bytes, std::size_t size) const;
  bool send_text(std::string_view text) const;
  template <typename Value>
  bool send_value(const Value& value) const {
    static_assert(std::is_trivially_copyable_v<Value>);
    return send(&value, sizeof value);
  }
  // False, nullopt: no more comes, or not in time.
  bool receive(void* into, std::size_t size) const;
  std::optional<std::string> receive_text() const;
  template <typename Value>
  bool receive_value(Value& value) const {
    static_assert(std::is_trivially_copyable_v<Value>);
    return receive(&value, sizeof value);
  }

 private:
  int descriptor_;
};

class Child {
 public:
  // `serve` runs in the child, which ends when it returns; it must not throw. Throws Failure(system).
  Child(const char* name, const std::function<void(const Line&)>& serve);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  Line line() const { return Line(descriptor_); }
  // For each message from now on.
  void wait_no_longer_than(Duration longest) const;
  // Whether this process is the one that made it.
  bool is_ours() const;

 private:
  pid_t parent_, child_ = -1;
  Descriptor descriptor_;
};

}  // namespace mcds::libmemcached
