// SpookyHash V2 by its author's description: short messages by four lanes, long ones by twelve.
#include <array>
#include <bit>
#include <cstring>

#include "common/placement/mcrouter/hashes.hpp"

namespace mcds {

namespace {

using Word = std::uint64_t;
constexpr Word filler = 0xdeadbeefdeadbeefULL;
constexpr std::size_t lanes = 12, block = lanes * 8, short_below = 2 * block;

Word word_at(const char* bytes) {
  Word word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

void short_mix(std::array<Word, 4>& h) {
  constexpr std::array<int, 12> turns{50, 52, 30, 41, 54, 48, 38, 37, 62, 34, 5, 36};
  for (std::size_t i = 0; i < turns.size(); ++i) {
    Word& changed = h[(i + 2) % 4];
    changed = std::rotl(changed, turns[i]) + h[(i + 3) % 4];
    h[i % 4] ^= changed;
  }
}

void short_end(std::array<Word, 4>& h) {
  constexpr std::array<int, 11> turns{15, 52, 26, 51, 28, 9, 47, 54, 32, 25, 63};
  for (std::size_t i = 0; i < turns.size(); ++i) {
    Word& turned = h[(i + 2) % 4];
    h[(i + 3) % 4] ^= turned;
    turned = std::rotl(turned, turns[i]);
    h[(i + 3) % 4] += turned;
  }
}

Word short_hash(std::string_view message, Word seed) {
  std::array<Word, 4> h{seed, seed, filler, filler};
  const char* at = message.data();
  std::size_t left = message.size();
  for (; left >= 32; left -= 32, at += 32) {
    h[2] += word_at(at), h[3] += word_at(at + 8);
    short_mix(h);
    h[0] += word_at(at + 16), h[1] += word_at(at + 24);
  }
  if (left >= 16) {
    h[2] += word_at(at), h[3] += word_at(at + 8);
    short_mix(h);
    left -= 16, at += 16;
  }
  h[3] += static_cast<Word>(message.size()) << 56;
  if (left == 0) {
    h[2] += filler, h[3] += filler;
  } else {
    std::array<char, 16> tail{};
    std::memcpy(tail.data(), at, left);
    h[2] += word_at(tail.data()), h[3] += word_at(tail.data() + 8);
  }
  short_end(h);
  return h[0];
}

using State = std::array<Word, lanes>;

void mix(const char* data, State& s) {
  constexpr std::array<int, lanes> turns{11, 32, 43, 31, 17, 28, 39, 57, 55, 54, 22, 46};
  for (std::size_t i = 0; i < lanes; ++i) {
    s[i] += word_at(data + 8 * i);
    s[(i + 2) % lanes] ^= s[(i + 10) % lanes];
    s[(i + 11) % lanes] ^= s[i];
    s[i] = std::rotl(s[i], turns[i]);
    s[(i + 11) % lanes] += s[(i + 1) % lanes];
  }
}

void end_partial(State& h) {
  constexpr std::array<int, lanes> turns{44, 15, 34, 21, 38, 33, 10, 13, 38, 53, 42, 54};
  for (std::size_t i = 0; i < lanes; ++i) {
    h[(i + 11) % lanes] += h[(i + 1) % lanes];
    h[(i + 2) % lanes] ^= h[(i + 11) % lanes];
    h[(i + 1) % lanes] = std::rotl(h[(i + 1) % lanes], turns[i]);
  }
}

Word long_hash(std::string_view message, Word seed) {
  State s;
  for (std::size_t i = 0; i < lanes; ++i) s[i] = i % 3 == 2 ? filler : seed;
  const char* at = message.data();
  std::size_t left = message.size();
  for (; left >= block; left -= block, at += block) mix(at, s);
  std::array<char, block> tail{};
  std::memcpy(tail.data(), at, left);
  tail[block - 1] = static_cast<char>(left);
  for (std::size_t i = 0; i < lanes; ++i) s[i] += word_at(tail.data() + 8 * i);
  for (int round = 0; round < 3; ++round) end_partial(s);
  return s[0];
}

}  // namespace

std::uint32_t spooky32(std::string_view bytes, std::uint32_t seed) {
  return static_cast<std::uint32_t>(bytes.size() < short_below ? short_hash(bytes, seed)
                                                               : long_hash(bytes, seed));
}

}  // namespace mcds
