// What must not be put back from a file: a lock that its holder gave up would be held again, and a copy of
// something that is kept several times would undo what the others know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mcds {

// Whether removing it, or putting it back, would give a lock two holders or break a change that is under way:
// locks, with any value, since any holds one, their fences, votes, marks. In other namespaces than ours, and
// of a cache's rebuild, the value tells a lock from an application's key of such a name.
bool is_guarded(std::string_view key, std::string_view key_prefix, std::string_view value);

// What a key is to a file of items. `items`: an application's. `structure`: one of ours that may be saved.
enum class Savable { item, counter, structure, never };

struct SavedAs {
  Savable what = Savable::item;
  const char* why = nullptr;         // never: a word
  std::string_view structure = {};   // structure, counter: `table`, …
  std::string_view name = {};        // of it
  std::string_view key_prefix = {};  // its namespace
};
// By its name alone. `copies`: in how many the session keeps what does not say it itself.
SavedAs saved_as(std::string_view key, std::string_view key_prefix, std::size_t copies);

// By what was read of it, too; nullptr: it may be saved.
const char* never_saved(const SavedAs& as, std::string_view key, std::string_view value, std::uint32_t flags);

}  // namespace mcds
