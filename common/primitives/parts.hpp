// Keys that belong to other keys, by their names: for questions about keys that somebody typed or a server listed. No
// structure asks this: whoever names a part says what it lies with (Request::with).
//
//   lock:<name>:fence                             with lock:<name>
//   array[N]:<name>:s:<16 hex>                    with array[N]:<name>
//   table[N]:<name>:i[:<shard>]:s:<16 hex>        with what stands before :s:, and so for hash
//   eventlog[N]:<name>:<C>x<N>:<i>.<k>            with eventlog[N]:<name>:<C>x<N>:<i>
#pragma once

#include <string>
#include <string_view>

#include "common/primitives/key_names.hpp"

namespace mcds {

// `key` with its namespace `key_prefix`; what is no part is placed by its own bytes.
PlacedKey placed(std::string key, std::string_view key_prefix);

}  // namespace mcds
