// The value of an exact counter: C1 <sequence> <sum> <ids> [@<expiry>] *<checksum>. See counter.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.hpp"

namespace mcds {

// What all records of counters end with: `<id>,<id>…`, or `-` for none, and perhaps a word more, `@<expiry>`.
struct CounterRecordEnd {
  std::vector<std::string> ids;            // of the last changes, the newest last
  std::optional<std::int64_t> expires_at;  // UNIX seconds

  std::string text() const;
  // nullopt: the words are not ids.
  static std::optional<CounterRecordEnd> parse(std::span<const std::string_view> words);
};

struct CounterRecord {
  // The number of changes among which a lost reply can be looked up.
  static constexpr std::size_t kept_ids = 64;

  std::uint64_t sequence = 0;  // changes so far
  std::uint64_t sum = 0;
  std::vector<std::string> ids;            // of the last changes, the newest last
  std::optional<std::int64_t> expires_at;  // UNIX seconds

  std::string text() const;
  // nullopt: not one, or damaged.
  static std::optional<CounterRecord> parse(std::string_view text);

  bool has(std::string_view id) const;
  // The record after a change that leaves `new_sum`.
  CounterRecord changed(std::uint64_t new_sum, std::string id) const;
};

// The error for a value that is not a counter.
std::string no_counter_message(const std::string& name, std::string_view value);

// The number in a plain counter's value, decr's trailing spaces allowed; nullopt for anything else.
std::optional<std::uint64_t> plain_number(std::string_view value);

}  // namespace mcds
