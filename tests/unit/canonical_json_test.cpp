#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <string>

#include "common/base/errors.hpp"
#include "common/base/json_reader.hpp"

namespace mcds::canonical_json_test {

// The examples of RFC 8785, sections 3.2.2 and 3.2.3.
TEST_CASE("RFC 8785: the document of section 3.2.2") {
  const char* input = R"({
    "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
    "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
    "literals": [null, true, false]
  })";
  CHECK(canonical_json(input) ==
        R"({"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],)"
        "\"string\":\"\xe2\x82\xac$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}");
}

TEST_CASE("RFC 8785: members are sorted by UTF-16 code units (section 3.2.3)") {
  const char* input = R"({
    "\u20ac": "Euro Sign",
    "\r": "Carriage Return",
    "\ufb33": "Hebrew Letter Dalet With Dagesh",
    "1": "One",
    "\ud83d\ude00": "Emoji: Grinning Face",
    "\u0080": "Control",
    "\u00f6": "Latin Small Letter O With Diaeresis"
  })";
  CHECK(
      canonical_json(input) ==
      "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\xc2\x80\":\"Control\","
      "\"\xc3\xb6\":\"Latin Small Letter O With Diaeresis\",\"\xe2\x82\xac\":\"Euro Sign\","
      "\"\xf0\x9f\x98\x80\":\"Emoji: Grinning Face\",\"\xef\xac\xb3\":\"Hebrew Letter Dalet With Dagesh\"}");
}

// RFC 8785, appendix B: IEEE 754 bits and their ECMAScript text.
TEST_CASE("RFC 8785: numbers as ECMAScript prints them (appendix B)") {
  struct Sample {
    std::uint64_t bits;
    const char* text;
  };
  const Sample samples[] = {
      {0x0000000000000000, "0"},
      {0x8000000000000000, "0"},
      {0x0000000000000001, "5e-324"},
      {0x8000000000000001, "-5e-324"},
      {0x7fefffffffffffff, "1.7976931348623157e+308"},
      {0xffefffffffffffff, "-1.7976931348623157e+308"},
      {0x4340000000000000, "9007199254740992"},
      {0xc340000000000000, "-9007199254740992"},
      {0x4430000000000000, "295147905179352830000"},
      {0x44b52d02c7e14af5, "9.999999999999997e+22"},
      {0x44b52d02c7e14af6, "1e+23"},
      {0x44b52d02c7e14af7, "1.0000000000000001e+23"},
      {0x444b1ae4d6e2ef4e, "999999999999999700000"},
      {0x444b1ae4d6e2ef4f, "999999999999999900000"},
      {0x444b1ae4d6e2ef50, "1e+21"},
      {0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
      {0x3eb0c6f7a0b5ed8d, "0.000001"},
      {0x41b3de4355555553, "333333333.3333332"},
      {0x41b3de4355555554, "333333333.33333325"},
      {0x41b3de4355555555, "333333333.3333333"},
      {0x41b3de4355555556, "333333333.3333334"},
      {0x41b3de4355555557, "333333333.33333343"},
      {0xbecbf647612f3696, "-0.0000033333333333333333"},
      {0x43143ff3c1cb0959, "1424953923781206.2"},
  };
  for (const Sample& sample : samples) {
    char literal[64];
    std::snprintf(literal, sizeof literal, "%.17e", std::bit_cast<double>(sample.bits));
    CAPTURE(literal);
    CHECK(canonical_json(literal) == sample.text);
  }
}

TEST_CASE("order and spacing do not matter; types do") {
  CHECK(canonical_json(R"({"b":1,"a":[ 2 , {} ]})") == canonical_json(R"({ "a" : [2,{}], "b" : 1.0 })"));
  CHECK(canonical_json("{\"id\":1}") != canonical_json("{\"id\":\"1\"}"));
  CHECK(canonical_json(" \"x\" ") == "\"x\"");
  CHECK(canonical_json("-0") == "0");
  CHECK(canonical_json("9007199254740994") == "9007199254740994");
}

TEST_CASE("what has no canonical form is refused") {
  for (const char* bad : {"", "{", "NaN", "[1,]", "{\"a\":1,\"a\":2}", "{\"a\":1,\"\\u0061\":2}", "\"\xff\"",
                          "\"\\ud800\"", "1e400", "9007199254740993", "9007199254740993.0",
                          "18446744073709551617", "01", "1 2", "{a:1}", "'x'"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(canonical_json(bad), Failure);
  }
  CHECK(canonical_json("9007199254740992.0") == "9007199254740992");
  CHECK(canonical_json("-0.0") == "0");
  CHECK(canonical_json(std::string(128, '[') + std::string(128, ']')).size() == 256);
  CHECK_THROWS_AS(canonical_json(std::string(10000, '[') + std::string(10000, ']')), Failure);
}

TEST_CASE("valid JSON beyond a limit is not called invalid") {
  const auto why = [](const std::string& text) {
    return std::string(attempt([&] { return canonical_json(text); }).failure()->what());
  };
  CHECK(why("[1e400]").find("outside the range") != std::string::npos);
  CHECK(why(std::string(129, '[') + std::string(129, ']')).find("more than 128 deep") != std::string::npos);
  CHECK(why("[1e400").find("outside the range") != std::string::npos);
  CHECK(why("[1,").find("invalid JSON at byte") != std::string::npos);
}

}  // namespace mcds::canonical_json_test
