// The value of one cache entry: what a command printed and how it ended.
//
//   K1 <build> <made at> <fresh until> <stale until> <exit code> <stdout bytes> <stderr bytes> *<checksum>\n
//     <stdout><stderr>
//   P1 <build> *<checksum>\n                    a build is under way and there is no older value
//
// build: 16 hex digits, another for every write, so that two values are never taken for the same one. Times
// are milliseconds since 1970; fresh until 0: expired by hand, whatever the readers' clocks say. The checksum
// covers everything else.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.hpp"

namespace mcds {

struct CacheRecord {
  std::string build;
  bool placeholder = false;
  WallTime made_at{};
  WallTime fresh_until{};
  WallTime stale_until{};  // may be replayed until then while it is rebuilt
  int exit_code = 0;
  std::string out;
  std::string err;

  bool fresh(WallTime now) const { return !placeholder && now < fresh_until; }
  bool usable(WallTime now) const { return !placeholder && now < stale_until; }
};

std::string encode(const CacheRecord& record);

// nullopt for anything that encode() did not write, cut or changed values among it.
std::optional<CacheRecord> decode_cache_record(std::string_view value);

// What encode() adds to the two outputs, at most.
constexpr std::size_t cache_record_overhead = 176;

}  // namespace mcds
