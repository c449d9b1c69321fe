#include <doctest/doctest.h>

#include <algorithm>

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
  return strays_of(copies_of(letters), copies_on(holders), even_last).equal.size();
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
    "asked about, nor another value") {
  CHECK(strays("aaa") == 2);
  CHECK(strays("aab") == 1);
  CHECK(strays("ab-") == 0);
  CHECK(strays("a--") == 0);
  CHECK(strays("-aa") == 0);
  CHECK(strays("-aa", true) == 2);
  CHECK(strays("-ab", true) == 0);
  CHECK(strays("?aa", true) == 0);
  CHECK(strays("a?a") == 1);
  CHECK(strays("a?b") == 0);
  CHECK(strays_of(copies_of("abc"), copies_on(first), false).different == std::vector<std::size_t>{1, 2});
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
  CHECK(strays("aba", false, first_two) == 0);
}

namespace {

// Keys of three servers, owned by the first; or as many of the second, which is what follows.
PruneEvidence::Doubt doubt_about(std::initializer_list<std::pair<const char*, int>> keys,
                                 bool even_replicas = false) {
  PruneEvidence evidence;
  for (const auto& [letters, count] : keys) {
    for (int i = 0; i < count; ++i) {
      // Every other key is the second server's.
      std::string of_server = letters;
      if (i % 2 != 0) std::ranges::rotate(of_server, of_server.end() - 1);
      evidence.add("key", copies_of(of_server), copies_on({static_cast<std::size_t>(i % 2)}));
    }
  }
  return evidence.doubt(even_replicas);
}

}  // namespace

TEST_CASE("key copies: nothing is removed on the word of a profile that does not explain where keys are") {
  CHECK(doubt_about({{"a--", 95}, {"-a-", 5}}) == PruneEvidence::Doubt::none);
  CHECK(doubt_about({{"a--", 94}, {"-a-", 6}}) == PruneEvidence::Doubt::unexplained);
  CHECK(doubt_about({{"a--", 94}, {"-a-", 6}}, true) == PruneEvidence::Doubt::unexplained);
  CHECK(doubt_about({{"-a-", 1}}) == PruneEvidence::Doubt::unexplained);
  CHECK(doubt_about({{"---", 3}}) == PruneEvidence::Doubt::none);
}

TEST_CASE("key copies: a key whose server does not answer says nothing of the profile") {
  CHECK(doubt_about({{"?a-", 10}}) == PruneEvidence::Doubt::none);
}

TEST_CASE("key copies: equally many copies of most keys are taken for replication") {
  CHECK(doubt_about({{"aaa", 20}}) == PruneEvidence::Doubt::replicated);
  CHECK(doubt_about({{"aaa", 20}}, true) == PruneEvidence::Doubt::none);
  CHECK(doubt_about({{"aa-", 8}, {"-aa", 4}, {"a-a", 8}}) == PruneEvidence::Doubt::replicated);
  CHECK(doubt_about({{"aa-", 1}}) == PruneEvidence::Doubt::none);
  CHECK(doubt_about({{"aa-", 9}, {"a--", 11}}) == PruneEvidence::Doubt::none);
  // Where the client itself keeps as many, nothing is left over.
  PruneEvidence evidence;
  for (int i = 0; i < 20; ++i) evidence.add("key", copies_of("aa-"), copies_on(first_two));
  CHECK(evidence.doubt(false) == PruneEvidence::Doubt::none);
  // What clients left that went around the first server while it was away.
  PruneEvidence outage;
  for (int i = 0; i < 20; ++i) outage.add("key", copies_of("aa-"), copies_on(first));
  for (int i = 0; i < 18; ++i) outage.add("key", copies_of("-a-"), copies_on({1}));
  CHECK(outage.doubt(false) == PruneEvidence::Doubt::none);
  CHECK(outage.strays().size() == 20);
}
