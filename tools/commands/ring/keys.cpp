#include "tools/commands/ring/keys.hpp"

namespace mcds {

namespace {

struct KeyAndBytes {
  std::string key;
  std::optional<std::uint64_t> bytes;
};

// Keeps sums exact; memcached's own limit of an item (-I) is 1 GiB.
constexpr std::uint64_t max_item_size = std::uint64_t{1} << 40;

// Parses KEY, KEY<TAB>BYTES, or a JSON object as mcds prints it.
KeyAndBytes of_key_line(std::string line) {
  std::optional<std::string> size;
  if (key_in_json(line)) {
    size = json_field(line, "size_bytes");
  } else if (const std::size_t tab = line.find('\t'); tab != std::string::npos) {
    size = line.substr(tab + 1);
    line.resize(tab);
  }
  if (!size) return {std::move(line), std::nullopt};
  const auto bytes = parse_u64(*size);
  if (!bytes || *bytes > max_item_size)
    throw Failure(ErrorCode::bad_data, "the size of the key is not a number of bytes, at most 2^40");
  return {std::move(line), bytes};
}

ExitStatus read_keys_of(Session& session, const std::string& file, const TakeRingKey& take) {
  const KeyRules rules{session.key_prefix(), {}, false};
  Batch<KeyAndBytes> batch;
  batch.parse = [&](std::string line) {
    KeyAndBytes key = of_key_line(std::move(line));
    key.key = rules.of_line(key.key, session.options().null);
    return key;
  };
  batch.run = [&](const Window<KeyAndBytes>& window) {
    for (const auto& [key, bytes] : window.items) take({key, bytes, {}});
  };
  return batch.of_lines(session, {.answers_each = false, .file = file}).worst;
}

}  // namespace

void RingKeys::check() const {
  if (file && live) throw InvalidInput("--keys and --live cannot be combined");
}

ExitStatus RingKeys::read(Session& session, const TakeRingKey& take, std::vector<bool>* unlisted) const {
  if (!live) return read_keys_of(session, *file, take);
  const Pool& pool = session.placement()->pool();
  const auto results = list_keys(session, pool, [&](const LiveKey& key) {
    take({key.key, key.size_bytes, key.server});
    return true;
  });
  for (std::size_t i = 0; unlisted != nullptr && i < results.size(); ++i)
    unlisted->at(i) = results[i].failure != nullptr;
  return report_unlisted(session, pool, results);
}

}  // namespace mcds
