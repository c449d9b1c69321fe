// Runs the fuzz target on its corpus and small changes of it: the same bytes every time, without a fuzzer.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/folder.hpp"
#include "tools/cli/input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);

namespace {

using namespace mcds;

void try_bytes(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

std::vector<std::filesystem::path> corpus() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(mcds::test::folder("fuzz/reply_corpus")))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

TEST_CASE(
    "replies: every example, cut anywhere, with every byte exchanged, is read the same whole and in pieces") {
  const auto files = corpus();
  REQUIRE(files.size() >= 10);
  for (const auto& file : files) {
    INFO(file.string());
    const std::string example = file_bytes(file.string());
    for (std::size_t size = 0; size <= example.size(); ++size) try_bytes(example.substr(0, size));
    for (std::size_t place = 0; place < example.size(); ++place) {
      for (const char byte : {'\0', '\n', '\r', ' ', '0', '9', 'E', '\xff'}) {
        std::string changed = example;
        changed[place] = byte;
        try_bytes(changed);
        try_bytes(changed.insert(place, 1, byte));
      }
    }
  }
}

TEST_CASE("replies: every example as the answer to every kind of request, in pieces of every size") {
  for (const auto& file : corpus()) {
    INFO(file.string());
    std::string example = file_bytes(file.string());
    for (char requests = 0; requests < 16; ++requests) {
      for (char piece = 0; piece < 7; ++piece) {
        example[0] = requests;
        example[1] = piece;
        try_bytes(example);
      }
    }
  }
}
