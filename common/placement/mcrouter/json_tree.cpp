#include "common/placement/mcrouter/json_tree.hpp"

#include <algorithm>

#include "common/base/errors.hpp"
#include "common/base/json.hpp"

namespace mcds {

namespace {

constexpr std::string_view space = " \t\r\n";

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
        const auto last = text.find_last_not_of(space);
        if (last != std::string::npos && text[last] == ',') text.resize(last);
      }
      text += loose[i++];
    }
  }
  return text;
}

void refuse_depth(std::string_view json) {
  std::size_t depth = 0;
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '"') i = end_of_string(json, i) - 1;
    if (json[i] == ']' || json[i] == '}') --depth;
    if ((json[i] == '[' || json[i] == '{') && ++depth > deepest_json) {
      throw Failure(ErrorCode::configuration,
                    "the file nests more than " + std::to_string(deepest_json) + " levels deep");
    }
  }
}

// Walks what is known to be JSON of bounded depth.
class Walker {
 public:
  explicit Walker(std::string_view json) : json_(json) {}

  JsonNode value() {
    JsonNode node;
    const char c = peek();
    if (c == '{' || c == '[') {
      container(node, c == '{');
    } else if (c == '"') {
      node.kind = JsonNode::Kind::string;
      node.text = string();
    } else {
      const auto end = std::min(json_.find_first_of(" \t\r\n,]}", at_), json_.size());
      node.text = json_.substr(at_, end - at_);
      at_ = end;
      node.kind = c == 'n'               ? JsonNode::Kind::null
                  : c == 't' || c == 'f' ? JsonNode::Kind::boolean
                                         : JsonNode::Kind::number;
    }
    return node;
  }

 private:
  char peek() {
    at_ = json_.find_first_not_of(space, at_);
    return json_[at_];
  }

  std::string string() {
    const std::size_t end = end_of_string(json_, at_);
    const std::string_view literal = json_.substr(at_, end - at_);
    at_ = end;
    if (literal.find('\\') == std::string_view::npos)
      return std::string(literal.substr(1, literal.size() - 2));
    return json_unquote(literal).value_or("");
  }

  void container(JsonNode& node, bool object) {
    node.kind = object ? JsonNode::Kind::object : JsonNode::Kind::array;
    ++at_;
    while (peek() != '}' && json_[at_] != ']') {
      if (json_[at_] == ',') ++at_, peek();
      if (object) {
        node.members.emplace_back(string(), JsonNode());
        peek();
        ++at_;  // the colon
        node.members.back().second = value();
      } else {
        node.elements.push_back(value());
      }
    }
    ++at_;
  }

  std::string_view json_;
  std::size_t at_ = 0;
};

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
  refuse_depth(json);
  if (!is_json(json)) throw Failure(ErrorCode::configuration, "the file is not JSON");
  return Walker(json).value();
}

}  // namespace mcds
