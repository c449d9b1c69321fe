// A YAML document as a tree, read by libyaml: enough for other programs' pool files.
#pragma once

#include <string_view>

#include "common/placement/mcrouter/json_tree.hpp"

namespace mcds {

// The first document, every scalar as a string. Throws Failure(configuration) with the line if it is not
// YAML; also if it nests too deep or is too large, aliases written out, before it takes memory.
JsonNode parse_yaml(std::string_view text);

}  // namespace mcds
