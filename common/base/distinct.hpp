// keep_first_of_each deletes repetitions from a list of millions with little memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace mcds {

// Deletes each item whose key an earlier item has. `key_of` returns an item's key as a std::string_view.
// Sorting the keys' hashes needs eight bytes for each item, whereas a set would allocate for each.
template <typename Item, typename KeyOf>
void keep_first_of_each(std::vector<Item>& items, const KeyOf& key_of) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> by_hash;  // the second is the index
  by_hash.reserve(items.size());
  for (const Item& item : items) {
    const auto hash = static_cast<std::uint32_t>(std::hash<std::string_view>()(key_of(item)));
    by_hash.emplace_back(hash, static_cast<std::uint32_t>(by_hash.size()));
  }
  std::ranges::sort(by_hash);
  std::vector<bool> repeats(items.size());
  std::vector<std::uint32_t> distinct;  // those of one hash
  for (std::size_t i = 0; i < by_hash.size(); ++i) {
    const auto [hash, index] = by_hash[i];
    if (i == 0 || by_hash[i - 1].first != hash) distinct.clear();
    const std::string_view key = key_of(items[index]);
    repeats[index] =
        std::ranges::any_of(distinct, [&](std::uint32_t one) { return key_of(items[one]) == key; });
    if (!repeats[index]) distinct.push_back(index);
  }
  std::size_t index = 0;
  std::erase_if(items, [&](const Item&) { return repeats[index++]; });
}

}  // namespace mcds
