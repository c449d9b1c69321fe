// Reads values from standard input and files (`-`, `@FILE` and `@@`), and lines of standard input.
#pragma once

#include <sys/stat.h>

#include "common/base/process.hpp"
#include "common/cluster/cluster.hpp"

namespace mcds {

// Limits every read in this file to the run's deadline, after which it throws Failure(try_again). A pipe
// without a writer is waited for like a silent writer.
void bound_input(std::shared_ptr<const RunLimits> limits);

// Waits until the descriptor can be read or written. Returns false if the limits are reached first, or if
// `end` can be read, unless it is -1.
bool ready_in_time(int descriptor, short events, const RunLimits& limits, int end = -1);

// Returns all of standard input for `-`, the file's bytes for `@FILE`, `@x` for `@@x`, and any other argument
// unchanged. Throws Failure(cannot_read).
std::string value_of(std::string_view argument);

// Returns a file's bytes. Throws Failure(cannot_read).
std::string file_bytes(const std::string& path);
// Facts about a file as it was opened. The file's name may belong to another file now.
struct FileAbout {
  struct stat entry {};
  bool on_read_only_mount = false;
};
// A file that contains configuration, a secret or a certificate.
struct SmallFile {
  std::string bytes;
  FileAbout about;
};
// Reads a whole file. Throws Failure(cannot_read), or Failure(configuration) for more than `most` bytes.
SmallFile small_file(const std::string& path, std::size_t most = std::size_t{16} << 20);

// Reads the bytes of a file, or of standard input for `-`, as they arrive.
class ByteReader {
 public:
  // Throws Failure(cannot_read).
  explicit ByteReader(const std::string& file);
  // Returns the number of bytes read, 0 at the end. Throws Failure(cannot_read).
  std::size_t read(char* into, std::size_t size);
  // Returns the total size if the input is a regular file.
  std::optional<std::uint64_t> size() const;

 protected:
  std::string what_;
  Descriptor descriptor_;
};

// Reads the lines of a file, or of standard input for `-`, without their line ends; memory is bounded by the
// longest line. Throws Failure(bad_data) for an overlong line, Failure(cannot_read) if reading fails.
class LineReader : private ByteReader {
 public:
  explicit LineReader(const std::string& file = "-", char line_end = '\n');
  // Returns the next line, or nullopt at the end. Throws Failure(bad_data) for a line that is too long; the
  // next call reads the line after it.
  std::optional<std::string> next();
  // Returns true if next() would not wait for input: lines must not be held back when a stream pauses.
  bool ready();
  // Returns the number of the line last returned, from 1.
  std::size_t number() const { return number_; }
  using ByteReader::size;

 private:
  bool fill();
  void skip_line();
  char line_end_;
  std::size_t number_ = 0;
  std::string buffer_;
  std::size_t position_ = 0;  // start of the next line
  std::size_t searched_ = 0;  // no line end between position_ and here
  bool ended_ = false;
};

// The user and the host of this run.

std::string host_name();
std::string user_name();
// Returns the variable's value, or nullopt if it is not set or empty.
std::optional<std::string> environment(const std::string& name);
// Returns the value of a variable that names servers. Throws Failure(configuration) if it is not set.
std::string environment_list(const std::string& name);
// Returns the path of a file of this user: below the folder that `variable` names, else below
// $HOME/`otherwise`. Returns an empty path if neither is absolute.
std::string users_file(const char* variable, const std::string& otherwise, const std::string& file);

}  // namespace mcds
