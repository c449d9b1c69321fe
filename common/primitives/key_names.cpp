#include "common/primitives/key_names.hpp"

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/primitives/several/number.hpp"

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
             of_several(context.copies, std::to_string(context.copies)));
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

}  // namespace mcds
