// Keys that belong to other keys, recognised by name: for keys that a user gave or a server listed.
// Structures do not use this: they say what a part belongs to (Request::with).
//
//   lock:<name>:fence                             with lock:<name>
//   array[N]:<name>:s:<16 hex>                    with array[N]:<name>
//   table[N]:<name>:i[:<shard>]:s:<16 hex>        with the text before :s:, and likewise for hash
//   eventlog[N]:<name>:<C>x<N>:<i>.<k>            with eventlog[N]:<name>:<C>x<N>:<i>
#pragma once

#include <string>
#include <string_view>

#include "common/primitives/key_names.hpp"

namespace mcds {

// `key` with its namespace `key_prefix`; a key that is not a part is placed by its own bytes.
PlacedKey placed(std::string key, std::string_view key_prefix);

// Of a journal: each of several copies has segments of its own, under names that no other has.
bool is_segment(const PlacedKey& key);

}  // namespace mcds
