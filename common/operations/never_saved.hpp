// What a key and its value are to a file of items. What is not as mcds writes it is an application's,
// whatever its key is called. What must not be put back from a file: a lock that its holder gave up would be
// held again, and a copy of something that is kept several times would undo what the others know.
#pragma once

#include "common/cluster/keys/live.hpp"
#include "common/operations/spool.hpp"

namespace mcds {

// Whether removing it, or putting it back, would give a lock two holders or break a change that is under way:
// locks, with any value, since any holds one, their fences, votes. In other namespaces than ours, and
// of a cache's rebuild, the value tells a lock from an application's key of such a name.
bool is_guarded(std::string_view key, std::string_view key_prefix, std::string_view value);

// `items`: an application's. `structure`: one of ours that may be saved; `counter`: one that is a single key.
enum class Savable { item, counter, structure, never };

struct SavedAs {
  Savable what = Savable::item;
  const char* why = nullptr;         // never: a word
  std::string_view structure = {};   // `table`, …; also of what turns out to be no structure
  std::string_view name = {};        // of it
  std::string_view key_prefix = {};  // its namespace
  std::string_view root = {};        // the key up to the end of that name
  moving::Kind kind = moving::Kind::plain;
  bool several = false;  // its key says that there are several copies
  bool exact = false;    // the structure's name stands right behind the session's namespace
  bool grouped = false;  // one of several keys, of which some say what all are
  bool tells = false;    // this is one of those
  bool is_root = false;  // by which it is known
  bool element = false;  // of a table or hash: in one copy it may have any value
};
// Returns what it is by its name, if its value is what that is made of.
SavedAs saved_as(std::string_view key, std::string_view key_prefix);

// Whether the value is what mcds stores under such a key.
bool is_of(const SavedAs& as, std::string_view key, std::string_view value, std::uint32_t flags);
// What it is by its value, too.
SavedAs judged(SavedAs as, std::string_view key, std::string_view value, std::uint32_t flags);

// Of a structure all keys or none: the selection is about its name, or the key by which it is known.
bool selects(const KeySelection& selection, const SavedAs& as);

// `table blocked`, its namespace in front.
std::string full_name(const SavedAs& as);

}  // namespace mcds
