// What protocol code relies on, checked in every build: a rule that does not hold ends the command with 70, a
// bug of ours, before anything is done that rests on it. For what nobody relies on assert() is enough.
#pragma once

#include <stdexcept>
#include <string>

namespace mcds {

inline void rely_on(bool holds, const char* rule) {
  if (!holds) [[unlikely]]
    throw std::logic_error(std::string("this was relied upon and is not so: ") + rule);
}

}  // namespace mcds
