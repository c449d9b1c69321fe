#include "common/structures/eventlog/cursor.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "common/base/bounds.hpp"
#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/new_file.hpp"
#include "common/primitives/seal.hpp"

namespace mcds {

namespace {

constexpr std::string_view first_line = "mcds-eventlog-cursor 1";
constexpr std::string_view of_several_copies = "mcds-eventlog-cursor 2";  // mcds 0.x

// Returns false for a line that no cursor of ours contains.
bool read_line(CursorState& state, std::string_view line) {
  const auto words = split(line, ' ');
  if (words[0] == "log" && words.size() == 2) {
    state.ring = words[1];
    return true;
  }
  if (words[0] == "seen" && words.size() == 2) {
    const auto time = parse_u64(words[1]);
    if (!time || *time > std::uint64_t{latest_second} * 1'000'000) return false;
    state.seen = WallTime(std::chrono::microseconds(*time));
    return true;
  }
  const auto event = words.size() < 2 ? std::nullopt : EventId::parse(words[1]);
  if (words[0] == "until" && words.size() == 2) return (state.until = event).has_value();
  if (words[0] == "failing" && words.size() == 4) {
    const auto failures = parse_u64(words[2]);
    const auto moved_to = EventId::parse(words[3]);
    if (!event || !failures || (!moved_to && words[3] != "-")) return false;
    state.failing = {*event, *failures, moved_to};
    return true;
  }
  const auto name = words.size() < 3 ? std::nullopt : PartName::parse(words[1]);
  if (!name || !is_identifier(words[2])) return false;
  if (words[0] == "lost" && words.size() == 3) {
    state.lost.emplace(*name, words[2]);
    return true;
  }
  if (words[0] != "part" || words.size() != 5) return false;
  const auto bytes = parse_u64(words[3]);
  const auto last = EventId::parse(words[4]);
  if (!bytes || (!last && words[4] != "-")) return false;
  state.parts[*name] = {std::string(words[2]), *bytes, last};
  return true;
}

[[noreturn]] void fail(ErrorCode code, const std::string& what, const std::string& path) {
  throw Failure(code, what + ' ' + path + ": " + std::strerror(errno));
}

// Follows symbolic links, so that rename replaces the file and not the link.
std::string resolved(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  return real ? std::string(real.get()) : path;
}

bool is_still_at(int fd, const std::string& path) {
  struct stat open_file {};
  struct stat named_file {};
  return ::fstat(fd, &open_file) == 0 && ::stat(path.c_str(), &named_file) == 0 &&
         open_file.st_dev == named_file.st_dev && open_file.st_ino == named_file.st_ino;
}

void lock(int fd, const std::string& path) {
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) {
      throw Failure(ErrorCode::try_again,
                    "the cursor " + path + " is in use by another run; try again when that run has ended");
    }
    fail(ErrorCode::system, "cannot lock the cursor", path);
  }
}

}  // namespace

std::string CursorState::text() const {
  std::string text = std::string(first_line) + "\nlog " + ring + '\n';
  if (seen) text += "seen " + std::to_string(seen->time_since_epoch().count()) + '\n';
  for (const auto& [name, consumed] : parts) {
    text += "part " + name.text() + ' ' + consumed.incarnation + ' ' + std::to_string(consumed.bytes) + ' ';
    text += consumed.last ? consumed.last->text() : "-";
    text += '\n';
  }
  for (const auto& [name, incarnation] : lost) text += "lost " + name.text() + ' ' + incarnation + '\n';
  if (until) text += "until " + until->text() + '\n';
  if (failing)
    text += "failing " + failing->event.text() + ' ' + std::to_string(failing->failures) + ' ' +
            (failing->moved_to ? failing->moved_to->text() : "-") + '\n';
  const std::string sum = checksum(text);
  return text + "end *" + sum + '\n';
}

CursorState CursorState::parse(std::string_view text, std::string_view file) {
  CursorState state;
  if (text.empty()) return state;
  const auto foreign = [&](const char* why) {
    return Failure(ErrorCode::bad_data, std::string(file) + why + "; use another file, or remove " +
                                            std::string(file) + " to read the log from the start");
  };
  std::string_view rest = text;
  const std::string_view first = take_line(rest);
  if (first == of_several_copies) throw foreign(" is a cursor of mcds 0.x for an event log with copies");
  const char* const damaged = " is not a valid cursor";
  if (first != first_line) throw foreign(damaged);
  while (!rest.starts_with("end *")) {
    if (rest.empty() || !read_line(state, take_line(rest))) throw foreign(damaged);
  }
  const std::string_view body = text.substr(0, text.size() - rest.size());
  if (rest != "end *" + checksum(body) + '\n' || state.ring.empty()) throw foreign(damaged);
  return state;
}

void CursorState::forget_before(std::int64_t chunk) {
  parts.erase(parts.begin(), parts.lower_bound({chunk, 0}));
  lost.erase(lost.begin(), lost.lower_bound({{chunk, 0}, ""}));
}

CursorFile::CursorFile(const std::string& path) : path_(resolved(path)) {
  // A run that ends between our open and our lock replaces the file: then the lock is on a file that is gone.
  constexpr int attempts = 100;
  for (int i = 0; i < attempts; ++i) {
    Descriptor fd(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (fd < 0) {
      const bool exists = ::access(path_.c_str(), F_OK) == 0;
      fail(exists ? ErrorCode::cannot_read : ErrorCode::cannot_write, "cannot open the cursor", path_);
    }
    struct stat status {};
    if (::fstat(fd, &status) == 0 && !S_ISREG(status.st_mode)) {
      throw Failure(ErrorCode::cannot_write,
                    "the cursor " + path_ + " is not a regular file; use another file");
    }
    // A dangling symbolic link now leads to the file just created.
    path_ = resolved(path_);
    lock(fd, path_);
    if (!is_still_at(fd, path_)) continue;
    descriptor_ = std::move(fd);
    return;
  }
  throw Failure(ErrorCode::try_again, "the cursor " + path_ + " is being replaced continuously; try again");
}

CursorState CursorFile::load() const {
  std::string text;
  std::array<char, 65536> buffer{};
  off_t offset = 0;
  while (true) {
    const ssize_t size = ::pread(descriptor_, buffer.data(), buffer.size(), offset);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) fail(ErrorCode::cannot_read, "cannot read the cursor", path_);
    if (size == 0) return CursorState::parse(text, path_);
    text.append(buffer.data(), static_cast<std::size_t>(size));
    offset += size;
    constexpr std::size_t longest = std::size_t{64} << 20;
    if (text.size() > longest)
      throw Failure(ErrorCode::bad_data, path_ + " is too large for a cursor; use another file");
  }
}

void CursorFile::save(const CursorState& state) {
  NewFile file(path_);
  struct stat old {};
  if (::fstat(descriptor_, &old) == 0) {
    // Changing the owner may fail: a reader that is not root keeps its own.
    [[maybe_unused]] const int given = ::fchown(file.descriptor(), old.st_uid, old.st_gid);
    if (::fchmod(file.descriptor(), old.st_mode & 07777) != 0)
      fail(ErrorCode::cannot_write, "cannot write the cursor", path_);
  }
  file.write(state.text());
  lock(file.descriptor(), path_);
  descriptor_ = file.keep();
}

}  // namespace mcds
