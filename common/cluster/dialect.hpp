// What one server supports, as learned from its greeting.
#pragma once

#include <cstdint>
#include <string>

namespace mcds {

struct Dialect {
  enum class Words {
    unknown,  // the server was not greeted yet
    meta,     // memcached 1.6: both, on one connection
    classic,  // older, and all other servers with memcached's protocol
  };
  Words words = Words::unknown;
  std::string version = {};   // as reported; empty: not reported
  std::uint32_t release = 0;  // 10618 for 1.6.18; 0: in another form
  // It closes the connection on unknown commands, some after an error line: the version is not its own, and
  // its backends store the items.
  bool proxy = false;

  void take_version(std::string text);
  // memcached itself, from 1.4 on: it honours exptimes, and supports cas unless it was started with -C.
  bool is_memcached() const { return !proxy && release >= 10400 && release < 10700; }
  // `md k C<unique>` answers EX to the right one, too, before 1.6.13.
  bool compares_in_md() const { return release < 10600 || release >= 10613; }
  // A line longer than 1 KiB may be cut in two before 1.6.13.
  bool takes_long_lines() const { return words == Words::meta && release >= 10613; }
};

}  // namespace mcds
