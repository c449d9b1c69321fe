#include "common/cluster/keys/live.hpp"

#include <charconv>
#include <utility>

#include "common/base/bytes.hpp"
#include "common/cluster/keys/dump.hpp"
#include "common/cluster/keys/dump_child.hpp"

namespace mcds {

namespace {

// The next word: `name=value`. The fields come in a fixed order, later versions add some.
std::string_view take_field(std::string_view& line) {
  while (line.starts_with(' ')) line.remove_prefix(1);
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

template <typename Number>
bool take_number(std::string_view word, std::string_view name, Number& number) {
  if (!word.starts_with(name)) return false;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data() + name.size(), end, number);
  return error == std::errc{} && stop == end;
}

}  // namespace

std::optional<LiveKey> parse_metadump_line(std::string_view line, std::string& buffer) {
  if (!line.starts_with("key=")) return std::nullopt;
  LiveKey result;
  result.key = take_field(line).substr(4);
  bool expires = false, accessed = false;
  for (auto word = take_field(line); !word.empty(); word = take_field(line)) {
    // What is no number is no time; of the other words nothing is asked.
    if (word[0] == 'e') expires = expires || take_number(word, "exp=", result.expires_at);
    if (word[0] == 'l') accessed = accessed || take_number(word, "la=", result.last_accessed_at);
    if (word[0] == 'c') take_number(word, "cas=", result.cas);
    if (word[0] == 's') take_number(word, "size=", result.size_bytes);
  }
  if (result.key.empty() || !expires || !accessed) return std::nullopt;
  if (result.key.find('%') != std::string_view::npos) {
    auto decoded = percent_decode(result.key);
    if (!decoded) return std::nullopt;
    buffer = std::move(*decoded);
    result.key = buffer;
  }
  return result;
}

std::vector<LiveKeysOfServer> read_live_keys(const Pool& pool, const LiveKeysOptions& options,
                                             const Clock& clock, const TakeLiveKey& take) {
  tls::Contexts tls;
  for (const Server& server : pool)
    static_cast<void>(tls.of(server));  // what is wrong with them is said here
  return read_by_child(pool.size(), take, [&](const TakeLiveKey& keep, const std::function<bool()>& goes_on) {
    std::vector<std::unique_ptr<Dump>> dumps;
    std::vector<LineStream*> streams;
    for (std::size_t i = 0; i < pool.size(); ++i) {
      dumps.push_back(std::make_unique<Dump>(pool[i], i, options, tls.of(pool[i]), keep));
      streams.push_back(dumps.back().get());
    }
    run_streams(streams, options, clock, goes_on);
    std::vector<LiveKeysOfServer> results;
    for (const auto& dump : dumps) results.push_back(dump->result());
    return results;
  });
}

}  // namespace mcds
