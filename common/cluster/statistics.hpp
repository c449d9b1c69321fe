// What a server answers to `stats`: lines of a name, a space and a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace mcds {

std::optional<std::string_view> statistic(std::string_view lines, std::string_view name);
std::optional<std::uint64_t> statistic_number(std::string_view lines, std::string_view name);

}  // namespace mcds
