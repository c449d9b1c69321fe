#include "common/placement/pools/yaml.hpp"

#include <yaml.h>

#include <memory>

#include "common/base/errors.hpp"

namespace mcds {

namespace {

constexpr int deepest = 32;
// Aliases multiply: what they stand for counts each time.
constexpr std::size_t most_nodes = 200'000;
constexpr std::size_t most_scalar_bytes = std::size_t{16} << 20;

Failure too_much(const std::string& what) {
  return {ErrorCode::configuration, "the YAML " + what + "; is this a pool file?"};
}

// libyaml takes time and memory for whatever it is given: what is too deep or too long is refused event by
// event.
void check_size(std::string_view text) {
  yaml_parser_t parser;
  if (yaml_parser_initialize(&parser) == 0) throw Failure(ErrorCode::system, "no memory for the YAML parser");
  const std::unique_ptr<yaml_parser_t, decltype(&yaml_parser_delete)> owner(&parser, yaml_parser_delete);
  yaml_parser_set_input_string(&parser, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  int depth = 0;
  for (std::size_t events = 0;; ++events) {
    yaml_event_t event;
    if (yaml_parser_parse(&parser, &event) == 0) return;  // the loader says where
    const yaml_event_type_t type = event.type;
    yaml_event_delete(&event);
    if (type == YAML_STREAM_END_EVENT || type == YAML_NO_EVENT) return;
    if (type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT) ++depth;
    if (type == YAML_SEQUENCE_END_EVENT || type == YAML_MAPPING_END_EVENT) --depth;
    if (depth > deepest) throw too_much("nests too deep");
    if (events > most_nodes) throw too_much("is too large");
  }
}

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

struct Budget {
  std::size_t nodes = most_nodes;
  std::size_t scalar_bytes = most_scalar_bytes;
};

JsonNode convert(yaml_document_t& document, const yaml_node_t& node, int depth, Budget& left) {
  if (depth > deepest) throw too_much("nests too deep");
  if (left.nodes-- == 0) throw too_much("is too large once its aliases are written out");
  const auto child = [&](int index) {
    return convert(document, *yaml_document_get_node(&document, index), depth + 1, left);
  };
  JsonNode result;
  if (node.type == YAML_SCALAR_NODE) {
    if (node.data.scalar.length > left.scalar_bytes)
      throw too_much("is too large once its aliases are written out");
    left.scalar_bytes -= node.data.scalar.length;
    result.kind = JsonNode::Kind::string;
    result.text.assign(reinterpret_cast<const char*>(node.data.scalar.value), node.data.scalar.length);
  } else if (node.type == YAML_SEQUENCE_NODE) {
    result.kind = JsonNode::Kind::array;
    for (const auto* item = node.data.sequence.items.start; item != node.data.sequence.items.top; ++item) {
      result.elements.push_back(child(*item));
    }
  } else if (node.type == YAML_MAPPING_NODE) {
    result.kind = JsonNode::Kind::object;
    for (const auto* pair = node.data.mapping.pairs.start; pair != node.data.mapping.pairs.top; ++pair) {
      JsonNode value = child(pair->value);
      result.members.emplace_back(child(pair->key).text, std::move(value));
    }
  }
  return result;
}

}  // namespace

JsonNode parse_yaml(std::string_view text) {
  check_size(text);
  Parser parser(text);
  if (!parser.loaded) {
    throw Failure(ErrorCode::configuration,
                  "invalid YAML at line " + std::to_string(parser.parser.problem_mark.line + 1));
  }
  const yaml_node_t* root = yaml_document_get_root_node(&parser.document);
  Budget budget;
  return root == nullptr ? JsonNode{} : convert(parser.document, *root, 0, budget);
}

}  // namespace mcds
