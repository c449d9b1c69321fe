#include "common/primitives/key_names.hpp"

#include <array>

#include "common/base/bytes.hpp"

namespace mcds {

namespace {

void check_bytes(std::string_view bytes, std::string_view what) {
  if (is_one_word(bytes)) return;
  throw InvalidInput(std::string(what) +
                     " must not contain spaces or control characters; memcached does not allow them");
}

void check_key(std::string_view key, std::string_view what, std::size_t limit) {
  check_bytes(key, what);
  if (key.size() > limit) {
    throw InvalidInput(std::string(what) + " is too long: the key would have " + std::to_string(key.size()) +
                       " bytes with its namespace, but the limit is " + std::to_string(limit) +
                       "; shorten it");
  }
}

}  // namespace

void check_key_prefix(std::string_view key_prefix) {
  check_bytes(key_prefix, "the namespace");
}

std::string structure_key(const Context& context, std::string_view structure, std::string_view name) {
  if (name.empty()) throw InvalidInput("an empty name; give the " + std::string(structure) + " a name");
  std::string key;
  append_all(key, {context.key_prefix, structure, ":", name});
  check_key(key, "the name", max_structure_key_size);
  return key;
}

std::string copied_key(const Context& context, std::string_view structure, std::string_view name) {
  std::string key = structure_key(context, structure, name);
  key.insert(context.key_prefix.size() + structure.size(),
             value_if_replicated(context.copies, std::to_string(context.copies)));
  return key;
}

std::string whole_key(std::string_view key_prefix, std::string_view key) {
  if (key.empty()) throw InvalidInput("the key is empty; give one of 1 to 250 bytes");
  std::string whole;
  append_all(whole, {key_prefix, key});
  check_key(whole, "the key", max_key_size);
  return whole;
}

std::string element_key(std::string_view base, std::string_view element) {
  const std::size_t start = base.size() + 1;
  std::string key;
  key.reserve(start + element.size());
  key.append(base).append(1, ':');
  append_percent_encoded(key, element);
  if (key.size() > max_key_size || (key.size() > start && key[start] == '~')) {
    key.resize(start);
    append_all(key, {"~", digest128(element)});
  }
  return key;
}

std::size_t index_shard_of(std::string_view element) {
  return crc32(element) % index_shards;
}

std::optional<std::string> element_of(std::string_view part) {
  return part.starts_with('~') ? std::nullopt : percent_decode(part);
}

// The functions below take key names apart from their end.
namespace {

using View = std::string_view;

constexpr std::array<View, 9> words{"lock",  "counter", "visitors", "eventlog", "array",
                                    "table", "hash",    "cache",    "cachetag"};

using Bytes = std::array<bool, 256>;
constexpr Bytes bytes_of(View text) {
  Bytes bytes{};
  for (const char byte : text) bytes[static_cast<unsigned char>(byte)] = true;
  return bytes;
}
// The first letters of the names of structures, and the bytes after which no structure's name begins.
constexpr Bytes first_letters = bytes_of("lcveath");
constexpr Bytes letters_and_digits =
    bytes_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");

// Removes the last part of `text` and the colon before it, and returns the part.
std::optional<View> take_part(View& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == View::npos || colon == 0) return std::nullopt;
  const View part = text.substr(colon + 1);
  text = text.substr(0, colon);
  return part;
}

bool fits(View part, View wanted) {
  if (wanted == "#") return is_digits(part);
  if (wanted == "@") return is_identifier(part);
  return wanted == "*" || wanted == part;
}

// Removes the last parts of `text` if they are these: words, `#` for a number, `@` for an identifier and `*`
// for anything.
bool take_end(View& text, View parts) {
  View rest = text;
  const std::size_t colon = parts.rfind(':');
  const auto last = take_part(rest);
  if (!last || !fits(*last, colon == View::npos ? parts : parts.substr(colon + 1))) return false;
  if (colon != View::npos && !take_end(rest, parts.substr(0, colon))) return false;
  text = rest;
  return true;
}

// Removes the parts after the name. Returns true if the key is the root.
bool take_element_parts(View& name) {
  if (take_end(name, "v:*")) return false;  // the colons of an element are encoded
  View index = name;
  const bool in_segment = take_end(index, "s:@");
  const bool is_shard = take_end(index, "i:#");
  if (!is_shard && !take_end(index, "i")) return false;
  name = index;
  return !is_shard && !in_segment;
}

bool take_log_parts(View& name) {
  if (take_end(name, "conf")) return true;
  View rest = name;
  if (!take_part(rest)) return false;  // the chunk, or the directory
  take_end(rest, "dir");
  if (const auto shape = take_part(rest); shape && shape->find('x') != View::npos) name = rest;
  return false;
}

// Removes <T>:<p> if T * p is a plausible UNIX time.
bool take_period(View& text) {
  View rest = text;
  const auto period = parse_u64(take_part(rest).value_or(""));
  const auto length = parse_u64(take_part(rest).value_or(""));
  constexpr double earliest = 1e9, latest = 1e11;
  if (!period || !length || rest.empty()) return false;
  const double time = static_cast<double>(*period) * static_cast<double>(*length);
  if (time < earliest || time > latest) return false;
  text = rest;
  return true;
}

// Removes <T>:<p> and returns true, or removes <T>:<p>:<id> and returns false, from visitors:<name>:….
bool take_visitor_parts(View& name) {
  if (take_end(name, "conf")) return false;
  if (take_period(name)) return true;
  View rest = name;
  if (take_part(rest) && take_period(rest)) name = rest;
  return false;
}

bool take_parts(View structure, View& name) {
  if (structure == "lock") {
    const bool is_fence = take_end(name, "fence");
    take_end(name, "slot:#");
    return !is_fence;
  }
  if (structure == "array") return !take_end(name, "s:@");
  if (structure == "eventlog") return take_log_parts(name);
  if (structure == "table" || structure == "hash") return take_element_parts(name);
  if (structure == "cachetag") return false;
  if (structure == "cache") return !take_end(name, "rebuild");
  if (structure == "counter") return !take_end(name, "limit:#:#") && !take_end(name, "limit:#:sliding");
  return take_visitor_parts(name);
}

// Removes `.<k>` from <name>:<C>x<N>:<i>.<k>.
bool take_further_part(View& text) {
  const auto without_number = [](View from, char mark) -> std::optional<View> {
    const std::size_t end = from.find_last_not_of("0123456789");
    if (end == View::npos || end + 1 == from.size() || from[end] != mark) return std::nullopt;
    return from.substr(0, end);
  };
  const auto first = without_number(text, '.');
  auto before = first;
  for (const char mark : {':', 'x', ':'}) before = before ? without_number(*before, mark) : before;
  if (before) text = *first;
  return before.has_value();
}

// Removes from `text` the suffix that makes it a part of another key. Returns false if there is none.
bool take_own_part(View structure, View& text) {
  if (structure == "lock") return take_end(text, "fence");
  if (structure == "array") return take_end(text, "s:@");
  if (structure == "eventlog") return take_further_part(text);
  if (structure != "table" && structure != "hash") return false;
  View journal = text;
  if (!take_end(journal, "s:@")) return false;
  View index = journal;
  take_end(index, "#");
  if (!index.ends_with(":i")) return false;
  text = journal;
  return true;
}

struct Words {
  View structure, number, rest;
};

// Splits `<structure>[<number>]:<rest>`.
std::optional<Words> words_of(View key) {
  for (const View word : words) {
    if (!key.starts_with(word.front()) || !key.starts_with(word)) continue;
    const View rest = key.substr(word.size());
    const std::size_t colon = rest.find_first_not_of("0123456789");
    if (colon == View::npos || rest[colon] != ':' || colon + 1 == rest.size()) continue;
    return Words{word, rest.substr(0, colon), rest.substr(colon + 1)};
  }
  return std::nullopt;
}

}  // namespace

