// Element is an element of a table or hash on its way in or out, for the callers of those.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/errors.hpp"
#include "common/primitives/key_names.hpp"
#include "common/replication/copies.hpp"

namespace mcds {

constexpr std::size_t max_element_size = 10 * 1024;

// The flags of an element that expires. Only an element with a single copy can expire. The lower half is 0,
// because clients of applications keep the type of a value there.
constexpr std::uint32_t ending_flags = 0x01000000;

struct Element {
  std::string name;  // any bytes, at most max_element_size
  std::string value;
};

// The result for one element of a batch.
struct ElementResult {
  bool yes = false;   // set: it was missing; get: it exists; remove: it existed
  std::string value;  // get
  std::size_t server = 0;
  std::optional<Failure> failure;   // if set, `yes` is meaningless
  std::vector<CopyOutcome> copies;  // only with several copies
};

// Throws Failure(bad_data) if the name or value is too long.
void check_element(const Element& element);

// A name that this client has found present and has removed.
struct RemovedName {
  std::uint64_t digest = 0;
  std::int64_t second = 0;  // of the removal, by this client's clock
  auto operator<=>(const RemovedName&) const = default;
};
using RemovedNames = std::span<const RemovedName>;  // sorted

}  // namespace mcds
