// Texts of a ring's drawing, made to fit.
#pragma once

#include <string>
#include <vector>

namespace mcds {

// Labels of at most `most` characters: what all of them share at an end is left out before what tells them
// apart.
std::vector<std::string> short_labels(const std::vector<std::string>& labels, std::size_t most);

}  // namespace mcds
