#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/json.hpp"
#include "common/base/process.hpp"
#include "common/base/random.hpp"
#include "common/base/units.hpp"
#include "common/cluster/request.hpp"

namespace mcds::base_test {

using namespace std::chrono_literals;

TEST_CASE("durations: every documented form, and nothing else") {
  CHECK(parse_duration("250ms", "--ttl") == 250ms);
  CHECK(parse_duration("30s", "--ttl") == 30s);
  CHECK(parse_duration("1h30m", "--ttl") == 90min);
  CHECK(parse_duration("7d", "--ttl") == 168h);
  CHECK(parse_duration("45", "--ttl") == 45s);
  CHECK(parse_duration("0.5", "--ttl") == 500ms);
  for (const char* bad :
       {"", "-1", "5x", "s", "1h30", "1..5s", " 5", "5 ", "1e3", "inf", "999999999999d", "\xff"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_duration(bad, "--ttl"), InvalidInput);
  }
}

TEST_CASE("sizes are powers of 1024") {
  CHECK(parse_size("4096", "--max-bytes") == 4096);
  CHECK(parse_size("64k", "--max-bytes") == 65536);
  CHECK(parse_size("1M", "--max-bytes") == 1048576);
  for (const char* bad : {"", "k", "-1", "1.5M", "1MB", "99999999999999999999G"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_size(bad, "--max-bytes"), InvalidInput);
  }
}

TEST_CASE("times: a day and a minute are those of the local clock") {
  const char* before = std::getenv("TZ");
  const std::string kept = before == nullptr ? "" : before;
  setenv("TZ", "XST-3", 1);
  tzset();
  CHECK(format_time(parse_time("2026-11-21", {}, "--at")) == "2026-11-20T21:00:00.000Z");
  CHECK(format_time(parse_time("2026-11-21 23:00", {}, "--at")) == "2026-11-21T20:00:00.000Z");
  CHECK(format_time(parse_time("2026-11-21T23:00:30", {}, "--at")) == "2026-11-21T20:00:30.000Z");
  before == nullptr ? unsetenv("TZ") : setenv("TZ", kept.c_str(), 1);
  tzset();
}

TEST_CASE("times: milliseconds of Unix time are refused with a hint") {
  CHECK_THROWS_WITH_AS(
      parse_time("1795234133945", {}, "--first"),
      "--first: '1795234133945' is too large for a Unix time in seconds; are these milliseconds?",
      InvalidInput);
}

TEST_CASE("times: RFC 3339, @UNIX and 'that long ago' agree with what is printed") {
  const WallTime now{1795234133945ms};
  CHECK(format_time(now) == "2026-11-21T04:08:53.945Z");
  CHECK(format_time(WallTime{}) == "1970-01-01T00:00:00.000Z");
  CHECK(format_time(WallTime(951782400s)) == "2000-02-29T00:00:00.000Z");
  CHECK(format_time(WallTime(4107542399s + 999us)) == "2100-02-28T23:59:59.000Z");
  CHECK(parse_time("2026-11-21T04:08:53.945Z", now, "--at") == now);
  CHECK(parse_time("2026-11-21T05:08:53.945+01:00", now, "--at") == now);
  CHECK(parse_time("@1795234133.945", now, "--at") == now);
  CHECK(parse_time("1795234133.945", now, "--at") == now);
  CHECK(parse_time("100000000", now, "--at") == WallTime(100000000s));
  CHECK(parse_time("99999999", now, "--at") == now - 99999999s);
  CHECK(parse_time("5m", now, "--at") == now - 5min);
  for (const char* bad :
       {"", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-11-31", "2026-11-21 24:00",
        "2026-11-21 7:00", "2026-11-21Z", "@", "@-1", "now", "@1e9", "1795234133945", "@1795234133945"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_time(bad, now, "--at"), InvalidInput);
  }
}

TEST_CASE("UTF-8: overlong forms, surrogates and cut sequences are not UTF-8") {
  CHECK(is_utf8("grün \xf0\x9f\x98\x80"));
  for (const char* bad : {"\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\xff", "\x80"})
    CHECK_FALSE(is_utf8(bad));
}

TEST_CASE("percent-encoding round trips every byte and leaves no separator") {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  const std::string encoded = percent_encode(all);
  CHECK(percent_decode(encoded) == all);
  CHECK(encoded.find_first_of(": \r\n") == std::string::npos);
  CHECK_FALSE(percent_decode("%4").has_value());
  CHECK_FALSE(percent_decode("%zz").has_value());
}

TEST_CASE("base64 and hex round trip; nonsense is refused") {
  const std::string bytes("\0\xff\x10 abc", 7);
  CHECK(parse_base64(base64(bytes)) == bytes);
  CHECK_FALSE(parse_base64("a*b=").has_value());
  CHECK(parse_hex64(hex64(0x0123456789abcdef)) == 0x0123456789abcdef);
  CHECK_FALSE(parse_hex64("123").has_value());
  CHECK(parse_u64("18446744073709551615") == UINT64_MAX);
  for (const char* bad : {"", "-1", "+1", " 1", "1 ", "18446744073709551616", "0x10"})
    CHECK_FALSE(parse_u64(bad).has_value());
}

TEST_CASE("JSON: bytes that are not UTF-8 move to a _b64 field; escapes survive a round trip") {
  JsonObject object;
  object.bytes("value", "a\"b\n\x01")
      .bytes("key", "\xff")
      .number("n", UINT64_MAX)
      .real("x", 0.5)
      .boolean("ok", true);
  CHECK(object.text() ==
        R"({"value":"a\"b\n\u0001","key_b64":"/w==","n":18446744073709551615,"x":0.5,"ok":true})");
  CHECK(json_unquote(json_quote("tab\tnul\x01 ü")) == "tab\tnul\x01 ü");
  CHECK(compact_json(" { \"b\" : 1 , \"a\" : [ 2 ] } ") == R"({"b":1,"a":[2]})");
  CHECK_FALSE(compact_json("{\"a\":}").has_value());
  CHECK(compact_json(" [ 12345678901234567890123 , 1.0, -0, 1E2 ] ") ==
        "[12345678901234567890123,1.0,-0,1E2]");
  CHECK(compact_json(R"("\u00e4 \/\\ \" \u0001")") == "\"ä /\\\\ \\\" \\u0001\"");
  using Texts = std::vector<std::string>;
  CHECK(json_elements(" [ ] ") == Texts{});
  CHECK(json_elements(R"([1, "a,]\\", [2, [3]], {"x": [4, 5]}, null])") ==
        Texts{"1", R"("a,]\\")", "[2,[3]]", R"({"x":[4,5]})", "null"});
  for (const char* text : {"{\"a\":[1]}", "1", "[1", "", "[1],2"})
    CHECK_FALSE(json_elements(text).has_value());
  CHECK(json_field(R"({"host":"web3","pid":7})", "host") == "\"web3\"");
}

