#include "tools/cli/output_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"

namespace mcds {

namespace {

// Of a path that names a stream this process has.
std::optional<int> own_descriptor(std::string_view path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    const auto number = parse_u64(path.substr(folder.size()));
    if (number && *number < 1'000'000) return static_cast<int>(*number);
  }
  return std::nullopt;
}

// Never waits for a reader of a pipe.
int open_to_write(const std::string& path, int flags) {
  const int opened = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | flags, 0666);
  if (opened >= 0) fcntl(opened, F_SETFL, fcntl(opened, F_GETFL) & ~O_NONBLOCK);
  return opened;
}

}  // namespace

OutputFile::OutputFile(const std::optional<std::string>& path, std::string cannot, From from)
    : path_(path.value_or("")), cannot_(std::move(cannot)) {
  if (!path) return;
  // A stream of our own is written to where it stands: opened anew, a file behind it would be cut and
  // overwritten.
  const auto own = own_descriptor(path_);
  descriptor_ = Descriptor(own ? fcntl(*own, F_DUPFD_CLOEXEC, 0)
                               : open_to_write(path_, from == From::start ? O_TRUNC : O_APPEND));
  if (descriptor_ < 0) fail();
}

void OutputFile::fail() const {
  throw Failure(ErrorCode::cannot_write,
                cannot_ + ' ' + path_ + ": " + (errno == ENXIO ? "nobody reads it" : std::strerror(errno)));
}

}  // namespace mcds
