#include <doctest/doctest.h>

#include <algorithm>

#include "common/cluster/keys/probe.hpp"

using namespace mcds;

namespace {

// Returns copies by one letter per server: `-` missing, `?` no answer, any other letter a value.
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

std::size_t not_on_owner(std::string_view letters, bool even_last = false,
                         const std::vector<std::size_t>& holders = first) {
  return find_not_on_owner(copies_of(letters), copies_on(holders), even_last).equal.size();
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
  CHECK(not_on_owner("aaa") == 2);
  CHECK(not_on_owner("aab") == 1);
  CHECK(not_on_owner("ab-") == 0);
  CHECK(not_on_owner("a--") == 0);
  CHECK(not_on_owner("-aa") == 0);
  CHECK(not_on_owner("-aa", true) == 2);
  CHECK(not_on_owner("-ab", true) == 0);
  CHECK(not_on_owner("?aa", true) == 0);
  CHECK(not_on_owner("a?a") == 1);
  CHECK(not_on_owner("a?b") == 0);
  CHECK(find_not_on_owner(copies_of("abc"), copies_on(first), false).different ==
        std::vector<std::size_t>{1, 2});
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
  CHECK(not_on_owner("aaa", false, first_two) == 1);
  CHECK(not_on_owner("-?a", true, first_two) == 0);
  CHECK(not_on_owner("a?a", false, first_two) == 1);
  CHECK(not_on_owner("aba", false, first_two) == 0);
}

namespace {

// Returns why keys of three servers are not pruned. Each letter string begins with the owner, which is the
// first server for half of the keys, and the second for the others.
PruneEvidence::PruneRefusal refusal_for(std::initializer_list<std::pair<const char*, int>> keys,
                                        bool even_replicas = false) {
  PruneEvidence evidence;
  for (const auto& [letters, count] : keys) {
    for (int i = 0; i < count; ++i) {
      // Every other key is owned by the second server.
      std::string per_server = letters;
      if (i % 2 != 0) std::ranges::rotate(per_server, per_server.end() - 1);
      evidence.add("key", copies_of(per_server), copies_on({static_cast<std::size_t>(i % 2)}));
    }
  }
  return evidence.refusal(even_replicas);
}

}  // namespace

TEST_CASE("key copies: nothing is removed on the word of a profile that does not explain where keys are") {
  CHECK(refusal_for({{"a--", 95}, {"-a-", 5}}) == PruneEvidence::PruneRefusal::none);
  CHECK(refusal_for({{"a--", 94}, {"-a-", 6}}) == PruneEvidence::PruneRefusal::unexplained);
  CHECK(refusal_for({{"a--", 94}, {"-a-", 6}}, true) == PruneEvidence::PruneRefusal::unexplained);
  CHECK(refusal_for({{"-a-", 1}}) == PruneEvidence::PruneRefusal::unexplained);
  CHECK(refusal_for({{"---", 3}}) == PruneEvidence::PruneRefusal::none);
}

TEST_CASE("key copies: a key whose server does not answer says nothing of the profile") {
  CHECK(refusal_for({{"?a-", 10}}) == PruneEvidence::PruneRefusal::none);
}

TEST_CASE("key copies: equally many copies of most keys are taken for replication") {
  CHECK(refusal_for({{"aaa", 20}}) == PruneEvidence::PruneRefusal::replicated);
  CHECK(refusal_for({{"aaa", 20}}, true) == PruneEvidence::PruneRefusal::none);
  CHECK(refusal_for({{"aa-", 8}, {"-aa", 4}, {"a-a", 8}}) == PruneEvidence::PruneRefusal::replicated);
  CHECK(refusal_for({{"aa-", 1}}) == PruneEvidence::PruneRefusal::none);
  CHECK(refusal_for({{"aa-", 9}, {"a--", 11}}) == PruneEvidence::PruneRefusal::none);
  // If the client itself keeps that many copies, no copy is misplaced.
  PruneEvidence evidence;
  for (int i = 0; i < 20; ++i) evidence.add("key", copies_of("aa-"), copies_on(first_two));
  CHECK(evidence.refusal(false) == PruneEvidence::PruneRefusal::none);
  // These copies were left by clients that avoided the first server while it was down.
  PruneEvidence reporter;
  for (int i = 0; i < 20; ++i) reporter.add("key", copies_of("aa-"), copies_on(first));
  for (int i = 0; i < 18; ++i) reporter.add("key", copies_of("-a-"), copies_on({1}));
  CHECK(reporter.refusal(false) == PruneEvidence::PruneRefusal::none);
  CHECK(reporter.not_on_owner().size() == 20);
}
