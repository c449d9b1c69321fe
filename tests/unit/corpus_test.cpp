// Runs the parsers of foreign bytes and the reader of replies on the fuzzer's corpora and on small changes of
// them: the same bytes every time, without a fuzzer.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "common/base/random.hpp"
#include "tests/fuzz/parsers.hpp"
#include "tests/support/folder.hpp"
#include "tools/cli/input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);

namespace mcds::corpus_test {

namespace {

std::vector<std::string> examples(const std::string& corpus) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(test::folder("fuzz/" + corpus)))
    found.push_back(file_bytes(entry.path().string()));
  std::sort(found.begin(), found.end());
  return found;
}

void parse(const std::string& bytes) {
  test::feed(static_cast<unsigned char>(bytes.front()), std::string_view(bytes).substr(1));
}

void reply(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

// Feeds every example cut anywhere, and with every byte exchanged, except the first `fixed`.
void feed_changed(const std::vector<std::string>& all, void (*feed)(const std::string& bytes),
                  std::size_t fixed, std::string_view others) {
  for (const std::string& example : all) {
    INFO(example);
    for (std::size_t size = fixed; size <= example.size(); ++size) feed(example.substr(0, size));
    for (std::size_t place = fixed; place < example.size(); ++place) {
      for (const char byte : others) {
        std::string changed = example;
        changed[place] = byte;
        feed(changed);
        feed(changed.insert(place, 1, byte));
      }
    }
  }
}

}  // namespace

TEST_CASE("parsers: every example, cut anywhere, with every byte exchanged, is read or refused") {
  const auto all = examples("parser_corpus");
  REQUIRE(all.size() >= test::parsers.size());
  feed_changed(all, parse, 1, std::string_view("\0\n 9\"\x1b\xff", 7));
}

TEST_CASE("parsers: a thousand mutations of every example are read or refused") {
  SeededRandom random(20261122);
  const auto all = examples("parser_corpus");
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
      parse(changed);
    }
  }
}

TEST_CASE(
    "replies: every example, cut anywhere, with every byte exchanged, is read the same whole and in pieces") {
  const auto all = examples("reply_corpus");
  REQUIRE(all.size() >= 10);
  feed_changed(all, reply, 0, std::string_view("\0\n\r 09E\xff", 8));
}

TEST_CASE("replies: every example as the answer to every kind of request, in pieces of every size") {
  for (std::string& example : examples("reply_corpus")) {
    INFO(example);
    for (char requests = 0; requests < 16; ++requests) {
      for (char piece = 0; piece < 7; ++piece) {
        example[0] = requests;
        example[1] = piece;
        reply(example);
      }
    }
  }
}

}  // namespace mcds::corpus_test
