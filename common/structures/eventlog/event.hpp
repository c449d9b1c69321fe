// Ids, shapes, parts and lines of an event log, for callers that put and read events. eventlog.hpp and
// cursor.hpp use them; format.hpp has the bytes.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.hpp"

namespace mcds {

// A UUIDv7 (RFC 9562): 48 bits of UNIX milliseconds, version, variant, and 74 bits that count up within them.
struct EventId {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  auto operator<=>(const EventId&) const = default;
  // Returns the id as 36 characters that sort as the ids do, such as `01a1fc4a-f7b9-7c3e-b1f0-2a9d5e7c4b18`.
  std::string text() const;
  void append_to(std::string& out) const;
  WallTime time() const { return WallTime(std::chrono::milliseconds(high >> 16)); }
  static std::optional<EventId> parse(std::string_view text);
};

constexpr std::size_t event_id_size = 36;

// The shape of a log: C seconds per chunk, N chunks kept.
struct RingShape {
  std::int64_t chunk_s = 60;
  std::int64_t chunks = 60;

  bool operator==(const RingShape&) const = default;
  // Throws InvalidInput with the name of the option, --chunk or --chunks.
  static RingShape of(Duration chunk, std::uint64_t chunks);

  std::int64_t chunk_of(WallTime time) const {
    return std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count() / chunk_s;
  }
  WallTime start_of(std::int64_t chunk) const { return WallTime(std::chrono::seconds(chunk * chunk_s)); }
  // Returns how long every event is kept: N * C.
  std::chrono::seconds kept() const { return std::chrono::seconds(chunk_s * chunks); }
  // Returns when a chunk's item expires: N chunks after its end, plus a tick, and half a chunk for skew.
  WallTime expiry_of(std::int64_t chunk) const {
    return start_of(chunk + 1 + chunks) + std::chrono::seconds(2) + std::chrono::milliseconds(chunk_s * 500);
  }
  std::string text() const { return std::to_string(chunk_s) + 'x' + std::to_string(chunks); }
  static std::optional<RingShape> parse(std::string_view text);
};

// The name of one item of the ring: chunk 29920568's first part is `29920568`, the next `29920568.1`.
struct PartName {
  std::int64_t chunk = 0;
  std::int64_t part = 0;

  auto operator<=>(const PartName&) const = default;
  std::string text() const {
    return part == 0 ? std::to_string(chunk) : std::to_string(chunk) + '.' + std::to_string(part);
  }
  static std::optional<PartName> parse(std::string_view text);
};

enum class EventData { text, json };

struct EventLine {
  EventId id;
  std::string_view data;  // as stored: JSON, or with `base64` the encoded text
  bool base64 = false;
  // The checksum is right, but the data has none of the three forms: shown as bytes and reported.
  bool foreign = false;

  // Returns what was put: the bytes of a string, or the JSON text.
  std::string bytes() const;
};

}  // namespace mcds
