// One line with a checksum: `<body> *<crc32 in 8 hex digits>`. Foreign writes, truncation and bit rot do not
// pass. The first byte of a body is a letter, so that no incr takes a record for a number.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include "common/base/errors.hpp"

namespace mcds {

std::string seal(std::string_view body);
// Seals the body that `text` ends with, from `start` on.
void append_seal(std::string& text, std::size_t start);

// The body; nullopt when the checksum is missing or wrong.
std::optional<std::string_view> unseal(std::string_view line);

// Servers whose items are smaller than usual: memcached -I, from 1 KiB on. Nothing tells their size at the
// cost of no trip.
// What is too large for one item is refused, and sent again in pieces.

// Calls send(first, last) for pieces that together are 0 … count, in order: all at once, then half as many
// whenever send throws that a server refused them. A server without memory or cas refuses, too: so one alone
// comes first after each refusal, and if that is refused it is thrown, with nothing sent behind it.
template <typename Send>
void in_pieces(std::size_t count, const Send& send) {
  std::size_t most = count, next = count;
  for (std::size_t first = 0; first < count;) {
    const std::size_t last = std::min(count, first + next);
    try {
      send(first, last);
      first = last;
      next = most;
    } catch (const Failure& refusal) {
      if (refusal.code() != ErrorCode::refused || last - first == 1) throw;
      most = (last - first) / 2;
      next = 1;
    }
  }
}

// The same with whole lines of text: send(piece, first, last), the numbers of its lines.
template <typename Send>
void lines_in_pieces(const std::string& text, const Send& send) {
  std::vector<std::size_t> starts{0};
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', end + 1))
    starts.push_back(end + 1);
  in_pieces(starts.size() - 1, [&](std::size_t first, std::size_t last) {
    const bool all = last - first == starts.size() - 1;
    send(all ? text : text.substr(starts[first], starts[last] - starts[first]), first, last);
  });
}

}  // namespace mcds
