#include "common/operations/not_saveable.hpp"

#include <array>

#include "common/base/bytes.hpp"
#include "common/base/json.hpp"
#include "common/operations/structure_merger.hpp"
#include "common/primitives/seal.hpp"
#include "common/structures/cache/entry.hpp"
#include "common/structures/lock/lock.hpp"

namespace mcds {

namespace {

using moving::Kind;

bool is_probe(std::string_view key, std::string_view key_prefix) {
  return key.starts_with(key_prefix) && key.substr(key_prefix.size()).starts_with("mcds:probe:");
}

// Locks can have an application's keys. So can their fences, which start as a time in microseconds. A word
// and any other JSON object may be an application's value.
bool is_of_lock(std::string_view key, std::string_view value) {
  constexpr std::size_t microseconds_digits = 16;
  if (key.ends_with(":fence") && value.size() == microseconds_digits && parse_u64(value)) return true;
  if (!is_lock_value(value)) return false;
  const std::string holder = lock_holder_in(value);
  return std::ranges::any_of(std::array{"acquired_at", "ttl_s", "finished_at"},
                             [&](const char* name) { return json_field(holder, name).has_value(); });
}

// Returns true if the first line has a valid checksum and starts with one of these words.
bool begins_with(std::string_view value, std::initializer_list<std::string_view> words) {
  const auto line = unseal(value.substr(0, value.find('\n')));
  return line && std::ranges::any_of(words, [&](std::string_view word) { return line->starts_with(word); });
}

bool is_of_visitors(const SavedAs& as, std::string_view key, std::string_view value) {
  if (as.is_root) return parse_u64(value).has_value();
  if (key.ends_with(":conf")) return begins_with(value, {"P1 "});
  const bool marked = value.starts_with('V') && value.size() == 17;
  return marked &&
         std::ranges::all_of(value.substr(1), [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}

bool is_word(const char* why, std::string_view word) {
  return why != nullptr && why == word;
}

}  // namespace

bool is_guarded(std::string_view key, std::string_view key_prefix, std::string_view value) {
  const auto ours = structure_in(key, key_prefix);
  const bool rebuild = ours && ours->name.structure == "cache" && !ours->name.is_root;
  if (!is_relied_on(key, key_prefix)) return rebuild && is_lock_value(value);
  if (!ours || ours->name.structure != "lock" || ours->key_prefix == key_prefix) return true;
  return is_lock_value(value) || (value.size() == 16 && parse_hex64(value)) || key.ends_with(":fence");
}

SavedAs saved_as(std::string_view key, std::string_view key_prefix) {
  if (is_vote_key(key) || is_probe(key, key_prefix)) return {.what = Savable::never, .why = "votes"};
  const auto ours = structure_in(key, key_prefix);
  if (!ours) return {};
  const std::string_view structure = ours->name.structure;
  // The JSON form of an array is treated like an application's item.
  if (structure == "array" && key.ends_with(":json")) return {};
  SavedAs as{.what = structure == "counter" ? Savable::counter : Savable::structure,
             .structure = structure,
             .name = ours->name.name,
             .key_prefix = ours->key_prefix,
             .kind = moving::kind_of(*ours, key.substr(ours->key_prefix.size())),
             .several = ours->name.in_several(),
             .exact = ours->key_prefix.size() == key_prefix.size(),
             .is_root = ours->name.is_root};
  as.root = key.substr(0, static_cast<std::size_t>(as.name.data() + as.name.size() - key.data()));
  if (structure == "lock" || (structure == "cache" && !as.is_root))
    as.why = "locks";
  else if (structure == "cache" || structure == "cachetag")
    as.why = "cache";
  else if (as.several)
    as.why = "copies";
  if (as.why != nullptr) as.what = Savable::never;
  as.grouped = structure != "lock" && structure != "cache" && structure != "cachetag" &&
               structure != "counter" && !is_word(as.why, "locks");
  as.element = (structure == "table" || structure == "hash") && key.substr(as.root.size()).starts_with(":v:");
  as.tells = as.is_root || as.kind == Kind::journal || as.kind == Kind::directory;
  return as;
}

bool is_of(const SavedAs& as, std::string_view key, std::string_view value, std::uint32_t flags) {
  if (as.structure.empty())
    return as.what == Savable::never && (!is_vote_key(key) || value == "V0" || value.starts_with("V1"));
  // Any value may hold a lock. In another namespace a token identifies one.
  if (as.structure == "lock")
    return as.exact || is_lock_value(value) || (value.size() == 16 && parse_hex64(value));
  if (is_word(as.why, "locks")) return false;
  if (as.kind == Kind::journal || as.kind == Kind::log_part || as.kind == Kind::directory)
    return moving::StructureMerger::is_of(as.kind, value);
  if (as.structure == "cache") return decode_cache_record(value).has_value();
  if (as.structure == "cachetag") return value.size() == 19 && parse_u64(value);
  if (as.structure == "counter") return begins_with(value, {"C1 ", "C3 ", "S1 "});
  if (as.structure == "eventlog") return begins_with(value, {"P1 "});
  if (as.structure == "visitors") return is_of_visitors(as, key, value);
  // The flags of an element in several copies hold a version.
  return as.element ? as.several && flags != 0 : begins_with(value, {"+ ", "- ", "! ", "= "});  // a segment
}

SavedAs judged(SavedAs as, std::string_view key, std::string_view value, std::uint32_t flags) {
  const auto never = [&](const char* why) {
    as.what = Savable::never;
    as.why = why;
    return as;
  };
  if (is_of_lock(key, value)) return never("locks");
  if (as.what == Savable::item) return as;
  if (!is_of(as, key, value, flags)) {
    as.what = Savable::item;
    as.why = nullptr;
  } else if (as.what == Savable::counter && begins_with(value, {"C3 "})) {
    return never("copies");
  }
  return as;
}

bool selects(const KeySelection& selection, const SavedAs& as) {
  const std::string root(as.root);
  if (selection.has(root)) return true;
  if (as.structure == "table" || as.structure == "hash") return selection.has(root + ":i");
  return (as.structure == "eventlog" || as.structure == "visitors") && selection.has(root + ":conf");
}

std::string full_name(const SavedAs& as) {
  std::string name(as.key_prefix);
  append_all(name, {as.structure, " ", as.name});
  return name;
}

}  // namespace mcds
