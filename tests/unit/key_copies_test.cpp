#include <doctest/doctest.h>

#include "common/cluster/keys/probe.hpp"

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

const std::vector<std::size_t> first{0}, first_two{0, 1};

std::string verdict(std::string_view letters, const std::vector<std::size_t>& holders = first) {
  return name_of(verdict_of(copies_of(letters), copies_on(holders)));
}

std::size_t strays(std::string_view letters, bool even_last = false,
                   const std::vector<std::size_t>& holders = first) {
  return strays_of(copies_of(letters), copies_on(holders), even_last).size();
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
  CHECK(verdict_of(copies, copies_on(first)) == Verdict::divergent);
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

TEST_CASE("key copies: with two copies of each key both servers are its holders") {
  CHECK(verdict("aa-", first_two) == "ok");
  CHECK(verdict("a--", first_two) == "incomplete");
  CHECK(verdict("-a-", first_two) == "incomplete");
  CHECK(verdict("aaa", first_two) == "duplicate");
  CHECK(verdict("a-a", first_two) == "duplicate");
  CHECK(verdict("--a", first_two) == "misplaced");
  CHECK(verdict("ab-", first_two) == "divergent");
  CHECK(verdict("a?-", first_two) == "unreachable");
  CHECK(verdict("-?a", first_two) == "unreachable");
  CHECK(verdict("---", first_two) == "missing");
  CHECK(strays("aaa", false, first_two) == 1);
  CHECK(strays("-?a", true, first_two) == 0);
  CHECK(strays("a?a", false, first_two) == 1);
}
