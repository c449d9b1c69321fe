#include "common/base/unnamed_file.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdlib>

namespace mcds {

std::string temporary_folder() {
  const char* set = std::getenv("TMPDIR");
  return set == nullptr || *set == '\0' ? "/tmp" : set;
}

// Some file systems (NFS) know only files with names.
int open_unnamed_file() {
  const std::string folder = temporary_folder();
  const int descriptor = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
  if (descriptor >= 0) return descriptor;
  std::string path = folder + "/mcds-XXXXXX";
  const int named = mkostemp(path.data(), O_CLOEXEC);
  if (named >= 0) unlink(path.c_str());
  return named;
}

}  // namespace mcds
