#include "common/operations/never_saved.hpp"

#include "common/base/bytes.hpp"
#include "common/primitives/structure_names.hpp"

namespace mcds {

bool is_guarded(std::string_view key, std::string_view key_prefix, std::string_view value) {
  const auto ours = structure_in(key, key_prefix);
  const bool rebuild = ours && ours->name.structure == "cache" && !ours->name.is_root;
  if (!is_relied_on(key, key_prefix)) return rebuild && is_lock_value(value);
  if (!ours || ours->name.structure != "lock" || ours->key_prefix == key_prefix) return true;
  return is_lock_value(value) || (value.size() == 16 && parse_hex64(value)) || key.ends_with(":fence");
}

SavedAs saved_as(std::string_view key, std::string_view key_prefix, std::size_t copies) {
  if (is_vote(key) || key.find("mcds:probe:") != std::string_view::npos)
    return {.what = Savable::never, .why = "votes"};
  const auto ours = structure_in(key, key_prefix);
  if (!ours) return {};
  const std::string_view structure = ours->name.structure;
  SavedAs as{.structure = structure, .name = ours->name.name, .key_prefix = ours->key_prefix};
  const auto never = [&](const char* why) {
    as.what = Savable::never;
    as.why = why;
    return as;
  };
  if (ours->name.of_recopy) return never("marks");
  if (structure == "lock" || (structure == "cache" && !ours->name.is_root)) return never("locks");
  if (structure == "array" && key.ends_with(":json:lock")) return never("locks");
  if (structure == "cache" || structure == "cachetag") return never("cache");
  const bool unnumbered = structure == "counter" || structure == "visitors";
  if (!is_only(ours->name.copies_or(unnumbered ? copies : 1))) return never("copies");
  as.what = structure == "counter" ? Savable::counter : Savable::structure;
  return as;
}

const char* never_saved(const SavedAs& as, std::string_view key, std::string_view value,
                        std::uint32_t flags) {
  if (as.what == Savable::never) return as.why;
  // Under any name: locks can have an application's keys.
  if (is_lock_value(value)) return "locks";
  constexpr std::size_t microseconds_digits = 16;
  if (key.ends_with(":fence") && value.size() == microseconds_digits && parse_u64(value)) return "locks";
  // Of what does not say its copies by its key, the flags do: they are its version then.
  const bool unnumbered = as.what == Savable::counter || as.structure == "visitors";
  return unnumbered && flags != 0 ? "copies" : nullptr;
}

}  // namespace mcds
