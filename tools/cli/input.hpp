// `-`, `@FILE` and `@@`: values from standard input and files, and lines of standard input.
#pragma once

#include <sys/stat.h>

#include "common/base/process.hpp"
#include "common/cluster/cluster.hpp"

namespace mcds {

// Whatever is read here from now on is waited for no longer than the run's deadline: Failure(try_again). A
// pipe without a writer is waited for like a silent one.
void bound_input(std::shared_ptr<const RunLimits> limits);

// Waits until it can be read, or written, and no longer than these allow: then false.
bool ready_in_time(int descriptor, short events, const RunLimits& limits);

// `-`: all of standard input; `@FILE`: the file's bytes; `@@x`: `@x`; anything else: itself. Throws
// Failure(cannot_read).
std::string value_of(std::string_view argument);

// All of a file. Throws Failure(cannot_read).
std::string file_bytes(const std::string& path);
// What is known of a file that was opened, not of its name, which may be another's by now.
struct FileAbout {
  struct stat entry {};
  bool on_read_only_mount = false;
};
// A file that configures, or holds a secret or a certificate.
struct SmallFile {
  std::string bytes;
  FileAbout about;
};
// Throws Failure(cannot_read), or Failure(configuration) when it has more than `most` bytes, which are not
// read.
SmallFile small_file(const std::string& path, std::size_t most = std::size_t{16} << 20);

// Bytes of a file, of standard input for `-`, as they come.
class ByteReader {
 public:
  // Throws Failure(cannot_read).
  explicit ByteReader(const std::string& file);
  // 0: there are no more. Throws Failure(cannot_read).
  std::size_t read(char* into, std::size_t size);
  // Of all there is to read, if that is a regular file.
  std::optional<std::uint64_t> size() const;

 protected:
  std::string what_;
  Descriptor descriptor_;
};

// Lines of a file, of standard input for `-`, without their end, memory bounded by the longest line. Throws
// Failure(bad_data) for a line longer than any value, Failure(cannot_read) when reading fails.
class LineReader : private ByteReader {
 public:
  explicit LineReader(const std::string& file = "-", char line_end = '\n');
  // Throws Failure(bad_data) for a line that is too long: the next one is read all the same.
  std::optional<std::string> next();
  // Whether next() would return without waiting for more input: lines are not held back because a stream
  // pauses.
  bool ready();
  // Of the line last returned, from 1.
  std::size_t number() const { return number_; }
  using ByteReader::size;

 private:
  bool fill();
  void skip_line();
  char line_end_;
  std::size_t number_ = 0;
  std::string buffer_;
  std::size_t position_ = 0;  // of the next line
  std::size_t searched_ = 0;  // no line feed between position_ and here
  bool ended_ = false;
};

// Who runs this program, and where.

std::string host_name();
std::string user_name();
// nullopt: the variable is not set, or empty.
std::optional<std::string> environment(const std::string& name);
// A variable that names servers; throws Failure(configuration) when it is not set.
std::string environment_list(const std::string& name);
// A file of this user: below the folder that `variable` names, else below $HOME/`otherwise`; empty: neither
// is an absolute path.
std::string users_file(const char* variable, const std::string& otherwise, const std::string& file);

}  // namespace mcds
