#include "tools/cli/our_words.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace mcds {

namespace {

constexpr const char* read_word = "mcds item get KEY, mcds counter get NAME, or mcds hash get NAME FIELD";
constexpr const char* store_word =
    "mcds item set KEY VALUE, mcds counter set NAME NUMBER, or mcds hash set NAME FIELD VALUE";
constexpr const char* count_word = "mcds counter incr NAME";
constexpr const char* list_word = "mcds item list";
constexpr const char* remove_word = "mcds item remove KEY";
constexpr const char* watch_word = "mcds item hot, or mcds servers --every 1s";
constexpr const char* numbers_word = "mcds servers, or mcds servers --stats slabs";
constexpr const char* save_word = "mcds item save FILE, or mcds item list";

// Words of memcached's protocol, of its tools, and of clients that people come from.
constexpr std::array<std::pair<const char*, const char*>, 41> words{{
    {"get", read_word},
    {"gets", read_word},
    {"mget", read_word},
    {"fetch", read_word},
    {"cat", read_word},
    {"show", read_word},
    {"set", store_word},
    {"add", store_word},
    {"put", store_word},
    {"store", store_word},
    {"replace", store_word},
    {"incr", count_word},
    {"inc", count_word},
    {"decr", "mcds counter decr NAME"},
    {"keys", list_word},
    {"key-list", list_word},
    {"ls", list_word},
    {"list", list_word},
    {"scan", list_word},
    {"metadump", list_word},
    {"cachedump", list_word},
    {"delete", remove_word},
    {"del", remove_word},
    {"rm", remove_word},
    {"remove", remove_word},
    {"touch", "mcds item touch KEY TTL"},
    {"flush_all", "mcds item remove --prefix '' --all"},
    {"flush", "mcds item remove --prefix '' --all"},
    {"top", watch_word},
    {"watch", watch_word},
    {"monitor", watch_word},
    {"hot", watch_word},
    {"stats", numbers_word},
    {"stat", numbers_word},
    {"info", numbers_word},
    {"version", "mcds servers, or mcds --version"},
    {"ping", "mcds servers"},
    {"slabs", numbers_word},
    {"dump", save_word},
    {"backup", save_word},
    {"display", numbers_word},
}};

}  // namespace

std::string_view in_our_words(std::string_view word) {
  const auto* found =
      std::find_if(words.begin(), words.end(), [&](const auto& one) { return one.first == word; });
  return found == words.end() ? std::string_view() : found->second;
}

}  // namespace mcds
