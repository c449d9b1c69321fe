// Descriptors: one that is closed at the end, writing to one until all is written, and how many of them this
// process may have open.
#pragma once

#include <string_view>
#include <utility>

namespace mcds {

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

}  // namespace mcds
