#include "common/placement/pools/yaml.hpp"

#include <yaml.h>

#include "common/base/errors.hpp"

namespace mcds {

namespace {

constexpr int deepest = 32;

struct Parser {
  yaml_parser_t parser;
  yaml_document_t document;
  bool loaded = false;

  explicit Parser(std::string_view text) {
    if (yaml_parser_initialize(&parser) == 0)
      throw Failure(ErrorCode::system, "no memory for the YAML parser");
    yaml_parser_set_input_string(&parser, reinterpret_cast<const unsigned char*>(text.data()), text.size());
    loaded = yaml_parser_load(&parser, &document) != 0;
  }
  ~Parser() {
    if (loaded) yaml_document_delete(&document);
    yaml_parser_delete(&parser);
  }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;
};

YamlNode convert(yaml_document_t& document, const yaml_node_t& node, int depth) {
  if (depth > deepest) throw Failure(ErrorCode::configuration, "the YAML nests too deep");
  const auto child = [&](int index) {
    return convert(document, *yaml_document_get_node(&document, index), depth + 1);
  };
  YamlNode result;
  if (node.type == YAML_SCALAR_NODE) {
    result.scalar.assign(reinterpret_cast<const char*>(node.data.scalar.value), node.data.scalar.length);
  } else if (node.type == YAML_SEQUENCE_NODE) {
    for (const auto* item = node.data.sequence.items.start; item != node.data.sequence.items.top; ++item) {
      result.elements.push_back(child(*item));
    }
  } else if (node.type == YAML_MAPPING_NODE) {
    for (const auto* pair = node.data.mapping.pairs.start; pair != node.data.mapping.pairs.top; ++pair) {
      result.members.push_back(child(pair->value));
      result.members.back().name = child(pair->key).scalar;
    }
  }
  return result;
}

}  // namespace

const YamlNode* YamlNode::find(std::string_view member_name) const {
  for (const YamlNode& member : members) {
    if (member.name == member_name) return &member;
  }
  return nullptr;
}

std::string YamlNode::text(std::string_view member_name, std::string_view otherwise) const {
  const YamlNode* node = find(member_name);
  return node == nullptr ? std::string(otherwise) : node->scalar;
}

YamlNode parse_yaml(std::string_view text) {
  Parser parser(text);
  if (!parser.loaded) {
    throw Failure(ErrorCode::configuration,
                  "no valid YAML at line " + std::to_string(parser.parser.problem_mark.line + 1));
  }
  const yaml_node_t* root = yaml_document_get_root_node(&parser.document);
  return root == nullptr ? YamlNode{} : convert(parser.document, *root, 0);
}

}  // namespace mcds
