// libFuzzer: values as their clients read them. The first byte chooses the format and its flags.
//
// sources: common/base/*.cpp common/values/*.cpp -lnettle -lz -lxxhash -lzstd
#include <cstdlib>
#include <iterator>

#include "common/base/json.hpp"
#include "common/values/values.hpp"

namespace {

struct Case {
  const char* format;
  std::uint32_t flags;
};
constexpr Case cases[] = {
    {"pymemcache", 1},
    {"php-memcached", 4},
    {"php-memcached", 5},
    {"php-memcached", 6},
    {"php-session", 0},
    {"dalli", 1},
    {"rails", 1},
    {"php-memcached", 0x50},
    {"php-memcached", 0x30},
    {"php-memcached", 0x90},
    {"pymemcache", 8 + 1},
    {"auto", 0},
    {"node-memcached", 4},
    {"spymemcached", 0x400},
    {"spymemcached", 0x700},
    {"spymemcached-whalin", 16},
    {"php-memcached", 2},
    {"perl", 1},
};

void must(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  constexpr std::size_t max_bytes = 1 << 16;
  const Case& chosen = cases[bytes[0] % std::size(cases)];
  const mcds::DecodedValue value =
      mcds::decode_value(*mcds::value_format_named(chosen.format), chosen.flags,
                         {reinterpret_cast<const char*>(bytes) + 1, size - 1}, max_bytes);
  must(value.json.empty() ? !value.problem.empty() : mcds::is_compact_json(value.json));
  must(value.json.size() < 8 * max_bytes);
  return 0;
}
