// "did you mean": the nearest of the words that would have been right.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace mcds {

// `; did you mean "incr"?`, or `otherwise` when no candidate is near enough to be a slip of the finger.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates,
                         const std::string& otherwise = {});

}  // namespace mcds
