// What tables and hashes are made of, for those who use them: an element on its way in or out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/errors.hpp"
#include "common/primitives/key_names.hpp"
#include "common/replication/copies.hpp"

namespace mcds {

constexpr std::size_t max_element_size = 10 * 1024;

// The flags of an element in one copy that expires: its end cannot be kept in several. Its lower half is 0,
// where clients of applications keep the type of a value.
constexpr std::uint32_t ending_flags = 0x01000000;

struct Element {
  std::string name;  // any bytes, at most max_element_size
  std::string value;
};

// The result for one element of a batch.
struct ElementResult {
  bool yes = false;   // set: it was missing; get: it is present; remove: it was present
  std::string value;  // get
  std::size_t server = 0;
  std::optional<Failure> failure;   // then `yes` says nothing
  std::vector<CopyOutcome> copies;  // with several: the result for each
};

// Throws Failure(bad_data) for a name or value that is too long.
void check_element(const Element& element);

}  // namespace mcds
