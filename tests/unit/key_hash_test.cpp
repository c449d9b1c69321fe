#include "common/placement/key_hash.hpp"

#include <doctest/doctest.h>

#include "common/base/bytes.hpp"

using namespace mcds;

namespace {

struct Check {
  const char* name;
  KeyHash hash;
  std::uint64_t a, user, cyrillic;  // of "a", "user:1234", "ключ"
};

constexpr Check checks[] = {
    {"crc32", key_hash::crc32, 0xe8b7be43, 0xb0b05457, 0xcaf961a},
    {"crc15", key_hash::crc15, 0x68b7, 0x30b0, 0xcaf},
    {"md5", key_hash::md5, 0xb975c10c, 0xe7f65f01, 0x667b65c3},
    {"one_at_a_time_signed", key_hash::one_at_a_time_signed, 0xca2e9442, 0x856833ab, 0xfbca080a},
    {"one_at_a_time", key_hash::one_at_a_time, 0xca2e9442, 0x856833ab, 0x5f21feca},
    {"fnv1_32_signed", key_hash::fnv1_32_signed, 0x50c5d7e, 0x13b52562, 0x31b3eff9},
    {"fnv1a_32_signed", key_hash::fnv1a_32_signed, 0xe40c292c, 0x8457ce84, 0xafd617e1},
    {"fnv1_32", key_hash::fnv1_32, 0x50c5d7e, 0x13b52562, 0x2a7b2bf9},
    {"fnv1a_32", key_hash::fnv1a_32, 0xe40c292c, 0x8457ce84, 0x95c4e9e1},
    {"fnv1_64_low_signed", key_hash::fnv1_64_low_signed, 0x8601b7be, 0xd3a43b42, 0x64997a19},
    {"fnv1a_64_low_signed", key_hash::fnv1a_64_low_signed, 0x8601ec8c, 0xa44673c4, 0xa9ad7881},
    {"murmur2", key_hash::murmur2, 0x4b41757c, 0x3619c7c6, 0x9ac6d2af},
    {"murmur3", key_hash::murmur3, 0x3c2569b2, 0x23e8609e, 0x9a592042},
    {"murmur3_length_seeded", key_hash::murmur3_length_seeded, 0x8872dbc8, 0xb7858bc3, 0x9132b803},
    {"jenkins", key_hash::jenkins, 0xe0a38690, 0xf57ec064, 0x4b2c236f},
    {"hsieh", key_hash::hsieh, 0x93642e87, 0x52409379, 0xfa8a713c},
    {"crc16", key_hash::crc16, 0x7c87, 0xc1323dc6, 0x3c55683f},
    {"xxh64", key_hash::xxh64, 0xd24ec4f1a98c6e5b, 0xf7bd6c8b6899a9ea, 0xa17d2dd13d89d19c},
    {"xxh3", key_hash::xxh3, 0xe6c632b61e964e1f, 0xb10d9bc42a04d581, 0x9a137c08c1e55ede},
    {"murmur64a", key_hash::murmur64a, 0x3d6961c699914c7b, 0x79a2eafde554de60, 0x793048dbcb8bcc49},
    {"siphash13", key_hash::siphash13, 0x719b50b9a4f0e9f3, 0xd6237eb51853286a, 0x726cb151f4b582cb},
    {"java", key_hash::java, 0x61, 0x12141691, 0x1fc44ba},
    {"java_fnv1_64", key_hash::java_fnv1_64, 0x8601b7be, 0xd3a43b42, 0xfcc57c1},
    {"java_fnv1a_64", key_hash::java_fnv1a_64, 0x8601ec8c, 0xa44673c4, 0x9270ee19},
};

}  // namespace

TEST_CASE("key hashes are those of the clients") {
  for (const auto& check : checks) {
    CAPTURE(check.name);
    CHECK(check.hash("a") == check.a);
    CHECK(check.hash("user:1234") == check.user);
    CHECK(check.hash("ключ") == check.cyrillic);
  }
}

TEST_CASE("furc is mcrouter's") {
  CHECK(key_hash::furc("a", 100) == 34);
  CHECK(key_hash::furc("user:1234", 100) == 51);
  CHECK(key_hash::furc("ключ", 100) == 44);
  CHECK(key_hash::furc("a", 1) == 0);
}

TEST_CASE("md5 agrees with nettle's at every padding boundary") {
  for (std::size_t size = 0; size < 200; ++size) {
    const std::string text(size, 'a');
    std::string hex;
    for (const std::uint32_t word : key_hash::md5_words(text))
      hex += hex64(__builtin_bswap32(word)).substr(8);
    CHECK(hex == md5_hex(text));
  }
  CHECK(md5_hex("abc") == "900150983cd24fb0d6963f7d28e17f72");
  CHECK(sha1_hex("abc") == "a9993e364706816aba3e25717850c26c9cd0d89d");
}
