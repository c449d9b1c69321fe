#include "common/operations/spill_file.hpp"

#include <unistd.h>

#include "common/base/errors.hpp"
#include "common/base/new_file.hpp"

namespace mcds::moving {

namespace {

constexpr std::size_t buffer_size = 16 * 1024;

}  // namespace

SpilledRecord spilled(const LiveKey& key, std::size_t to) {
  SpilledRecord record;
  record.from = static_cast<std::uint16_t>(key.server);
  record.to = static_cast<std::uint16_t>(to);
  record.size_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(key.size_bytes, UINT32_MAX));
  if (key.expires_at >= 0)
    record.expires_s = static_cast<std::uint32_t>(std::clamp<std::int64_t>(key.expires_at, 1, UINT32_MAX));
  record.cas = key.cas;
  record.key = key.key;
  return record;
}

SpillFile::SpillFile() : descriptor_(open_unnamed_file()) {
  if (descriptor_ < 0)
    throw Failure(ErrorCode::cannot_write,
                  "cannot keep a list of keys in " + temporary_folder() + ": " + std::strerror(errno) +
                      (errno == EMFILE ? "; raise ulimit -n" : "; set TMPDIR to a writable directory"));
}

void SpillFile::flush() {
  if (!write_all(descriptor_, buffer_))
    throw Failure(ErrorCode::cannot_write, std::string("cannot keep the list of keys: ") +
                                               std::strerror(errno) +
                                               "; set TMPDIR to a directory with room");
  buffer_.clear();
}

void SpillFile::add_bytes(std::string_view bytes, std::string_view more) {
  ++count_;
  buffer_ += bytes;
  buffer_ += more;
  if (buffer_.size() >= buffer_size) flush();
}

void SpillFile::add(const SpilledRecord& record) {
  SpilledNumbers numbers = record;
  numbers.key_size = static_cast<std::uint8_t>(record.key.size());
  buffer_.append(reinterpret_cast<const char*>(&numbers), sizeof numbers);
  add_bytes(record.key);
}

void SpillFile::rewind() {
  flush();
  if (lseek(descriptor_, 0, SEEK_SET) != 0)
    throw refused_by_system(ErrorCode::cannot_read, "cannot read the list of keys");
  position_ = 0;
}

bool SpillFile::fill(std::size_t size) {
  while (buffer_.size() - position_ < size) {
    buffer_.erase(0, position_);
    position_ = 0;
    const std::size_t had = buffer_.size();
    buffer_.resize(had + buffer_size);
    const ssize_t got = read(descriptor_, buffer_.data() + had, buffer_size);
    buffer_.resize(had + static_cast<std::size_t>(got > 0 ? got : 0));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw refused_by_system(ErrorCode::cannot_read, "cannot read the list of keys");
    if (got == 0) return false;
  }
  return true;
}

std::string_view SpillFile::next_bytes(std::size_t size) {
  if (!fill(size)) return {};
  const std::string_view bytes(buffer_.data() + position_, size);
  position_ += size;
  return bytes;
}

std::optional<SpilledRecord> SpillFile::next() {
  const std::string_view bytes = next_bytes(sizeof(SpilledNumbers));
  if (bytes.empty()) return std::nullopt;
  SpilledNumbers numbers;
  std::memcpy(&numbers, bytes.data(), sizeof numbers);
  return SpilledRecord{numbers, std::string(next_bytes(numbers.key_size))};
}

}  // namespace mcds::moving
