#include "common/base/suggest.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace mcds {

namespace {

constexpr std::size_t longest_word = 100;

// Returns the Damerau-Levenshtein distance: how many bytes are inserted, deleted or replaced, or how many
// neighbours swapped, to make `b` of `a`.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1), before, two_before;
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    two_before = std::exchange(before, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = before[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, before[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], two_before[j - 2] + 1);
    }
  }
  return row.back();
}

}  // namespace

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates,
                         const std::string& otherwise) {
  if (word.empty() || word.size() > longest_word) return otherwise;
  // One slip in a short word: with two, `pop` would mean `drop`.
  std::size_t least = std::min(word.size(), std::max<std::size_t>(1, word.size() / 3) + 1);
  const std::string* nearest = nullptr;
  for (const std::string& candidate : candidates) {
    const std::size_t d = distance(word, candidate);
    if (d >= least) continue;
    least = d;
    nearest = &candidate;
  }
  return nearest == nullptr ? otherwise : "; did you mean \"" + *nearest + "\"?";
}

}  // namespace mcds
