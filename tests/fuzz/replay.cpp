// Feeds a fuzz target the files of a corpus and mutations of them, where there is no fuzzer.
// Usage: replay SEED ROUNDS FILE…; the last line is how many inputs there were.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);

namespace {

std::string changed(std::string text, const std::vector<std::string>& all, std::mt19937_64& random) {
  for (std::uint64_t changes = 1 + random() % 4; changes > 0 && text.size() > 1; --changes) {
    const std::size_t at = 1 + random() % (text.size() - 1);
    const std::string& other = all[random() % all.size()];
    switch (random() % 5) {
      case 0: text[at] = static_cast<char>(random()); break;
      case 1: text.insert(at, 1 + random() % 8, static_cast<char>(random())); break;
      case 2: text.erase(at, 1 + random() % 8); break;
      case 3: text.insert(at, other.substr(random() % other.size(), random() % 64)); break;
      default: text.resize(at + 1);
    }
  }
  return text;
}

}  // namespace

int main(int count, char** words) {
  if (count < 4) return 64;
  std::mt19937_64 random(std::strtoull(words[1], nullptr, 10));
  const long rounds = std::strtol(words[2], nullptr, 10);
  std::vector<std::string> all;
  for (int i = 3; i < count; ++i) {
    std::ifstream file(words[i], std::ios::binary);
    all.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  std::uint64_t inputs = 0;
  const auto feed = [&](const std::string& text) {
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
    ++inputs;
  };
  for (const std::string& example : all) {
    for (std::size_t size = 0; size <= example.size(); ++size) feed(example.substr(0, size));
    for (long round = 0; round < rounds; ++round) feed(changed(example, all, random));
  }
  std::printf("%llu inputs\n", static_cast<unsigned long long>(inputs));
  return 0;
}
