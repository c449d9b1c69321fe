// In how many copies something is kept, and what follows from that number. Whatever one copy lacks beside
// several is asked here, by what it means; a structure has one code for every number.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/base/errors.hpp"
#include "common/base/json.hpp"

namespace mcds {

// If nothing says how many copies there are, so many are looked for at most.
constexpr std::size_t most_copies = 16;

// The one question. To be asked where one copy is stored otherwise, or would cost a trip or time more; what
// is only more or less of something is of_several().
constexpr bool is_only(std::size_t copies) {
  return copies < 2;
}

// What there is because of other copies, which an only one has not: its number in its key, what is asked
// beside it, for how long word of what others may have missed stays.
template <typename T>
T of_several(std::size_t copies, T value) {
  if (is_only(copies)) value = T{};
  return value;
}

// For what only one copy can do. Throws InvalidInput that says `why`.
inline void expect_only(std::size_t copies, std::string_view why) {
  if (!is_only(copies)) throw InvalidInput(std::string(why));
}

// "1 copy", "3 copies".
inline std::string in_words(std::size_t copies) {
  return std::to_string(copies) + (is_only(copies) ? " copy" : " copies");
}

// The field `copies`, which an only one has not.
inline void add_number_of_copies(JsonObject& line, std::size_t copies) {
  if (!is_only(copies)) line.number("copies", copies);
}

}  // namespace mcds
