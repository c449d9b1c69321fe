#include "tools/cli/our_words.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/bytes.hpp"

namespace mcds {

namespace {

// Words of memcached's protocol, of its tools, and of clients that people come from; what to try instead.
constexpr std::array<std::pair<std::string_view, std::string_view>, 13> words{{
    {"get gets mget fetch cat show", "mcds item get KEY, mcds counter get NAME, or mcds hash get NAME FIELD"},
    {"set add put store replace",
     "mcds item set KEY VALUE, mcds counter set NAME NUMBER, or mcds hash set NAME FIELD VALUE"},
    {"incr inc", "mcds counter incr NAME"},
    {"decr", "mcds counter decr NAME"},
    {"keys key-list ls list scan metadump cachedump", "mcds item list"},
    {"delete del rm remove", "mcds item remove KEY"},
    {"touch", "mcds item touch KEY TTL"},
    {"flush_all flush", "mcds item remove --prefix '' --all"},
    {"top watch monitor hot", "mcds item hot, or mcds servers --every 1s"},
    {"stats stat info slabs display", "mcds servers, or mcds servers --stats slabs"},
    {"version", "mcds servers, or mcds --version"},
    {"ping", "mcds servers"},
    {"dump backup", "mcds item save FILE, or mcds item list"},
}};

}  // namespace

std::string_view in_our_words(std::string_view word) {
  for (const auto& [theirs, ours] : words) {
    const auto all = split(theirs, ' ');
    if (std::ranges::find(all, word) != all.end()) return ours;
  }
  return {};
}

}  // namespace mcds
