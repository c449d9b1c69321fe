// Reads a JSON text as a tree, for configuration files that are read in several directions. Values that users
// store are never read so: a tree rewrites numbers and drops members of the same name.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace mcds {

using JsonNode = nlohmann::json;

// Returns the last member of that name, or nullptr; also for a node that has no members.
const JsonNode* member_of(const JsonNode& node, std::string_view name);
// Returns the string under that name, or `otherwise`.
std::string string_at(const JsonNode& node, std::string_view name, std::string_view otherwise = "");
// Returns the bytes of a string, a number or word as text; nothing for a list or object.
std::string text_of(const JsonNode& node);
// Return what is in a list or an object; nothing for other nodes.
const JsonNode::array_t& elements_of(const JsonNode& node);
const JsonNode::object_t& members_of(const JsonNode& node);

// The maximum nesting of lists and objects in a file.
constexpr std::size_t deepest_levels = 100;

// Parses one JSON value; // and /* */ comments and a comma after the last element are allowed. Takes linear
// time. Throws Failure(configuration) for invalid JSON and for more than deepest_levels levels.
JsonNode parse_json_tree(std::string_view text);

}  // namespace mcds
