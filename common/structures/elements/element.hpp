// Element is an element of a table or hash on its way in or out, for the callers of those.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
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

// Names that this client has found present and has removed, for two compactions: the first one only notes the
// young lines that list them. Who wrote such a line may be about to add the element again, but within
// ElementIndex::settles_after it has, or has listed the name once more.
struct RemovedNames {
  std::vector<std::uint64_t> digests;    // sorted
  std::set<std::uint64_t> seen = {};     // digests of the ids of these lines
  std::set<std::uint64_t> settled = {};  // those seen before the wait
  std::set<std::uint64_t> waiting = {};  // names in lines that are only seen
};

}  // namespace mcds
