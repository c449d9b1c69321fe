// NewFile: a file that appears whole or not at all. It has no name while it is written, and replaces an older
// file in one step. A process that is killed at any point leaves the older file unchanged. One more file may
// remain, `.mcds-` and 16 hex digits: after a kill in the last step, or at any point on a file system without
// unnamed files. The next run that writes the same file reuses it.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/process.hpp"

namespace mcds {

class NewFile {
 public:
  // Only the owner can read the file. Throws Failure(cannot_write), also if `path` is not a regular file.
  explicit NewFile(std::string path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(std::string_view bytes) {
    if (!write_all(descriptor_, bytes)) fail("cannot write");
  }
  // Syncs the file to disk and then gives it its name. Without this call nothing happens. Returns a
  // descriptor for reading and writing.
  Descriptor keep();
  // Returns the free space in the folder, in bytes.
  std::uint64_t room() const;
  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_; }

 private:
  [[noreturn]] void fail(const char* what) const;
  std::string meanwhile() const;

  std::string path_;
  std::string folder_;
  std::string temporary_;  // its temporary name; empty: none
  Descriptor descriptor_;
};

// Temporary files without a name: a process that is killed at any point leaves nothing behind.
// Returns $TMPDIR, or /tmp.
std::string temporary_folder();
// Returns a descriptor for reading and writing in that folder, or -1 with errno.
int open_unnamed_file();

}  // namespace mcds
