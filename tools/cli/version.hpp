#pragma once

#include <string_view>

namespace mcds {

// From meson.build's project version.
constexpr std::string_view program_version = MCDS_VERSION;

}  // namespace mcds
