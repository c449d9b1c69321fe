#include "tools/commands/ring/colours.hpp"

#include "common/base/bytes.hpp"

namespace mcds {

namespace {

// Evenly spaced hues of like strength, from blue over red, orange and green back to blue.
constexpr std::array<std::uint32_t, 24> wheel{0x3277c9, 0x546dc9, 0x6e65c5, 0x8560bf, 0x9b5db6, 0xb05daa,
                                              0xc3609c, 0xd4658c, 0xe26e7a, 0xeb7967, 0xef8553, 0xed933f,
                                              0xe4a02e, 0xd5ac28, 0xbfb532, 0xa3bb46, 0x81be5c, 0x56bd71,
                                              0x07b886, 0x00b198, 0x00a7a8, 0x009bb5, 0x008fbf, 0x0082c6};

Colour channels(std::uint32_t rgb) {
  return {static_cast<int>(rgb >> 16), static_cast<int>(rgb >> 8 & 0xff), static_cast<int>(rgb & 0xff)};
}

Colour mixed(const Colour& a, const Colour& b, double part) {
  Colour result{};
  for (std::size_t i = 0; i < 3; ++i) result[i] = static_cast<int>(a[i] + (b[i] - a[i]) * part + 0.5);
  return result;
}

}  // namespace

Colour colour_of(std::size_t server, std::size_t servers) {
  const double place = static_cast<double>(server * wheel.size()) / static_cast<double>(servers);
  const auto below = static_cast<std::size_t>(place);
  const Colour pure = mixed(channels(wheel[below % wheel.size()]),
                            channels(wheel[(below + 1) % wheel.size()]), place - static_cast<double>(below));
  if (servers <= 8) return pure;
  constexpr std::array shades{0.0, 0.34, -0.30};
  const double shade = shades[server % shades.size()];
  return shade < 0 ? mixed(pure, {0x14, 0x1c, 0x30}, -shade) : mixed(pure, {255, 255, 255}, shade);
}

bool is_light(const Colour& colour) {
  return colour[0] * 3 + colour[1] * 6 + colour[2] > 1750;
}

std::string hex(const Colour& colour) {
  const int rgb = colour[0] << 16 | colour[1] << 8 | colour[2];
  return '#' + hex64(static_cast<std::uint64_t>(rgb)).substr(10);
}

}  // namespace mcds
