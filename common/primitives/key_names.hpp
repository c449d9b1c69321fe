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

// Keys that belong to other keys, recognised by name: for keys that a user gave or a server listed.
// Structures do not use this: they say what a part belongs to (Request::with).
//
//   lock:<name>:fence                             with lock:<name>
//   array[N]:<name>:s:<16 hex>                    with array[N]:<name>
//   table[N]:<name>:i[:<shard>]:s:<16 hex>        with the text before :s:, and likewise for hash
//   eventlog[N]:<name>:<C>x<N>:<i>.<k>            with eventlog[N]:<name>:<C>x<N>:<i>

// `key` with its namespace `key_prefix`; a key that is not a part is placed by its own bytes.
PlacedKey placed(std::string key, std::string_view key_prefix);

// Of a journal: each of several copies has segments of its own, under names that no other has.
bool is_segment(const PlacedKey& key);

// The structure to which a key belongs, by its name alone: for lists of live keys. A structure's name may
// have colons, so a key of another program with such a name is mistaken for one.

struct StructureName {
  std::string_view structure;  // `lock`, `counter`, …
  std::string_view name;       // of the structure
  std::size_t copies = 1;      // as the key says it
  bool in_several() const { return !is_only(copies); }
  // Returns the number of copies: a lock's key says none, so a lock has as many as are configured.
  std::size_t copies_or(std::size_t configured) const { return structure == "lock" ? configured : copies; }
  // Whether this is the key by which it is known: one of those that are there while it is.
  bool is_root = false;
};

// `key` without its namespace; nullopt if it is not ours.
std::optional<StructureName> structure_named(std::string_view key);

struct NameInNamespace {
  std::string_view key_prefix;
  StructureName name;
};
// The same of a whole key; where `key_prefix` is empty, in any namespace.
std::optional<NameInNamespace> structure_in(std::string_view key, std::string_view key_prefix);

// Whether it is one that every server has, with another value: which votes it may give on locks.
bool is_vote_key(std::string_view key);
// Returns whether `key` names a lock with its fence, or a vote. Removed by somebody else than who uses it, it
// would give a lock two holders.
bool is_relied_on(std::string_view key, std::string_view key_prefix);

// Whether this is what a lock's key holds while somebody has it.
bool is_lock_value(std::string_view value);

}  // namespace mcds