PlacedKey placed(std::string key, std::string_view key_prefix) {
  View whole = key;
  if (!whole.starts_with(key_prefix)) return {std::move(key)};
  whole.remove_prefix(key_prefix.size());
  auto found = words_of(whole);
  if (!found || !take_own_part(found->structure, found->rest)) return {std::move(key)};
  const auto end = static_cast<std::size_t>(found->rest.data() + found->rest.size() - key.data());
  std::string with = key.substr(0, end);
  return {std::move(key), std::move(with)};
}

bool is_segment(const PlacedKey& key) {
  constexpr View segment_mark = ":s:";
  return !key.with.empty() && key.key.compare(key.with.size(), segment_mark.size(), segment_mark) == 0;
}

std::optional<StructureName> structure_named(std::string_view key) {
  const auto found = words_of(key);
  if (!found) return std::nullopt;
  const auto& [word, number, rest] = *found;
  StructureName result{word, rest};
  if (!number.empty()) {
    const auto copies = parse_u64(number);
    if (!copies || *copies < 2 || *copies > 99) return std::nullopt;
    result.copies = static_cast<std::size_t>(*copies);
  }
  result.is_root = take_parts(word, result.name);
  return result;
}

std::optional<NameInNamespace> structure_in(View key, View key_prefix) {
  if (!key_prefix.empty()) {
    if (!key.starts_with(key_prefix)) return std::nullopt;
    const auto name = structure_named(key.substr(key_prefix.size()));
    return name ? std::optional<NameInNamespace>({key_prefix, *name}) : std::nullopt;
  }
  bool in_word = false;
  for (std::size_t at = 0; at < key.size(); ++at) {
    const auto byte = static_cast<unsigned char>(key[at]);
    if (std::exchange(in_word, letters_and_digits[byte]) || !first_letters[byte]) continue;
    if (const auto name = structure_named(key.substr(at))) return NameInNamespace{key.substr(0, at), *name};
  }
  return std::nullopt;
}

bool is_vote_key(View key) {
  return key.find("lockserver:votes:") != View::npos;
}

bool is_relied_on(View key, View key_prefix) {
  if (is_vote_key(key)) return true;
  const auto ours = structure_in(key, key_prefix);
  return ours && ours->name.structure == "lock";
}

// The value is a token, followed by `.` and the slot if the lock has several, a space and a JSON object.
bool is_lock_value(std::string_view value) {
  const std::size_t blank = value.find(' ');
  if (blank == std::string_view::npos || !is_identifier(value.substr(0, blank))) return false;
  const std::string_view holder = value.substr(blank + 1);
  return holder.starts_with('{') && compact_json(holder);
}

}  // namespace mcds