TEST_CASE("what JSON holds as it is: every byte, at every place of a word and behind it") {
  for (std::size_t size = 1; size <= 17; ++size) {
    for (std::size_t place = 0; place < size; ++place) {
      for (unsigned byte = 0; byte < 256; ++byte) {
        std::string text(size, 'a');
        text[place] = static_cast<char>(byte);
        const bool plain = byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
        REQUIRE(is_plain_json(text) == plain);
      }
    }
  }
  CHECK(is_plain_json(""));
}

TEST_CASE(
    "exptimes are relative up to 30 days, absolute beyond, and never in the past or beyond the server's "
    "range") {
  const WallTime now{1795234133s};
  CHECK(Exptime::after(1ms, now).wire() == 1);
  CHECK(Exptime::after(1500ms, now).wire() == 2);
  CHECK(Exptime::after(720h, now).wire() == 2592000);
  CHECK(Exptime::after(720h + 1s, now).wire() == 1795234133 + 2592001);
  CHECK(Exptime::at(now - 5s, now).wire() == 1);
  CHECK_THROWS_AS(Exptime::after(24h * 365 * 20, now), InvalidInput);
}

TEST_CASE(
    "JSON: the bytes of a field are read as they were written, and a number that is not known is null") {
  const std::string text = JsonObject("plain", "a\"b")
                               .bytes("odd", "\xff\n")
                               .number_or_null("known", 7)
                               .number_or_null("not", {})
                               .text();
  CHECK(json_bytes(text, "plain") == "a\"b");
  CHECK(json_bytes(text, "odd") == "\xff\n");
  CHECK(json_bytes(text, "known") == std::nullopt);
  CHECK(json_bytes(text, "absent") == std::nullopt);
  CHECK(json_field(text, "known") == "7");
  CHECK(json_field(text, "not") == "null");
}

TEST_CASE("descriptors: what is written comes whole, and the end when its descriptor is gone") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const Descriptor from(ends[0]);
  const std::string text(60'000, 'x');
  {
    Descriptor into(ends[1]);
    const Descriptor moved = std::move(into);
    CHECK(write_all(moved, text));
  }
  std::string read_back(text.size() + 1, ' ');
  std::size_t got = 0;
  while (const ssize_t size = read(from, read_back.data() + got, read_back.size() - got))
    got += static_cast<std::size_t>(size);
  CHECK(got == text.size());
  CHECK(read_back.starts_with(text));
  CHECK(!write_all(-1, "x"));
}

}  // namespace mcds::base_test
