#include "tools/cli/fields.hpp"

#include <algorithm>

#include "common/base/bytes.hpp"

namespace mcds {

namespace {

using Lines = std::vector<std::string_view>;

// Removes and returns the text up to the next separator outside braces.
std::string_view take_until(std::string_view& text, char separator) {
  std::size_t end = 0;
  for (int depth = 0; end < text.size() && (depth > 0 || text[end] != separator); ++end)
    depth += text[end] == '{' ? 1 : text[end] == '}' ? -1 : 0;
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return taken;
}

std::vector<std::string> parts_of(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) parts.emplace_back(take_until(text, separator));
  return parts;
}

// Returns the definition of a field. The verb's own definition wins over the dictionary.
std::string_view entry_of(std::string_view name, const Lines& own) {
  const auto behind_name = [&](std::string_view line) -> std::string_view {
    return line.starts_with(name) && line.substr(name.size()).starts_with(' ') ? line.substr(name.size() + 1)
                                                                               : std::string_view();
  };
  static const Lines dictionary = split(field_dictionary, '\n');
  for (const Lines* lines : {&own, &dictionary}) {
    for (const std::string_view line : *lines) {
      if (const auto entry = behind_name(line); !entry.empty()) return entry;
    }
  }
  throw std::logic_error("no field " + std::string(name) + " in the dictionary");
}

Field field_of(std::string_view word, const Lines& own) {
  Field field;
  field.optional = word.ends_with('?');
  if (field.optional) word.remove_suffix(1);
  field.name = take_until(word, ':');
  std::string_view entry = entry_of(field.name, own);
  field.kind = take_until(entry, ' ');
  field.meaning = entry;
  if (!word.empty()) field.kind = word;
  return field;
}

std::vector<Field> fields_in(std::string_view words, const Lines& own) {
  std::vector<Field> fields;
  for (const std::string& word : parts_of(words, ' ')) {
    if (word == "*") {
      fields.push_back({word, "any", "statistics, by the names that the server gives them", true});
    } else if (word.starts_with('@')) {
      for (Field& field : fields_in(entry_of(word, own), own)) {
        field.shared = true;
        fields.push_back(std::move(field));
      }
    } else {
      fields.push_back(field_of(word, own));
    }
  }
  return fields;
}

bool may_be_bytes(const Field& field) {
  return field.kind.starts_with("bytes") || field.kind.starts_with("any");
}

JsonObject object_schema(const std::vector<Field>& fields, const Lines& own);

JsonObject kind_schema(const std::string& kind, const Lines& own) {
  JsonObject schema;
  const auto kinds = parts_of(kind, '|');
  if (kinds.size() > 1) {
    std::vector<JsonObject> any;
    for (const std::string& one : kinds) any.push_back(kind_schema(one, own));
    return schema.objects("anyOf", any);
  }
  if (kind.ends_with("[]"))
    return schema.bytes("type", "array").object("items", kind_schema(kind.substr(0, kind.size() - 2), own));
  if (kind.starts_with('{')) return object_schema(fields_in(kind.substr(1, kind.size() - 2), own), own);
  if (kind == "any") return schema;
  if (kind == "counts")
    return schema.bytes("type", "object").object("additionalProperties", kind_schema("integer", own));
  const bool is_text = kind == "bytes" || kind == "time";
  schema.bytes("type", is_text ? "string" : kind);
  if (kind == "time") schema.bytes("format", "date-time");
  return schema;
}

// Returns the schema of an object. Other fields are allowed, because later versions may add some.
JsonObject object_schema(const std::vector<Field>& fields, const Lines& own) {
  JsonObject properties;
  std::vector<std::string> required;
  std::vector<JsonObject> either;
  bool open = false;
  for (const Field& field : fields) {
    open = open || field.name == "*";
    if (field.name == "*") continue;
    properties.object(field.name, kind_schema(field.kind, own).bytes("description", field.meaning));
    if (may_be_bytes(field))
      properties.object(field.name + "_b64",
                        kind_schema(field.kind.ends_with("[]") ? "string[]" : "string", own));
    if (!field.optional && may_be_bytes(field))
      either.push_back(
          JsonObject().objects("oneOf", {JsonObject().strings("required", {field.name}),
                                         JsonObject().strings("required", {field.name + "_b64"})}));
    else if (!field.optional)
      required.push_back(field.name);
  }
  JsonObject schema =
      JsonObject("type", "object").object("properties", properties).strings("required", required);
  if (!either.empty()) schema.objects("allOf", either);
  if (open) schema.boolean("additionalProperties", true);
  return schema;
}

}  // namespace

std::vector<Field> fields_of(const Verb& verb) {
  std::vector<Field> all;
  for (const std::string_view line : verb.answers()) {
    for (Field& field : fields_in(line, verb.own_fields())) {
      const auto known = std::ranges::find(all, field.name, &Field::name);
      if (known == all.end()) all.push_back(std::move(field));
    }
  }
  return all;
}

JsonObject schema_of(const Command& command, const Verb& verb) {
  std::vector<JsonObject> lines;
  for (const std::string_view line : verb.answers())
    lines.push_back(object_schema(fields_in(line, verb.own_fields()), verb.own_fields()));
  JsonObject schema("$schema", "https://json-schema.org/draft/2020-12/schema");
  schema.bytes("title", "mcds " + command.name() + (verb.name().empty() ? "" : " " + verb.name()));
  schema.bytes("description", verb.summary());
  return lines.empty() ? schema.object("not", {}) : schema.objects("anyOf", lines);
}

bool is_declared(const Verb& verb, const std::string& answer) {
  const auto members = json_members(answer).value_or(std::vector<JsonMember>());
  return std::ranges::any_of(verb.answers(), [&](std::string_view line) {
    const auto fields = fields_in(line, verb.own_fields());
    const auto is = [](const Field& field, const JsonMember& member) {
      return field.name == member.name || field.name + "_b64" == member.name || field.name == "*";
    };
    const auto is_known = [&](const JsonMember& member) {
      return std::ranges::any_of(fields, [&](const Field& field) { return is(field, member); });
    };
    const auto is_there = [&](const Field& field) {
      return std::ranges::any_of(members, [&](const JsonMember& member) { return is(field, member); });
    };
    return std::ranges::all_of(members, is_known) &&
           std::ranges::all_of(fields, [&](const Field& one) { return one.optional || is_there(one); });
  });
}

}  // namespace mcds
