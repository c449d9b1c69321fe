// Values as their clients read them, and hostile bytes. Tests with real clients:
// tests/interop/values_test.py.
#include "common/values/values.hpp"

#include <doctest/doctest.h>

#include "common/base/bytes.hpp"
#include "common/base/json.hpp"

namespace mcds::values_test {

namespace {

using namespace std::literals;

constexpr std::size_t enough = 1 << 20;

DecodedValue decoded(std::string_view format, std::uint32_t flags, std::string_view bytes,
                     std::size_t max_bytes = enough) {
  const ValueFormat* found = value_format_named(format);
  REQUIRE(found != nullptr);
  return decode_value(*found, flags, bytes, max_bytes);
}

std::string json(std::string_view format, std::uint32_t flags, std::string_view bytes) {
  const DecodedValue value = decoded(format, flags, bytes);
  CHECK(value.problem == "");
  return value.json;
}

std::string problem(std::string_view format, std::uint32_t flags, std::string_view bytes,
                    std::size_t max_bytes = enough) {
  return decoded(format, flags, bytes, max_bytes).problem;
}

std::string bytes_of(std::string_view base64) {
  return *parse_base64(base64);
}

// Real values that use every feature of their formats, each with its format and flags.
struct Example {
  const char* format;
  std::uint32_t flags;
  std::string bytes;
};
std::vector<Example> examples() {
  return {
      {"php-memcached", 4,
       "a:4:{i:0;s:1:\"a\";i:1;O:1:\"P\":2:{s:4:\"\0P\0x\";i:5;s:1:\"y\";r:1;}i:2;d:-1.5;i:3;C:1:\"C\":2:{ab}}"s},
      {"php-memcached", 5,
       bytes_of("AAAAAhQCEQFhFAgGAAYBBgEJASwGAgoAARFwBgMMP/"
                "gAAAAAAAAGBAUGBQAGBg4ABgcRAXgRAW8XC0FycmF5T2JqZWN0FAQGAAYABgEUAQYABgEGAhQABgMA")},
      {"php-memcached", 0x50, bytes_of("pwEAAAJhYmPgbAIDeHl6ceD9AOAZAAJxcXE=")},
      {"pymemcache", 1,
       "\x80\4}(\x8c\1a\x94]\x94(K\1J\xff\xff\xff\xffG?\xf8\0\0\0\0\0\0h\1e\x8c\1s\x94\x8f(K\3\x90\x8c\1o\x94\x8c\1m\x8c\1C\x93)\x81}(h\0h\1ubu."s},
      {"pymemcache", 1,
       "(lp0\nI1\naL5L\naF1.5\naS'x\\x41'\np1\naVu\\u00e9\nag1\nacos\nsystem\n(S'touch'\ntRa(dp2\nS'k'"
       "\nNsa."},
      {"dalli", 1, "\4\10{\7I\"\6a\6:\6ET[\10i\6f\0101.5@\6:\6so:\6P\6:\7@xi\2\1\1"s},
      {"rails", 1, bytes_of("BAgiMAARAQAAAAAAAPg/AgAAAHYxBAh7BkkiBmEGOgZFVFsHaQZJIgfDqQY7AFQ=")},
      {"rails", 1, bytes_of("BAgiNQARgQAAAAAAAPC//////3icY+GoZvNUYktks2JzDYlmzwRy2A+vZLNmCAEAQeAFgw==")},
      {"php-session", 0, "u|a:1:{s:2:\"id\";i:5;}n|i:1;"},
      {"node-memcached", 2, "{\"a\":[1,2]}"},
  };
}

std::string nested(const std::string& open, std::size_t depth) {
  std::string text;
  for (std::size_t i = 0; i < depth; ++i) text += open;
  return text;
}

}  // namespace

TEST_CASE("The same flag is another type to each client") {
  CHECK(json("pymemcache", 2, "1") == "1");
  CHECK(json("pylibmc", 2, "1") == "true");
  CHECK(json("php-memcached", 2, "1") == "1");
  CHECK(json("node-memcached", 2, "[1, 2]") == "[1,2]");
  CHECK(problem("dalli", 2, "abc").starts_with("flags 2 mean zlib for dalli: not the compressed data"));
  CHECK(json("pymemcache", 16, "a") == "\"a\"");
  CHECK(json("php-memcached", (9U << 16) | 1, "-5") == "-5");  // the upper half belongs to the application
  CHECK(json("php-memcached", 3, "") == "false");
  CHECK(json("php-memcached", 2, "-1.0e+300") == "-1e+300");
  CHECK(json("pymemcache", 2, "7  ") == "7");
  CHECK(json("python-memcached", 2, "18446744073709551616") == R"({"@number":"18446744073709551616"})");
  CHECK(json("spymemcached", 0x200, "\xff\xff\xff\xfb") == "-5");
  CHECK(json("spymemcached", 0x200, "") == "0");
}

TEST_CASE("What JSON does not have is told from what it has") {
  CHECK(json("raw", 0, "\xff\0"sv) == R"({"@b64":"/wA="})");
  CHECK(json("php-memcached", 4, "a:2:{s:2:\"@a\";d:INF;s:2:\"\xff\xfe\";d:NAN;}") ==
        R"({"@@a":{"@number":"Infinity"},"@b64://4=":{"@number":"NaN"}})");
  CHECK(json("php-memcached", 6, R"({"@a":1})") == R"({"@@a":1})");
  CHECK(json("node-memcached", 4, "\xc3\xbf\\\r\xc2\x80") == R"({"@b64":"/w2A"})");
  CHECK(json("node-memcached", 0, "a\\\nb\\c") == R"("a\nb\\c")");
}

TEST_CASE("Each format is read") {
  const std::vector<Example> all = examples();
  const char* expected[] = {
      R"(["a",{"@class":"P","x":5,"y":{"@ref":1}},-1.5,{"@class":"C","@data":"ab"}])",
      R"({"a":[1,-300,70000,1.5,true,null,"a","x"],"o":{"@class":"ArrayObject","0":0,"1":[1],"2":[],"3":null}})",
      nullptr,
      R"({"a":[1,-1,1.5,{"@ref":2}],"s":{"@set":[3]},"o":{"@class":"m.C","a":{"@ref":2}}})",
      R"([1,5,1.5,"xA","ué","xA",{"@global":"os.system","args":["touch"]},{"k":null}])",
      R"({"a":[1,1.5,"a"],"s":{"@class":"P","x":257}})",
      R"({"a":[1,"é"]})",
      R"({"a":[1,"é"]})",
      R"({"u":{"id":5},"n":1})",
      R"({"a":[1,2]})",
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(i);
    const std::string text = json(all[i].format, all[i].flags, all[i].bytes);
    if (expected[i] != nullptr) CHECK(text == expected[i]);
    CHECK(is_compact_json(text));
  }
  std::string repeated;
  for (int i = 0; i < 40; ++i) repeated += "abc";
  CHECK(json("php-memcached", 0x50, all[2].bytes) == '"' + repeated + "xyz" + std::string(300, 'q') + '"');
  CHECK(json("rails", 1, bytes_of("BAgiGgARAgAAAAAAAPC//////25hw692ZQ==")) == "\"naïve\"");
  CHECK(json("rails", 1, bytes_of("BAgiJwAECFsHewZJIgZhBjoGRVRbB2kGSSIHw6kGOwBUZggxLjU=")) ==
        R"({"a":[1,"é"]})");
  // A link to a Regexp, which has its number before its encoding has one.
  CHECK(json("dalli", 1, bytes_of("BAhbB0kvB6SiEAY6DWVuY29kaW5nIgtFVUMtSlBABg==")) ==
        R"([{"@regexp":{"@b64":"pKI="}},{"@ref":2}])");
  CHECK(decoded("rails", 1, bytes_of("BAgiKQF4nGPhiGarZvNUYktks2JzDYlmzwRy2A+vZLNmCAEAS84F5A==")).encoding ==
        std::vector<std::string>{"marshal", "rails-7.0", "zlib", "marshal"});
}

TEST_CASE("What is cut off at any byte is a problem, named with its place") {
  for (const Example& example : examples()) {
    for (std::size_t size = 0; size < example.bytes.size(); ++size) {
      const DecodedValue value = decoded(example.format, example.flags, example.bytes.substr(0, size));
      CAPTURE(example.format);
      CAPTURE(size);
      CHECK((!value.problem.empty() || example.format == "php-session"sv || example.format == "rails"sv));
      CHECK((value.json.empty() || is_compact_json(value.json)));
    }
  }
  CHECK(problem("php-memcached", 6, R"({"a":[1,)") ==
        "flags 6 mean json for php-memcached: the JSON is broken at byte 8");
  CHECK(problem("php-memcached", 4, "i:5;x").ends_with("at byte 4"));
  CHECK(problem("php-memcached", 7, "\x81").starts_with("msgpack is named"));
  CHECK(problem("spymemcached", 1, "\xac\xed\0\5sr\0\3a.B"sv) ==
        "java, of an object of \"a.B\", is named, not read");
}

TEST_CASE("Flags and bytes that disagree are named, and what the bytes are is shown") {
  const DecodedValue value = decoded("dalli", 1, "a:0:{}");
  CHECK(value.json == "[]");
  CHECK(value.guessed);
  CHECK(value.problem.starts_with("flags 1 mean marshal for dalli: "));
  CHECK(problem("pymemcache", 0, "\4\10T") ==
        "the flags mean bytes, but the value begins as rails does; --decode auto shows it");
  CHECK(decoded("auto", 0, bytes_of("eJxLtDK0qs60MrAutjK2UkpMSlayrgUAPEwFzA==")).encoding ==
        std::vector<std::string>{"zlib", "php"});
}

TEST_CASE("A value that claims much takes nothing") {
  const std::string huge = "\xff\xff\xff\xff";
  for (const std::uint32_t flags : {0x50U, 0x30U, 0x90U})
    CHECK(problem("php-memcached", flags, huge + "x").find("longer than --max-bytes") != std::string::npos);
  CHECK(!problem("php-memcached", 4, "a:4294967295:{").empty());
  CHECK(!problem("php-memcached", 4, "s:18446744073709551615:\"a\";").empty());
  CHECK(!problem("php-memcached", 5, "\0\0\0\2\x16" + huge).empty());
  CHECK(!problem("php-memcached", 5, "\0\0\0\2\x13"s + huge).empty());
  CHECK(!problem("pymemcache", 1, "\x80\4\x8d\xff\xff\xff\xff\xff\xff\xff\x7f").empty());
  CHECK(!problem("pymemcache", 1, "\x8b" + huge).empty());
  CHECK(!problem("dalli", 1, "\4\10[\4\xff\xff\xff\x7f").empty());
  CHECK(problem("auto", 0, std::string(10000, ' '), 1000).find("--max-bytes") != std::string::npos);
}

TEST_CASE("What refers to itself, and what is deep, ends") {
  CHECK(json("pymemcache", 1, "]\x94h\0a."sv) == R"([{"@ref":1}])");
  CHECK(json("dalli", 1, "\4\10[\6@\0"sv) == R"([{"@ref":1}])");
  CHECK(json("php-memcached", 4, "a:1:{i:0;R:1;}") == R"([{"@ref":1}])");
  CHECK(problem("pymemcache", 1, nested("]", 5000) + nested("a", 4999) + ".").find("nested deeper") !=
        std::string::npos);
  CHECK(problem("php-memcached", 4, nested("a:1:{i:0;", 5000)).find("nested too deep") != std::string::npos);
  CHECK(problem("php-memcached", 5, "\0\0\0\2"s + nested("\x14\1\6\0"s, 5000)).find("nested too deep") !=
        std::string::npos);
  CHECK(problem("dalli", 1, "\4\10" + nested("[\6", 5000)).find("nested too deep") != std::string::npos);
  CHECK(problem("dalli", 1, "\4\10:" + nested("I", 5000)) != "");
  CHECK(problem("php-memcached", 4, "r:1;").find("a reference to nothing") != std::string::npos);
  CHECK(problem("pymemcache", 1, "](K\1K\2K\3e)R.").find("a call of no function") != std::string::npos);
  // Nested names double their quotes at each level.
  CHECK(problem("pymemcache", 1, nested("}", 60) + "NNs" + nested("Ns", 59) + ".").find("--max-bytes") !=
        std::string::npos);
  // The same string is referenced many times.
  CHECK(problem("pymemcache", 1, "](U\xc8" + std::string(200, 'x') + "\x94" + nested("h\0"s, 20000) + "e.")
            .find("--max-bytes") != std::string::npos);
}

}  // namespace mcds::values_test
