// CacheRecord is the value of one cache entry: the output of a command and its exit code.
//
//   K1 <build> <begun at> <made at> <fresh until> <stale until> <exit code> <stdout bytes> <stderr bytes>
//     *<checksum>\n<stdout><stderr>
//   K1 … <stdout bytes> <stderr bytes> <tags bytes> *<checksum>\n<tags><stdout><stderr>     tags: lines of
//                                                                                           `<number> <tag>`
//   P1 <build> *<checksum>\n                    a placeholder: being built, and there is no older value
//
// build: 16 hex digits, different for every write, so that no two values are confused. Times are milliseconds
// since 1970. fresh until: 0 after `expire`, whatever the readers' clocks say. begun at: when the command was
// started or the entry was expired; the output reflects everything that happened earlier. The checksum covers
// everything else.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/primitives/context.hpp"

namespace mcds {

// A tag and its number; the number is empty if the tag was missing.
struct CacheTag {
  std::string name;
  std::string number;
};

struct CacheRecord {
  std::string build;
  bool placeholder = false;
  WallTime begun_at{};
  WallTime made_at{};
  WallTime fresh_until{};
  WallTime stale_until{};  // usable until then while it is rebuilt
  int exit_code = 0;
  std::string out;
  std::string err;
  std::vector<CacheTag> tags;  // as they were before the command was started

  bool fresh(WallTime now) const { return !placeholder && now < fresh_until; }
  bool usable(WallTime now) const { return !placeholder && now < stale_until; }
  bool expired_by_hand() const { return fresh_until == WallTime{}; }
};

std::string encode(const CacheRecord& record);

std::size_t size_of(const std::vector<CacheTag>& tags);

// Returns nullopt for anything that encode() did not write, including truncated or changed values.
std::optional<CacheRecord> decode_cache_record(std::string_view value);

// Returns what identifies a value when it is read again: its build, or the digest of a damaged value.
std::string cache_identity_of(std::string_view value);

// Returns the record in `value`, or nullopt if it is a damaged one of ours. Throws CorruptData for another
// program's value on `server`.
std::optional<CacheRecord> own_cache_record(const Context& context, const std::string& key,
                                            std::string_view value, std::size_t server);

// The maximum size that encode() adds to the two outputs and the tags, in bytes.
constexpr std::size_t cache_record_overhead = 192;

}  // namespace mcds
