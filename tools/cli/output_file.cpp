#include "tools/cli/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
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

// Returns whether a link in a folder where everybody may put one is somebody else's: it could lead to any
// file of ours. In a sticky folder nobody but its owner can replace a link that passes.
bool is_planted(const std::string& path) {
  struct stat link {};
  struct stat folder {};
  const std::string parent = std::filesystem::path(path).parent_path();
  if (lstat(path.c_str(), &link) != 0 || stat(parent.empty() ? "." : parent.c_str(), &folder) != 0)
    return true;
  const bool for_all = (folder.st_mode & S_ISVTX) != 0 && (folder.st_mode & S_IWOTH) != 0;
  return for_all && link.st_uid != geteuid() && link.st_uid != folder.st_uid;
}

// Never waits for a reader of a pipe.
int open_to_write(const std::string& path, int flags) {
  flags |= O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK;
  int opened = open(path.c_str(), flags | O_NOFOLLOW, 0666);
  if (opened < 0 && errno == ELOOP) {
    const bool planted = is_planted(path);
    errno = ELOOP;
    if (!planted) opened = open(path.c_str(), flags, 0666);
  }
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
  const char* why = std::strerror(errno);
  if (errno == ENXIO) why = "nobody reads it";
  if (errno == ELOOP) why = "it is a link that another user has put there; give another path";
  throw Failure(ErrorCode::cannot_write, cannot_ + ' ' + path_ + ": " + why);
}

}  // namespace mcds
