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

#include "common/primitives/context.hpp"

namespace mcds {

// A key, and the key that determines its server (Request::with).
struct PlacedKey {
  std::string key;
  std::string with = {};  // empty: the key is placed by its own bytes
  const std::string& placed_by() const { return with.empty() ? key : with; }
};

// The maximum size of namespace, structure and name together; every part that a structure adds still fits.
constexpr std::size_t max_structure_key_size = 180;

// Throws InvalidInput if the namespace contains bytes that are not allowed in keys.
void check_key_prefix(std::string_view key_prefix);

// Returns the key. Throws InvalidInput for an empty name, unsafe bytes or more than max_structure_key_size
// bytes.
std::string structure_key(const Context& context, std::string_view structure, std::string_view name);

// Returns the same with the number of copies in the key (copy_count_guard.hpp): `hash2:cfg` for two.
std::string copied_key(const Context& context, std::string_view structure, std::string_view name);

// Returns the namespace followed by `key`, a whole key that the user gave (`--key`). Throws InvalidInput if
// the result is not a valid key.
std::string whole_key(std::string_view key_prefix, std::string_view key);

// Returns `base` + ':' + the encoded element or its digest. `base` comes from structure_key. The encoding
// keeps '~', but an encoded element that starts with '~' is digested too, so the two forms cannot collide.
std::string element_key(std::string_view base, std::string_view element);
// Returns the element whose element_key has `part` after its base; nullopt for a digest or a wrong encoding.
std::optional<std::string> element_of(std::string_view part);

// The number of shards in the index of a table or hash (mcds-layout(7)).
constexpr std::size_t index_shards = 16;
// Returns the shard that lists an element.
std::size_t index_shard_of(std::string_view element);

// placed() recognizes by name the keys that belong to other keys, for keys that a user gave or a server
// listed. Structures do not use it: they state what a part belongs to (Request::with).
//
//   lock:<name>:fence                             with lock:<name>
//   array[N]:<name>:s:<identifier>                with array[N]:<name>
//   table[N]:<name>:i[:<shard>]:s:<identifier>    with the text before :s:, and likewise for hash
//   eventlog[N]:<name>:<C>x<N>:<i>.<k>            with eventlog[N]:<name>:<C>x<N>:<i>

// Returns the placement of `key`, which begins with `key_prefix`. A key that is not a part is placed by
// itself.
PlacedKey placed(std::string key, std::string_view key_prefix);

// Returns true for a segment of a journal. Every copy has its own segments, with names that no other copy
// has.
bool is_segment(const PlacedKey& key);

// structure_named() recognizes the structure of a key by the key alone, for lists of live keys. Structures'
// names may contain colons, so another program's key with such a name looks like a part.

struct StructureName {
  std::string_view structure;  // `lock`, `counter`, …
  std::string_view name;       // the structure's name
  std::size_t copies = 1;      // as in the key
  bool in_several() const { return !has_single_copy(copies); }
  // Returns the number of copies. A lock's key does not contain it, so a lock has as many as are configured.
  std::size_t copies_or(std::size_t configured) const { return structure == "lock" ? configured : copies; }
  // True for the root: a key that exists as long as the structure does.
  bool is_root = false;
};

// Returns the structure of `key`, given without its namespace, or nullopt if the key is not ours.
std::optional<StructureName> structure_named(std::string_view key);

struct NameInNamespace {
  std::string_view key_prefix;
  StructureName name;
};
// Does the same for a complete key. If `key_prefix` is empty, any namespace is accepted.
std::optional<NameInNamespace> structure_in(std::string_view key, std::string_view key_prefix);

// Returns true for the key that every server has, with different values: its right to vote on locks.
bool is_vote_key(std::string_view key);
// Returns true for a lock, its fence or a vote. If another client removed it, a lock could have two holders.
bool is_relied_on(std::string_view key, std::string_view key_prefix);

// Returns true for a token and a JSON object, as in the value of a held lock.
bool is_lock_value(std::string_view value);

}  // namespace mcds
