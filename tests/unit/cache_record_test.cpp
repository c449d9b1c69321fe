#include <doctest/doctest.h>

#include <string>

#include "common/structures/cache/entry.hpp"

namespace mcds::cache_record_test {

namespace {

CacheRecord sample() {
  CacheRecord record;
  record.build = "0123456789abcdef";
  record.begun_at = WallTime(std::chrono::milliseconds(1795234130017));
  record.made_at = WallTime(std::chrono::milliseconds(1795234133945));
  record.fresh_until = WallTime(std::chrono::milliseconds(1795234193945));
  record.stale_until = WallTime(std::chrono::milliseconds(1795234793945));
  record.exit_code = 3;
  record.out = std::string("line\nnul\0byte *00000000\n", 23);
  record.err = "warning: \xff\n";
  return record;
}

}  // namespace

TEST_CASE("cache records come back byte for byte") {
  const auto record = decode_cache_record(encode(sample()));
  REQUIRE(record.has_value());
  CHECK(record->out == sample().out);
  CHECK(record->err == sample().err);
  CHECK(record->exit_code == 3);
  CHECK(record->begun_at == sample().begun_at);
  CHECK(record->made_at == sample().made_at);
  CHECK(record->fresh_until == sample().fresh_until);
  CHECK(record->stale_until == sample().stale_until);
  CHECK(record->fresh(sample().made_at));
  CHECK(record->usable(sample().fresh_until));
  CHECK_FALSE(record->usable(sample().stale_until));
  CHECK_FALSE(record->fresh(sample().fresh_until));
  CHECK(encode(sample()).size() <= sample().out.size() + sample().err.size() + cache_record_overhead);
  CacheRecord placeholder;
  placeholder.build = "fedcba9876543210";
  placeholder.placeholder = true;
  CHECK(decode_cache_record(encode(placeholder))->placeholder);
  CHECK_FALSE(decode_cache_record(encode(placeholder))->fresh(WallTime{}));
}

TEST_CASE("cache records: a changed, cut or lengthened value is no record") {
  const std::string good = encode(sample());
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string changed = good;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    CAPTURE(i);
    CHECK_FALSE(decode_cache_record(changed).has_value());
    CHECK_FALSE(decode_cache_record(good.substr(0, i)).has_value());
  }
  CHECK_FALSE(decode_cache_record(good + "x").has_value());
  for (const char* foreign : {"", "42", "K1", "K1 *0", "\n", "P1 a b *00000000\n"})
    CHECK_FALSE(decode_cache_record(foreign).has_value());
}

}  // namespace mcds::cache_record_test
