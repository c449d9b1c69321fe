// Runs the parsers of foreign bytes on the fuzzer's corpus and on small changes of it.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "common/base/random.hpp"
#include "tests/fuzz/parsers.hpp"
#include "tests/support/folder.hpp"

namespace mcds::parser_corpus_test {

namespace {

std::vector<std::string> examples() {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(test::folder("fuzz/parser_corpus"))) {
    std::ifstream file(entry.path(), std::ios::binary);
    found.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  std::sort(found.begin(), found.end());
  return found;
}

void feed(std::string_view bytes) {
  test::feed(static_cast<unsigned char>(bytes.front()), bytes.substr(1));
}

}  // namespace

TEST_CASE("parsers: every example, cut anywhere, with every byte exchanged, is read or refused") {
  const auto all = examples();
  REQUIRE(all.size() >= test::parsers.size());
  for (const std::string& example : all) {
    for (std::size_t size = 1; size <= example.size(); ++size)
      feed(std::string_view(example).substr(0, size));
    for (std::size_t place = 1; place < example.size(); ++place) {
      for (const char byte : {'\0', '\n', ' ', '9', '"', '\x1b', '\xff'}) {
        std::string changed = example;
        changed[place] = byte;
        feed(changed);
        feed(changed.insert(place, 1, byte));
      }
    }
  }
}

TEST_CASE("parsers: a thousand mutations of every example are read or refused") {
  SeededRandom random(20261122);
  const auto all = examples();
  for (const std::string& example : all) {
    for (int round = 0; round < 1000; ++round) {
      std::string changed = example;
      for (std::uint64_t changes = 1 + random.bits() % 4; changes > 0; --changes) {
        const std::size_t at = 1 + random.bits() % changed.size();
        const std::string& other = all[random.bits() % all.size()];
        const std::size_t from = random.bits() % other.size();
        switch (random.bits() % 5) {
          case 0: changed.insert(at, other, from, random.bits() % 16); break;
          case 1: changed.erase(at, random.bits() % 8); break;
          case 2: changed.insert(at, "9007199254740993"); break;
          case 3: changed.insert(at, changed, at, random.bits() % 32); break;
          default:
            if (at < changed.size()) changed[at] = static_cast<char>(random.bits());
        }
      }
      feed(changed);
    }
  }
}

}  // namespace mcds::parser_corpus_test
