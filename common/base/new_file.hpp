// A file that is there whole or not at all: it has no name while it is written, and takes the place of an
// older one in one step. A process that is killed at any point leaves the older one as it was. Beside it may
// stay one file, `.mcds-` and 16 hex digits, which the next run that writes the same file takes over: killed
// in the last step, or at any on a file system that knows no files without names.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/process.hpp"

namespace mcds {

class NewFile {
 public:
  // Readable by its owner alone. Throws Failure(cannot_write), also where `path` is something else than a
  // file.
  explicit NewFile(std::string path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(std::string_view bytes) {
    if (!write_all(descriptor_, bytes)) fail("cannot write");
  }
  // Everything is on disk, then under its name. Not called: nothing has happened. Returns what is open for
  // reading and writing.
  Descriptor keep();
  // Bytes that the folder has room for.
  std::uint64_t room() const;
  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_; }

 private:
  [[noreturn]] void fail(const char* what) const;
  std::string meanwhile() const;

  std::string path_;
  std::string folder_;
  std::string temporary_;  // its name meanwhile; empty: none
  Descriptor descriptor_;
};

// Temporary files without a name: a process that is killed at any point leaves nothing.
// $TMPDIR, or /tmp.
std::string temporary_folder();
// A descriptor for reading and writing in that folder; -1 with errno.
int open_unnamed_file();

}  // namespace mcds
