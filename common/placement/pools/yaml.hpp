// A YAML document as a tree, read by libyaml: enough for other programs' pool files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mcds {

struct YamlNode {
  std::string name;  // of a member of a mapping
  std::string scalar;
  std::vector<YamlNode> elements;  // of a sequence
  std::vector<YamlNode> members;   // of a mapping, in order

  const YamlNode* find(std::string_view member_name) const;
  // The scalar of a member, or `otherwise`.
  std::string text(std::string_view member_name, std::string_view otherwise) const;
};

// The first document. Throws Failure(configuration) with the line if it is not YAML; also if it nests too
// deep or is too large, aliases written out, before it takes memory.
YamlNode parse_yaml(std::string_view text);

}  // namespace mcds
