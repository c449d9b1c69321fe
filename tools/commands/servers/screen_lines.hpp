// mcds servers --every as one screen: servers as rows, columns by importance as far as the width goes.
#pragma once

#include "tools/commands/commands.hpp"

namespace mcds {

struct ServerRow {
  std::string name;  // never cut
  JsonObject line;   // as `servers --every` has it
};

// The head and a row for each server, no line wider than `width` unless a name is; where a name leaves no
// room for figures, they stand below it. At most `height` lines: the rows that do not fit are counted in the
// last one.
std::vector<std::string> server_lines(const std::vector<ServerRow>& rows, std::size_t width,
                                      std::size_t height);

}  // namespace mcds
