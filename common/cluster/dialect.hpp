// What one server takes, as it said when it was greeted.
#pragma once

#include <cstdint>
#include <string>

namespace mcds {

struct Dialect {
  enum class Words {
    unknown,  // it was not greeted yet
    meta,     // memcached 1.6: both, on one connection
    classic,  // older, and everything else that speaks memcached's protocol
  };
  Words words = Words::unknown;
  std::string version = {};   // as it says; empty: it did not
  std::uint32_t release = 0;  // 10618 for 1.6.18; 0: not in that form
  // It closes the connection on words it does not know: the version is not its own, what it keeps is its backends'.
  bool proxy = false;

  void take_version(std::string text);
  // memcached itself, from 1.4 on: it honours exptimes, and keeps cas uniques unless it was started with -C.
  bool is_memcached() const { return !proxy && release >= 10400 && release < 10700; }
  // `md k C<unique>` answers EX to the right one, too, before 1.6.13.
  bool compares_in_md() const { return release < 10600 || release >= 10613; }
  // A line longer than 1 KiB may be cut in two before 1.6.13.
  bool takes_long_lines() const { return words == Words::meta && release >= 10613; }
};

}  // namespace mcds
