// What somebody means who knows memcached or another tool: `mcds get` and the like are no commands of ours.
#pragma once

#include <string_view>

namespace mcds {

// The commands to try; empty: the word says nothing.
std::string_view in_our_words(std::string_view word);

}  // namespace mcds
