// Temporary files without a name: a process that is killed at any point leaves nothing.
#pragma once

#include <string>

namespace mcds {

// $TMPDIR, or /tmp.
std::string temporary_folder();
// A descriptor for reading and writing in that folder; -1 with errno.
int open_unnamed_file();

}  // namespace mcds
