#include "common/structures/cache/entry.hpp"

#include <cstdlib>

#include "common/base/bounds.hpp"
#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"

namespace mcds {

namespace {

std::int64_t ms_of(WallTime time) {
  return std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

std::string with_checksum(const std::string& head, std::string_view body) {
  return head + " *" + checksum(head + std::string(body)) + '\n' + std::string(body);
}

std::optional<CacheRecord> decode_placeholder(std::string_view head) {
  const auto word = split(head, ' ');
  if (word.size() != 2) return std::nullopt;
  CacheRecord record;
  record.build = word[1];
  record.placeholder = true;
  return record;
}

std::string encode(const std::vector<CacheTag>& tags) {
  std::string text;
  for (const CacheTag& tag : tags) append_all(text, {tag.number, " ", tag.name, "\n"});
  return text;
}

std::vector<CacheTag> decode_tags(std::string_view text) {
  std::vector<CacheTag> tags;
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t blank = line.find(' ');
    if (blank == std::string_view::npos) continue;
    tags.push_back({std::string(line.substr(blank + 1)), std::string(line.substr(0, blank))});
  }
  return tags;
}

std::optional<CacheRecord> decode_value(std::string_view head, std::string_view body) {
  const auto word = split(head, ' ');
  if (word.size() != 9 && word.size() != 10) return std::nullopt;
  CacheRecord record;
  record.build = word[1];
  std::size_t next = 2;
  for (WallTime* time : {&record.begun_at, &record.made_at, &record.fresh_until, &record.stale_until}) {
    const auto ms = parse_i64(word[next++]);
    if (!ms || std::abs(*ms) > latest_second * 1000) return std::nullopt;
    *time = WallTime(std::chrono::milliseconds(*ms));
  }
  const auto code = parse_u64(word[6]);
  const auto out_size = parse_u64(word[7]);
  const auto err_size = parse_u64(word[8]);
  const auto tags_size = word.size() == 10 ? parse_u64(word[9]) : 0;
  if (!code || *code > 255 || !out_size || !err_size || !tags_size || *tags_size > body.size())
    return std::nullopt;
  record.tags = decode_tags(body.substr(0, *tags_size));
  body.remove_prefix(*tags_size);
  if (*out_size > body.size() || body.size() - *out_size != *err_size) return std::nullopt;
  record.exit_code = static_cast<int>(*code);
  record.out = body.substr(0, *out_size);
  record.err = body.substr(*out_size);
  return record;
}

}  // namespace

std::string encode(const CacheRecord& record) {
  if (record.placeholder) return with_checksum("P1 " + record.build, "");
  const std::string tags = encode(record.tags);
  const std::string head =
      "K1 " + record.build + ' ' + std::to_string(ms_of(record.begun_at)) + ' ' +
      std::to_string(ms_of(record.made_at)) + ' ' + std::to_string(ms_of(record.fresh_until)) + ' ' +
      std::to_string(ms_of(record.stale_until)) + ' ' + std::to_string(record.exit_code) + ' ' +
      std::to_string(record.out.size()) + ' ' + std::to_string(record.err.size()) +
      (tags.empty() ? "" : ' ' + std::to_string(tags.size()));
  return with_checksum(head, tags + record.out + record.err);
}

std::size_t size_of(const std::vector<CacheTag>& tags) {
  return encode(tags).size();
}

std::optional<CacheRecord> decode_cache_record(std::string_view value) {
  const auto line_end = value.find('\n');
  const std::string_view line = value.substr(0, line_end);
  const auto star = line.rfind(" *");
  if (line_end == std::string_view::npos || star == std::string_view::npos) return std::nullopt;
  const std::string_view head = line.substr(0, star);
  const std::string_view body = value.substr(line_end + 1);
  if (line.substr(star + 2) != checksum(std::string(head) + std::string(body))) return std::nullopt;
  if (head.starts_with("P1 ") && body.empty()) return decode_placeholder(head);
  if (head.starts_with("K1 ")) return decode_value(head, body);
  return std::nullopt;
}

std::string cache_identity_of(std::string_view value) {
  const auto record = decode_cache_record(value);
  return record ? record->build : digest128(value);
}

std::optional<CacheRecord> own_cache_record(const Context& context, const std::string& key,
                                            std::string_view value, std::size_t server) {
  auto record = decode_cache_record(value);
  if (record || value.starts_with("K1 ") || value.starts_with("P1 ")) return record;
  throw CorruptData(key +
                        " holds another program's data, not a cache entry; use another key, or remove this "
                        "one with mcds item remove",
                    context.cluster.address_of(server));
}

}  // namespace mcds
