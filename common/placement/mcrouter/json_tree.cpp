#include "common/placement/mcrouter/json_tree.hpp"

#include <algorithm>

#include "common/base/errors.hpp"
#include "common/base/json_reader.hpp"

namespace mcds {

namespace {

constexpr std::string_view blanks = " \t\r\n";

// The end of the string literal that starts at `from`.
std::size_t end_of_string(std::string_view text, std::size_t from) {
  std::size_t at = from + 1;
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text.size());
}

std::size_t end_of_comment(std::string_view text, std::size_t from) {
  const bool line = text[from + 1] == '/';
  const auto end = line ? text.find('\n', from) : text.find("*/", from + 2);
  if (end == std::string_view::npos) return text.size();
  return line ? end : end + 2;
}

// As strict JSON: without comments, and without a comma before a closing bracket.
std::string strict(std::string_view loose) {
  std::string text;
  text.reserve(loose.size());
  for (std::size_t i = 0; i < loose.size();) {
    const std::string_view two = loose.substr(i, 2);
    if (two == "//" || two == "/*") {
      i = end_of_comment(loose, i);
      text += ' ';
    } else if (loose[i] == '"') {
      const std::size_t end = end_of_string(loose, i);
      text += loose.substr(i, end - i);
      i = end;
    } else {
      if (loose[i] == ']' || loose[i] == '}') {
        const auto last = text.find_last_not_of(blanks);
        if (last != std::string::npos && text[last] == ',') text.resize(last);
      }
      text += loose[i++];
    }
  }
  return text;
}

void check(std::string_view json) {
  JsonReader reader(json);
  while (const auto token = reader.next()) {
    const bool opens = token->text == "[" || token->text == "{";
    if (opens && token->depth >= deepest_levels)
      throw bad_configuration("the file nests more than " + std::to_string(deepest_levels) + " levels deep");
  }
  if (!reader.valid()) throw bad_configuration("the file is not JSON");
}

// The value that begins with `token`, of a text that check() has passed.
JsonNode node_of(JsonReader& reader, std::string_view token) {
  using Kind = JsonNode::Kind;
  const char c = token.front();
  if (c == '"') return {Kind::string, json_string_bytes(token)};
  if (c == 'n') return {Kind::null, std::string(token)};
  if (c == 't' || c == 'f') return {Kind::boolean, std::string(token)};
  if (c != '{' && c != '[') return {Kind::number, std::string(token)};
  JsonNode node{c == '{' ? Kind::object : Kind::array};
  for (auto next = reader.next(); next->text != "}" && next->text != "]"; next = reader.next()) {
    if (next->text == "," || next->text == ":") continue;
    if (next->is_key)
      node.members.emplace_back(json_string_bytes(next->text), JsonNode());
    else if (node.kind == Kind::object)
      node.members.back().second = node_of(reader, next->text);
    else
      node.elements.push_back(node_of(reader, next->text));
  }
  return node;
}

}  // namespace

const JsonNode* JsonNode::find(std::string_view name) const {
  const auto last = std::find_if(members.rbegin(), members.rend(),
                                 [&](const auto& member) { return member.first == name; });
  return last == members.rend() ? nullptr : &last->second;
}

std::string JsonNode::string_at(std::string_view name, std::string_view otherwise) const {
  const JsonNode* member = find(name);
  return member != nullptr && member->is_string() ? member->text : std::string(otherwise);
}

JsonNode parse_json_tree(std::string_view text) {
  const std::string json = strict(text);
  check(json);
  JsonReader reader(json);
  const auto first = reader.next();
  return node_of(reader, first->text);
}

}  // namespace mcds
