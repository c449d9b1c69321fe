#include "common/placement/mcrouter/json_tree.hpp"

#include <algorithm>

#include "common/base/errors.hpp"
#include "common/base/json_reader.hpp"

namespace mcds {

namespace {

// Returns the end of the string literal or comment that starts at `from`, or from + 1 if none does.
std::size_t end_of_token(std::string_view text, std::size_t from) {
  const std::string_view two = text.substr(from, 2);
  const auto behind = [&](std::size_t end, std::size_t size) {
    return std::min(end, text.size() - size) + size;
  };
  if (two == "//") return behind(text.find_first_of("\r\n", from), 0);
  if (two == "/*") return behind(text.find("*/", from + 2), 2);
  std::size_t at = from + 1;
  while (two.front() == '"' && at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return two.front() == '"' ? behind(at, 1) : at;
}

// Replaces the comma before a closing bracket by a blank.
std::string without_last_commas(std::string_view loose) {
  std::string text(loose);
  std::size_t comma = std::string::npos, end = 0;  // a comma that only blanks and comments follow
  for (std::size_t i = 0; i < text.size(); i = end) {
    end = end_of_token(text, i);
    const char c = text[i];
    if ((c == ']' || c == '}') && comma != std::string::npos) text[comma] = ' ';
    const bool blank =
        (c == '/' && end > i + 1) || std::string_view(" \t\r\n").find(c) != std::string_view::npos;
    if (!blank) comma = c == ',' ? i : std::string::npos;
  }
  return text;
}

}  // namespace

const JsonNode* member_of(const JsonNode& node, std::string_view name) {
  const auto found = node.find(name);
  return found == node.end() ? nullptr : &*found;
}

std::string string_at(const JsonNode& node, std::string_view name, std::string_view otherwise) {
  const JsonNode* member = member_of(node, name);
  return std::string(member != nullptr && member->is_string() ? text_of(*member) : otherwise);
}

std::string text_of(const JsonNode& node) {
  if (node.is_string()) return node.get_ref<const std::string&>();
  return node.is_structured() ? "" : node.dump();
}

const JsonNode::array_t& elements_of(const JsonNode& node) {
  static const JsonNode::array_t none;
  return node.is_array() ? node.get_ref<const JsonNode::array_t&>() : none;
}

const JsonNode::object_t& members_of(const JsonNode& node) {
  static const JsonNode::object_t none;
  return node.is_object() ? node.get_ref<const JsonNode::object_t&>() : none;
}

JsonNode parse_json_tree(std::string_view text) {
  const std::string json = without_last_commas(text);
  const auto check_depth = [](const JsonPart& part) {
    if (part.kind == JsonPart::Kind::open && part.depth >= deepest_levels)
      throw bad_configuration("the file nests more than " + std::to_string(deepest_levels) + " levels deep");
  };
  if (json_fault(json, check_depth, true)) throw bad_configuration("the file is not JSON");
  return JsonNode::parse(json, nullptr, false, true);
}

}  // namespace mcds
