// Key layout: <namespace><structure>:<name>[:<part>…]
//
// Names are bytes without control characters and spaces. Elements (members, fields, visitor ids) may contain
// any bytes: unsafe ones, including ':', are percent-encoded, so an element never looks like another part. A
// key that would exceed 250 bytes ends in '~' and the first 32 hex digits of the element's SHA-256 instead.
//
//   structure_key(context, "table", "blocked")            table:blocked
//   element_key("table:blocked:v", "10.1.2.3")            table:blocked:v:10.1.2.3
//   element_key("table:blocked:v", "a b:c")               table:blocked:v:a%20b%3ac
//   element_key("table:blocked:v", <9000 bytes>)          table:blocked:v:~5feceb66ffc86f38d952786c6d696c79
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/primitives/context.hpp"

namespace mcds {

// A key, and the key whose server it is on (Request::with).
struct PlacedKey {
  std::string key;
  std::string with = {};  // empty: it is placed by its own bytes
  const std::string& placed_by() const { return with.empty() ? key : with; }
};

// The longest namespace + structure + name, so that every part a structure adds still fits.
constexpr std::size_t max_structure_key_size = 180;

// Throws InvalidInput for a namespace with bytes that are not allowed in keys.
void check_key_prefix(std::string_view key_prefix);

// Throws InvalidInput for an empty name, unsafe bytes or a key longer than max_structure_key_size.
std::string structure_key(const Context& context, std::string_view structure, std::string_view name);

// The same for a structure whose keys say in how many copies it is kept (copy_count_guard.hpp): `hash2:cfg`
// for two.
std::string copied_key(const Context& context, std::string_view structure, std::string_view name);

// A whole key given by the user (`--key`): checked and prefixed with the namespace, nothing else.
std::string whole_key(std::string_view key_prefix, std::string_view key);

// `base` + ':' + the encoded element, or its digest. `base` comes from structure_key. '~' itself is never
// encoded away, but an encoded element that starts with '~' is digested too, so the two forms cannot meet.
std::string element_key(std::string_view base, std::string_view element);
// Returns the element whose element_key has `part` behind its base; nullopt if that is a digest, or no
// encoding.
std::optional<std::string> element_of(std::string_view part);

// The index of a table or hash has so many shards (mcds-layout(7)).
constexpr std::size_t index_shards = 16;
// Returns the shard that lists an element.
std::size_t index_shard_of(std::string_view element);

}  // namespace mcds
