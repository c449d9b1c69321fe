#include "common/base/text.hpp"

#include <doctest/doctest.h>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/units.hpp"

namespace mcds::text_test {

TEST_CASE("visible text: no control reaches a terminal, characters stay") {
  CHECK(visible("grün \xf0\x9f\x98\x80") == "grün \xf0\x9f\x98\x80");
  CHECK(visible("\x1b]52;c;aGk=\x07") == "\\u001b]52;c;aGk=\\u0007");
  CHECK(visible("a\nb\tc\r\x7f") == "a\\nb\\tc\\r\\u007f");
  CHECK(visible("\xc2\x9b"
                "31m\xc2\xa0") == "\\u009b31m\xc2\xa0");
  CHECK(visible("ok \xff\xe2\x82 \x1b") == "ok \\xff\\xe2\\x82 \\u001b");
  for (int byte = 0; byte < 256; ++byte) {
    const std::string shown = visible(std::string("x") + static_cast<char>(byte) + "y");
    CHECK(is_utf8(shown));
    CHECK(is_visible(shown));
  }
}

TEST_CASE("what changes the direction of text does not reach a terminal") {
  const std::string right_to_left = "\xe2\x80\xae";
  CHECK(visible("user" + right_to_left + "nimda") == "user\\u202enimda");
  for (const char* control :
       {"\xd8\x9c", "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xa8", "\xe2\x80\xaa", "\xe2\x80\xab",
        "\xe2\x80\xac", "\xe2\x80\xad", "\xe2\x81\xa6", "\xe2\x81\xa7", "\xe2\x81\xa8", "\xe2\x81\xa9"}) {
    CHECK_FALSE(is_visible(control));
    CHECK(visible(control).starts_with("\\u"));
    std::string json;
    append_visible_json(json, '"' + std::string(control) + "x\"");
    CHECK(json == '"' + visible(control) + "x\"");
  }
  for (const char* letter : {"\xd8\xa7", "\xe2\x82\xac", "\xe2\x80\xa6", "\xe2\x81\xa4", "\xd7\x90"}) {
    CHECK(visible(letter) == letter);
    std::string json;
    append_visible_json(json, letter);
    CHECK(json == letter);
  }
}

TEST_CASE("visible JSON: DEL and C1 are escaped, nothing else is touched") {
  std::string out = "[";
  append_visible_json(out, "\"\x7f \xc2\x9b \xc2\xa9 \\u001b\"");
  CHECK(out == "[\"\\u007f \\u009b \xc2\xa9 \\u001b\"");
}

TEST_CASE("a beginning ends with a whole character") {
  CHECK(beginning("abc", 2) == "ab");
  CHECK(beginning("a\xc3\xbc", 2) == "a");
  CHECK(beginning("\xf0\x9f\x98\x80", 3).empty());
  for (const std::string_view character : {"\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x98\x80"}) {
    for (std::size_t before = 55; before < 61; ++before) {
      const std::string text = std::string(before, 'x') + std::string(character) + "y";
      CHECK_THROWS_AS(parse_duration(text, "--ttl"), InvalidInput);
      CHECK_THROWS_AS(parse_size(text, "--max-bytes"), InvalidInput);
      CHECK_THROWS_AS(parse_time(text, WallTime{}, "--at"), InvalidInput);
      CHECK_THROWS_AS(parse_share(text, "--max-moved"), InvalidInput);
    }
  }
}

TEST_CASE("quoting is total: bytes that are no characters are replaced") {
  CHECK(json_quote("a\xff\"\n") == "\"a\xef\xbf\xbd\\\"\\n\"");
}

TEST_CASE("sizes: what does not fit into 64 bits does not wrap") {
  for (const char* bad : {"17179869184G", "18014398509481984k", "1048577G", "1125899906842625"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_size(bad, "--max-bytes"), InvalidInput);
  }
  CHECK(parse_size("1048576G", "--max-bytes") == std::uint64_t{1} << 50);
}

TEST_CASE("numbers: nan and inf are none") {
  for (const char* bad : {"nan", "inf", "-inf", "infinity"}) {
    CHECK_FALSE(parse_double(bad));
    CHECK_THROWS_AS(parse_time(std::string("@") + bad, WallTime{}, "--at"), InvalidInput);
  }
}

TEST_CASE("times beyond the year 9999 are printed as its end") {
  CHECK(format_time(WallTime::max()) == "9999-12-31T23:59:59.000Z");
  CHECK(format_time(WallTime::min()) == "0000-01-01T00:00:00.000Z");
}

TEST_CASE("text: a word for a shell is bare or in quotes") {
  CHECK(shell_word("/var/lib/kept-1.saved") == "/var/lib/kept-1.saved");
  CHECK(shell_word("") == "''");
  CHECK(shell_word("a b;$(c)") == "'a b;$(c)'");
  CHECK(shell_word("it's") == "'it'\\''s'");
}

}  // namespace mcds::text_test
