// `mcds __complete WORD…`, called by the completion scripts of the shells. Never touches the network.
#pragma once

#include <string>
#include <vector>

namespace mcds {

// Candidates for the last of `words` (what stands before the cursor, which may be empty; the program's own
// name is not among them), each `word<TAB>help`. A line `!files` asks the shell for file names, `!command N`
// for the completion of the command line that starts at word N (from 0) of `words`.
std::vector<std::string> completions(const std::vector<std::string>& words);

}  // namespace mcds
