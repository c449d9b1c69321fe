// keep_first_of_each deletes repetitions from a list of millions with little memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace mcds {

// Deletes each item whose key an earlier item has. `key_of` returns an item's key as a std::string_view.
// Sorting the keys' hashes needs eight bytes for each item, whereas a set would allocate for each.
template <typename Item, typename KeyOf>
void keep_first_of_each(std::vector<Item>& items, const KeyOf& key_of) {
  std::vector<std::uint64_t> order;  // the upper half of a key's hash, then the item's index
  order.reserve(items.size());
  for (const Item& item : items)
    order.push_back((std::hash<std::string_view>()(key_of(item)) >> 32 << 32) + order.size());
  std::ranges::sort(order);
  std::vector<bool> repeats(items.size());
  bool any = false;
  std::vector<std::size_t> distinct;  // items whose keys differ, of one hash: mostly one
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || order[i] >> 32 != order[i - 1] >> 32) distinct.clear();
    const std::size_t item = order[i] & 0xffffffff;
    repeats[item] = std::ranges::any_of(
        distinct, [&](std::size_t earlier) { return key_of(items[earlier]) == key_of(items[item]); });
    if (repeats[item])
      any = true;
    else
      distinct.push_back(item);
  }
  if (!any) return;
  std::size_t index = 0;
  std::erase_if(items, [&](const Item&) { return repeats[index++]; });
}

}  // namespace mcds
