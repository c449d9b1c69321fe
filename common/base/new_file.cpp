#include "common/base/new_file.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"

namespace mcds {

namespace {

// A symbolic link is not followed: it could lead to another user's file.
bool may_replace(const std::string& path) {
  struct stat found {};
  return lstat(path.c_str(), &found) != 0 || S_ISREG(found.st_mode);
}

}  // namespace

std::string temporary_folder() {
  const char* set = std::getenv("TMPDIR");
  return set == nullptr || *set == '\0' ? "/tmp" : set;
}

// Some file systems (NFS) support only files with names.
int open_unnamed_file() {
  const std::string folder = temporary_folder();
  const int descriptor = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
  if (descriptor >= 0) return descriptor;
  if (errno == EMFILE && raise_descriptor_limit()) return open_unnamed_file();
  std::string path = folder + "/mcds-XXXXXX";
  const int named = mkostemp(path.data(), O_CLOEXEC);
  if (named >= 0) unlink(path.c_str());
  return named;
}

NewFile::NewFile(std::string path) : path_(std::move(path)) {
  const std::size_t slash = path_.rfind('/');
  folder_ = slash == std::string::npos ? "." : slash == 0 ? "/" : path_.substr(0, slash);
  if (path_.empty() || path_.back() == '/')
    throw Failure(ErrorCode::cannot_write, "cannot write '" + path_ + "': give the name of a file");
  if (!may_replace(path_))
    throw Failure(ErrorCode::cannot_write,
                  "cannot write " + path_ + " because it is not a regular file; give another name");
  descriptor_ = Descriptor(open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (descriptor_ >= 0) return;
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) fail("cannot write");
  const auto create = [this] {
    descriptor_ = Descriptor(open(meanwhile().c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
    return descriptor_ >= 0;
  };
  if (!create() && (errno != EEXIST || unlink(meanwhile().c_str()) != 0 || !create())) fail("cannot write");
  temporary_ = meanwhile();
}

// The name depends only on the path, so that the next run reuses the file of a killed one.
std::string NewFile::meanwhile() const {
  return folder_ + "/.mcds-" + digest128(path_).substr(0, 16);
}

NewFile::~NewFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void NewFile::fail(const char* what) const {
  throw refused_by_system(ErrorCode::cannot_write, std::string(what) + ' ' + path_);
}

Descriptor NewFile::keep() {
  if (fsync(descriptor_) != 0) fail("cannot write");
  if (temporary_.empty()) {
    const std::string here = "/proc/self/fd/" + std::to_string(descriptor_);
    const auto link_as = [&](const std::string& name) {
      return linkat(AT_FDCWD, here.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
    };
    std::string name = meanwhile();
    if (!link_as(name) && (errno != EEXIST || unlink(name.c_str()) != 0 || !link_as(name)))
      fail("cannot write");
    temporary_ = std::move(name);
  }
  if (!may_replace(path_) || rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot replace");
  temporary_.clear();
  const Descriptor folder(open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot sync a directory; the rename is done anyway.
  if (folder >= 0) static_cast<void>(fsync(folder));
  return std::move(descriptor_);
}

std::uint64_t NewFile::room() const {
  struct statvfs about {};
  if (fstatvfs(descriptor_, &about) != 0) return UINT64_MAX;
  return std::uint64_t{about.f_bavail} * about.f_frsize;
}

}  // namespace mcds
