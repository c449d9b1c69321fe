// Decides what a key and its value are when items are saved or loaded. A value that mcds did not write
// belongs to an application, whatever its key looks like. Some values must never be loaded: a released lock
// would be held again, and one copy of a replicated structure would undo changes of the others.
#pragma once

#include "common/cluster/keys/live.hpp"
#include "common/operations/spill_file.hpp"

namespace mcds {

// Returns true if removing or restoring the item could give a lock two holders or break a change in progress.
// That holds for votes, fences, and locks with any value, since any value holds a lock. In other namespaces,
// and for a cache's rebuild lock, the value distinguishes a lock from an application's key of that name.
bool is_guarded(std::string_view key, std::string_view key_prefix, std::string_view value);

// item: of an application. structure: ours, may be saved. counter: such a structure with one key.
enum class Savable { item, counter, structure, never };

struct SavedAs {
  Savable what = Savable::item;
  const char* why = nullptr;         // never: the reason, one word
  std::string_view structure = {};   // such as `table`; also set if the value shows that it is no structure
  std::string_view name = {};        // of the structure
  std::string_view key_prefix = {};  // of the structure's namespace
  std::string_view root = {};        // the key up to the end of that name
  moving::Kind kind = moving::Kind::plain;
  bool several = false;  // the key states several copies
  bool exact = false;    // the structure is in the session's namespace itself
  bool grouped = false;  // the structure has several keys, some of which identify it
  bool tells = false;    // this key identifies the structure
  bool is_root = false;  // the key that exists as long as the structure
  bool element = false;  // of a table or hash; in one copy it may have any value
};
// Returns what the key is by its name, provided that the value matches.
SavedAs saved_as(std::string_view key, std::string_view key_prefix);

// Returns true if the value is one that mcds stores under such a key.
bool is_of(const SavedAs& as, std::string_view key, std::string_view value, std::uint32_t flags);
// Returns `as`, corrected by the value.
SavedAs judged(SavedAs as, std::string_view key, std::string_view value, std::uint32_t flags);

// Returns true if the selection includes the whole structure, by its name or root key.
bool selects(const KeySelection& selection, const SavedAs& as);

// Returns the structure with its namespace, such as `table blocked`.
std::string full_name(const SavedAs& as);

}  // namespace mcds
