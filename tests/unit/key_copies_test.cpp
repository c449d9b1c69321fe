#include "common/structures/key_copies.hpp"

#include <doctest/doctest.h>

using namespace mcds;

namespace {

// One letter per server: `-` missing, `?` no answer, anything else a value.
KeyCopies copies_of(std::string_view letters) {
  KeyCopies copies;
  for (const char letter : letters) {
    KeyCopy copy{.server = copies.size()};
    copy.state = letter == '?'   ? KeyCopy::State::unanswered
                 : letter == '-' ? KeyCopy::State::missing
                                 : KeyCopy::State::found;
    copy.md5 = letter;
    copies.push_back(copy);
  }
  return copies;
}

std::string verdict(std::string_view letters) {
  return name_of(verdict_of(copies_of(letters), 0));
}

std::size_t strays(std::string_view letters, bool even_last = false) {
  return strays_of(copies_of(letters), 0, even_last).size();
}

}  // namespace

TEST_CASE("key copies: the verdict of every combination") {
  CHECK(verdict("a--") == "ok");
  CHECK(verdict("---") == "missing");
  CHECK(verdict("-a-") == "misplaced");
  CHECK(verdict("-aa") == "misplaced");
  CHECK(verdict("aa-") == "duplicate");
  CHECK(verdict("aaa") == "duplicate");
  CHECK(verdict("ab-") == "divergent");
  CHECK(verdict("-ab") == "divergent");
  CHECK(verdict("aab") == "divergent");
}

TEST_CASE("key copies: a server that does not answer is never taken for one that has no copy") {
  CHECK(verdict("a?-") == "unreachable");
  CHECK(verdict("-?-") == "unreachable");
  CHECK(verdict("?--") == "unreachable");
  CHECK(verdict("?a-") == "unreachable");
  CHECK(verdict("???") == "unreachable");
}

TEST_CASE("key copies: a problem that is seen counts although a server does not answer") {
  CHECK(verdict("ab?") == "divergent");
  CHECK(verdict("?ab") == "divergent");
  CHECK(verdict("aa?") == "duplicate");
  CHECK(verdict("-a?") == "misplaced");
}

TEST_CASE("key copies: equal bytes under different flags are different values") {
  KeyCopies copies = copies_of("aa");
  copies[1].flags = 1;
  CHECK(verdict_of(copies, 0) == Verdict::divergent);
}

TEST_CASE(
    "key copies: what is pruned is never the only copy unless asked, nor anything the owner could not be "
    "asked about") {
  CHECK(strays("aab") == 2);
  CHECK(strays("a--") == 0);
  CHECK(strays("-ab") == 0);
  CHECK(strays("-ab", true) == 2);
  CHECK(strays("?ab", true) == 0);
  CHECK(strays("a?b") == 1);
}
