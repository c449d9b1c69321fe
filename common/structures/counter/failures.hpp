// What the counter's verbs refuse, and what becomes of a reply that is no answer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/primitives/context.hpp"

namespace mcds {

// Throws InvalidInput for values that some servers misread.
void check_counter_value(std::uint64_t value, std::string_view what);

// Throws what `reply`, which is no answer, means for a change of a counter.
[[noreturn]] void fail_counter(const Context& context, const std::string& name, const Reply& reply);

}  // namespace mcds
