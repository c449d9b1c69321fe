// A sealed line has a checksum: `<body> *<crc32 in 8 hex digits>`. It detects foreign writes, truncation and
// bit rot. The first byte of a body is a letter, so that incr cannot treat a record as a number.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include "common/base/errors.hpp"

namespace mcds {

std::string seal(std::string_view body);
// Seals the body that begins at `start` and ends with `text`.
void append_seal(std::string& text, std::size_t start);

// Returns the body, or nullopt if the checksum is missing or wrong.
std::optional<std::string_view> unseal(std::string_view line);

// Returns our line behind bytes that another program appended without a line feed: what `parse` returns for
// the end of `line` from the last place that `may_begin` accepts. Ends after 64 such places, because each is
// parsed with everything that follows it.
template <typename MayBegin, typename Parse>
auto salvage(std::string_view line, const MayBegin& may_begin, const Parse& parse) -> decltype(parse(line)) {
  int tries = 64;
  for (std::size_t i = line.size(); i-- > 1 && tries > 0;) {
    if (!may_begin(line.substr(i))) continue;
    --tries;
    if (auto found = parse(line.substr(i))) return found;
  }
  return std::nullopt;
}

// Servers may limit items to less than 1 MiB (memcached -I, at least 1 KiB). Reading the limit would cost a
// round trip, so a value that is too large is sent, refused, and sent again in pieces.

// Calls send(first, last) for consecutive ranges that cover 0 … count: first for the whole, and after each
// refusal by a server for half the refused range. A server without memory or cas refuses every size.
// Therefore a single item follows each refusal; if that is refused, throws the failure and sends no more.
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

// Does the same for whole lines of text, with send(piece, first, last); first and last are line numbers.
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
