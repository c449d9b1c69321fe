#include "common/base/json_reader.hpp"

#include <doctest/doctest.h>

#include <string>

#include "common/base/errors.hpp"
#include "common/base/json.hpp"
#include "common/structures/eventlog/format.hpp"
#include "common/structures/lock/value.hpp"

namespace mcds::json_reader_test {

using namespace std::string_literals;

namespace {

std::string nested(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

}  // namespace

TEST_CASE("json gate: one value of RFC 8259, whatever its kind") {
  for (const char* good :
       {"1", "-0", "0.5e-3", "1E+2", "true", "null", "\"\"", "[]", "{}", " [ 1 , {\"a\" : [ ] } ]\r\n",
        R"("\u0000\ud83d\ude00\/")", "\"\xf0\x9f\x98\x80\"", R"({"a":1,"a":2})", "12345678901234567890123"}) {
    CAPTURE(good);
    CHECK(is_json(good));
    CHECK(compact_json(good));
  }
  for (const char* bad : {"",
                          " ",
                          "01",
                          "1.",
                          ".5",
                          "1e",
                          "+1",
                          "-",
                          "NaN",
                          "tru",
                          "truex",
                          "[1,]",
                          "[,1]",
                          "[1 2]",
                          "{\"a\"}",
                          "{\"a\":}",
                          "{1:2}",
                          "{\"a\":1,}",
                          "[}",
                          "{]",
                          "]",
                          "[",
                          "{",
                          "\"",
                          "\"\\q\"",
                          "\"\\u12g4\"",
                          R"("\ud800")",
                          R"("\udc00")",
                          R"("\ud800\u0041")",
                          "\"a\nb\"",
                          "1 2",
                          "1]",
                          "1} {\"id\":\"forged\"",
                          "\xef\xbb\xbf"
                          "1",
                          "\"\xff\"",
                          "\"\xc3\"",
                          "'x'",
                          "1e400",
                          "// 1"}) {
    CAPTURE(bad);
    CHECK_FALSE(is_json(bad));
    CHECK_FALSE(compact_json(bad));
    CHECK_FALSE(json_elements(bad));
    CHECK_FALSE(json_members(bad));
    CHECK_FALSE(json_unquote(bad));
  }
}

TEST_CASE("json gate: a NUL byte ends no text early") {
  for (const std::string& bad :
       {"1\0 \"\\q\""s, "{}\0 \"\\q\""s, "{}\0,\"held\":false"s, "\"a\0b\""s, "1\0"s, "\0"s}) {
    CAPTURE(bad);
    CHECK_FALSE(is_json(bad));
    CHECK_FALSE(compact_json(bad));
    CHECK_FALSE(json_field(bad, "held"));
    CHECK_THROWS_AS(canonical_json(bad), Failure);
  }
  CHECK(LockValue::parse("0123456789abcdef {}\0 \"\\q\""s).holder.empty());
  std::string line;
  CHECK_THROWS_AS(append_event_line(line, EventId{}, "1\0 \"\\q\""s, EventData::json), Failure);
}

TEST_CASE("json gate: nesting is bounded before anything recurses") {
  CHECK(is_json(nested(deepest_json)));
  CHECK_FALSE(is_json(nested(deepest_json + 1)));
  CHECK_FALSE(compact_json(nested(100000)));
  CHECK_FALSE(json_elements("[" + nested(100000) + "]"));
  std::string members;
  for (std::size_t i = 0; i < 100000; ++i) members += "{\"a\":";
  CHECK_FALSE(is_json(members + "1" + std::string(100000, '}')));
}

TEST_CASE("json gate: members and elements are told as compact text, numbers with their digits") {
  const auto members = json_members(R"( {"a" : [1, {"b":"x\u0041"}], "n" : 1.00, "a" : "last"} )");
  REQUIRE(members);
  REQUIRE(members->size() == 3);
  CHECK((*members)[0].name == "a");
  CHECK((*members)[0].value == R"([1,{"b":"xA"}])");
  CHECK((*members)[1].value == "1.00");
  CHECK(json_field(R"({"a":1,"a":"last"})", "a") == "\"last\"");
  CHECK(json_elements(" [ 1 , [ 2 ] , \"\\u000a\" ] ") == std::vector<std::string>{"1", "[2]", "\"\\n\""});
  CHECK(json_elements("[]") == std::vector<std::string>{});
  CHECK_FALSE(json_elements("{}"));
  CHECK_FALSE(json_members("[]"));
  CHECK(json_unquote(R"("\ud83d\ude00\b\"")") == "\xf0\x9f\x98\x80\b\"");
}

TEST_CASE("json gate: what may be printed as it is has no white space between its tokens") {
  CHECK(is_compact_json(R"({"a":[1," "]})"));
  CHECK_FALSE(is_compact_json("{\"a\":\r1}"));
  CHECK_FALSE(is_compact_json(" 1"));
  CHECK_FALSE(is_compact_json("NaN"));
}

}  // namespace mcds::json_reader_test
