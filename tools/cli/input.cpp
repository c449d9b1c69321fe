#include "tools/cli/input.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "common/base/bounds.hpp"

namespace mcds {

namespace {

constexpr std::size_t chunk_size = 64 * 1024;
constexpr std::size_t max_line_size = std::size_t{16} << 20;

Failure unreadable(const std::string& what) {
  return refused_by_system(ErrorCode::cannot_read, "cannot read " + what);
}

std::shared_ptr<const RunLimits>& input_limits() {
  static std::shared_ptr<const RunLimits> limits = std::make_shared<const RunLimits>();
  return limits;
}

// Opens a file for reading without blocking, even if it is a pipe that no writer has opened yet.
Descriptor open_file(const std::string& path) {
  Descriptor descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (descriptor < 0) throw unreadable(path);
  return descriptor;
}

// Waits until there is input to read, or the end. Throws Failure(try_again).
void wait_for_input(int descriptor, const std::string& what) {
  if (input_limits()->over(SystemClock().steady()) || !ready_in_time(descriptor, POLLIN, *input_limits()))
    throw Failure(ErrorCode::try_again, input_limits()->why_over() + " while " + what + " was read");
}

// Reads some bytes. Returns 0 at the end.
std::size_t read_some(int descriptor, char* into, const std::string& what, std::size_t most = chunk_size) {
  for (;;) {
    wait_for_input(descriptor, what);
    const ssize_t size = read(descriptor, into, most);
    if (size >= 0) return static_cast<std::size_t>(size);
    if (errno != EINTR && errno != EAGAIN) throw unreadable(what);
  }
}

// Reads everything. Returns nullopt if there are more than `most` bytes.
std::optional<std::string> read_all(int descriptor, const std::string& what, std::size_t most) {
  std::string bytes;
  std::array<char, chunk_size> chunk;
  while (const std::size_t size = read_some(descriptor, chunk.data(), what)) {
    bytes.append(chunk.data(), size);
    if (bytes.size() > most) return std::nullopt;
  }
  return bytes;
}

std::string value_bytes(int descriptor, const std::string& what) {
  if (auto bytes = read_all(descriptor, what, max_item_value_size)) return std::move(*bytes);
  throw Failure(ErrorCode::bad_data, what + " is larger than " + std::to_string(max_item_value_size >> 20) +
                                         " MiB, more than any server accepts as one value");
}

}  // namespace

bool ready_in_time(int descriptor, short events, const RunLimits& limits, int end) {
  const SystemClock clock;
  pollfd entries[] = {{descriptor, events, 0}, {end, POLLIN, 0}};
  for (;;) {
    const SteadyTime now = clock.steady();
    if (limits.over(now)) return poll(entries, 1, 0) > 0;
    // The wait is at most a second, because a signal that arrives just before the poll does not end it.
    const Duration left = limits.earlier(now + std::chrono::seconds(1)) - now;
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(std::max(left, Duration::zero())).count();
    if (poll(entries, 2, static_cast<int>(ms)) > 0) return entries[0].revents != 0;
  }
}

void bound_input(std::shared_ptr<const RunLimits> limits) {
  input_limits() = std::move(limits);
}

std::string file_bytes(const std::string& path) {
  return value_bytes(open_file(path), path);
}

SmallFile small_file(const std::string& path, std::size_t most) {
  const Descriptor descriptor = open_file(path);
  SmallFile file;
  struct statvfs mount {};
  if (fstat(descriptor, &file.about.entry) != 0) throw unreadable(path);
  file.about.on_read_only_mount = fstatvfs(descriptor, &mount) == 0 && (mount.f_flag & ST_RDONLY) != 0;
  auto bytes = read_all(descriptor, path, most);
  if (!bytes)
    throw Failure(ErrorCode::configuration,
                  path + " has more than " + std::to_string(most >> 20) + " MiB; is it the right file?");
  file.bytes = std::move(*bytes);
  return file;
}

std::string value_of(std::string_view argument) {
  static bool has_read = false;
  if (argument == "-") {
    if (std::exchange(has_read, true)) throw InvalidInput("standard input can be read once; give - once");
    return value_bytes(STDIN_FILENO, "standard input");
  }
  if (!argument.starts_with('@')) return std::string(argument);
  argument.remove_prefix(1);
  if (argument.starts_with('@')) return std::string(argument);
  return file_bytes(std::string(argument));
}

ByteReader::ByteReader(const std::string& file)
    : what_(file == "-" ? "standard input" : file),
      descriptor_(file == "-" ? Descriptor(STDIN_FILENO) : open_file(file)) {}

std::size_t ByteReader::read(char* into, std::size_t size) {
  return read_some(descriptor_, into, what_, size);
}

std::optional<std::uint64_t> ByteReader::size() const {
  struct stat status {};
  if (fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return static_cast<std::uint64_t>(status.st_size);
}

LineReader::LineReader(const std::string& file, char line_end) : ByteReader(file), line_end_(line_end) {}

std::optional<std::string> LineReader::next() {
  for (;;) {
    const std::size_t end = buffer_.find(line_end_, std::max(position_, searched_));
    if (end != std::string::npos) {
      std::string line = buffer_.substr(position_, end - position_);
      position_ = searched_ = end + 1;
      ++number_;
      return line;
    }
    searched_ = buffer_.size();
    if (buffer_.size() - position_ > max_line_size) {
      skip_line();
      throw Failure(ErrorCode::bad_data,
                    "the line is longer than " + std::to_string(max_line_size) + " bytes");
    }
    if (!fill()) break;
  }
  if (position_ == buffer_.size()) return std::nullopt;
  std::string line = buffer_.substr(position_);
  position_ = searched_ = buffer_.size();
  ++number_;
  return line;
}

void LineReader::skip_line() {
  std::size_t end = std::string::npos;
  do {
    position_ = searched_ = buffer_.size();
  } while (fill() && (end = buffer_.find(line_end_)) == std::string::npos);
  if (end != std::string::npos) position_ = searched_ = end + 1;
  ++number_;
}

bool LineReader::ready() {
  searched_ = std::min(buffer_.find(line_end_, std::max(position_, searched_)), buffer_.size());
  if (ended_ || searched_ < buffer_.size()) return true;
  pollfd input{descriptor_, POLLIN, 0};
  return poll(&input, 1, 0) != 0;
}

bool LineReader::fill() {
  if (ended_) return false;
  buffer_.erase(0, position_);
  searched_ -= position_;
  position_ = 0;
  const std::size_t used = buffer_.size();
  buffer_.resize(used + chunk_size);
  const std::size_t size = read_some(descriptor_, buffer_.data() + used,
                                     number_ == 0 ? what_ : what_ + " after line " + std::to_string(number_));
  buffer_.resize(used + size);
  ended_ = size == 0;
  return !ended_;
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string user_name() {
  const passwd* entry = getpwuid(geteuid());
  return entry != nullptr ? entry->pw_name : std::to_string(geteuid());
}

std::optional<std::string> environment(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

std::string environment_list(const std::string& name) {
  if (auto servers = environment(name)) return *servers;
  throw Failure(ErrorCode::configuration, name + " is not set in the environment");
}

std::string users_file(const char* variable, const std::string& otherwise, const std::string& file) {
  const std::string base = environment(variable).value_or(""), home = environment("HOME").value_or("");
  if (base.starts_with('/')) return base + file;
  return home.starts_with('/') ? home + otherwise + file : std::string();
}

}  // namespace mcds
