#include "common/primitives/key_names.hpp"

#include <doctest/doctest.h>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "tests/support/world.hpp"

namespace mcds::key_names_test {

namespace {

const std::string base = "table:blocked:v";

struct World : test::World {
  Context with_prefix(const std::string& key_prefix) { return {memory, clock, random, key_prefix}; }
};

}  // namespace

TEST_CASE("key names: an element's bytes stand in its key, unsafe ones encoded, too many digested") {
  CHECK(element_key(base, "10.1.2.3") == base + ":10.1.2.3");
  CHECK(element_key(base, "a b:c") == base + ":a%20b%3ac");
  const std::string longest(250 - base.size() - 1, 'x');
  CHECK(element_key(base, longest) == base + ':' + longest);
  CHECK(element_key(base, longest + 'x') == base + ":~" + digest128(longest + 'x'));
}

TEST_CASE("key names: an element is read back from its key, whatever its bytes, unless it is digested") {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string element{static_cast<char>(first), static_cast<char>(second)};
      const std::string part = element_key(base, element).substr(base.size() + 1);
      CHECK(element_of(part) == (first == '~' ? std::nullopt : std::optional(element)));
      CHECK(structure_named("table:a:v:b:v:" + part)->name == "a:v:b");
    }
  }
  CHECK(element_of(element_key(base, std::string(9000, 'x')).substr(base.size() + 1)) == std::nullopt);
}

TEST_CASE("key names: no element takes the key of another's digest") {
  const std::string large(9000, 'x');
  CHECK(element_key(base, '~' + digest128(large)) != element_key(base, large));
  CHECK(element_key(base, "~a") == base + ":~" + digest128("~a"));
  CHECK(element_key(base, "a~") == base + ":a~");
}

TEST_CASE("key names: a name is not empty, has no unsafe bytes, and leaves room for what a structure adds") {
  World world;
  CHECK(structure_key(world.with_prefix("app:"), "table", "blocked") == "app:table:blocked");
  CHECK_THROWS_AS(structure_key(world.context, "table", ""), InvalidInput);
  CHECK_THROWS_AS(structure_key(world.context, "table", "a b"), InvalidInput);
  CHECK_THROWS_AS(structure_key(world.context, "table", "a\x7f"), InvalidInput);
  const std::string longest(max_structure_key_size - std::string("app:table:").size(), 'x');
  CHECK(structure_key(world.with_prefix("app:"), "table", longest).size() == max_structure_key_size);
  CHECK_THROWS_AS(structure_key(world.with_prefix("app:"), "table", longest + 'x'), InvalidInput);
}

TEST_CASE("key names: a whole key has 1 to 250 bytes with its namespace") {
  CHECK(whole_key("app:", "price:44") == "app:price:44");
  CHECK(whole_key("app:", std::string(246, 'x')).size() == 250);
  CHECK_THROWS_AS(whole_key("app:", std::string(247, 'x')), InvalidInput);
  CHECK_THROWS_AS(whole_key("app:", ""), InvalidInput);
  CHECK_THROWS_AS(whole_key("", "a\n"), InvalidInput);
  CHECK_NOTHROW(check_key_prefix("app:"));
  CHECK_THROWS_AS(check_key_prefix("my app:"), InvalidInput);
}

}  // namespace mcds::key_names_test
