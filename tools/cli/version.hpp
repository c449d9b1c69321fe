// Which version this program is.
#pragma once

#include <string>
#include <string_view>

namespace mcds {

// From meson.build's project version.
constexpr std::string_view program_version = MCDS_VERSION;

// What --version prints: the version, the commit where it is known, how it was built. One line.
std::string version_text();

}  // namespace mcds
