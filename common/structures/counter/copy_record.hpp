// One copy of an exact counter that has several:
//   C2 <life> <life>:<changes>:<sum>[,…] <ids> [@<expiry>] *<checksum>
//   C2 9f0c6a5be1d27348 51ab22c0de7f1a90:17:40,9f0c6a5be1d27348:2:2 51ab22c0…,b7c1e0f2… *0b2f1c9e
// A life is one copy's item from its creation to its loss. A copy counts what was counted through it in its own life, by
// cas on the very item: the changes of a life are in one order, and of two records the one with more changes of a life is
// the newer one as to that life. So records merge by taking the newer of each life, and the counter is the sum of all.
// The ids are those of the last 64 changes of the copy's own life; `-` if there are none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mcds {

struct CounterCopyRecord {
  static constexpr std::size_t kept_ids = 64;

  struct Life {
    std::uint64_t changes = 0;
    std::uint64_t sum = 0;
    bool operator==(const Life&) const = default;
  };

  std::string life;  // this copy's own
  std::map<std::string, Life> lives;
  std::vector<std::string> ids;
  std::optional<std::int64_t> expires_at;  // UNIX seconds

  std::string text() const;
  // nullopt: not one, or damaged. The record of a counter that had one copy (C1) is read as a life of its own.
  static std::optional<CounterCopyRecord> parse(std::string_view text);

  std::uint64_t sum() const;
  bool has(std::string_view id) const;
  // Takes over what is newer in `other`.
  void learn(const CounterCopyRecord& other);
  // Whether it contains everything in `other`.
  bool covers(const CounterCopyRecord& other) const;
  // Counts `delta` in its own life.
  void count(std::uint64_t delta, std::string id);
};

}  // namespace mcds
