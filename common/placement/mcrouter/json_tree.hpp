// A JSON text as a tree, for configuration files that are walked in several directions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mcds {

struct JsonNode {
  enum class Kind { null, boolean, number, string, array, object };
  using Member = std::pair<std::string, JsonNode>;
  Kind kind = Kind::null;
  std::string text = {};  // a string's bytes; a number or boolean as written
  std::vector<JsonNode> elements = {};
  std::vector<Member> members = {};  // in order

  bool is(Kind other) const { return kind == other; }
  bool is_string() const { return kind == Kind::string; }
  // The last member of that name, or null.
  const JsonNode* find(std::string_view name) const;
  // The string under that name, or `otherwise`.
  std::string string_at(std::string_view name, std::string_view otherwise = "") const;
};

// How deep the lists and objects of a file may nest.
constexpr std::size_t deepest_levels = 100;

// One JSON value. Allowed besides: // and /* */ comments, a comma after the last element. Linear in the text;
// throws Failure(configuration) for what is not JSON and for more than deepest_levels levels.
JsonNode parse_json_tree(std::string_view text);

}  // namespace mcds
