#include "common/operations/move/move_journal.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <array>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/operations/map.hpp"

namespace mcds::moving {

namespace {

constexpr std::size_t title_size = 64;
constexpr std::size_t records_per_part = 200'000;
constexpr std::size_t max_parts = 64;  // each needs a descriptor, and as many again for each pass
constexpr std::string_view format = "mcds ring move 2 ";

struct Record {
  enum class What : std::uint32_t { copied = 1, settled = 2, start = 3, declined = 4 };
  KeyHash key;
  std::uint64_t digest;     // settled, declined: the index of the copied record; start: its time
  std::uint64_t cas;        // start: the time of the last flush, and the number of flushes in the lower half
  std::uint32_t expires_s;  // start: the pid
  What what;
};
static_assert(sizeof(Record) == 40);

// A record of a key in a part.
struct Remembered {
  Record record;
  std::uint64_t index;  // of the copied record
};

std::string title_of(std::string_view move) {
  std::string title = std::string(format) + digest128(move);
  title.resize(title_size - 1, ' ');
  return title + '\n';
}

template <typename T>
std::string_view bytes_of(const T& record) {
  return {reinterpret_cast<const char*>(&record), sizeof record};
}

}  // namespace

KeyHash hash_of(std::string_view key, std::uint8_t copy) {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(key.data(), key.size(), copy);
  return {hash.low64, hash.high64};
}

std::uint64_t digest_of(std::string_view value, std::uint32_t flags) {
  return XXH3_64bits_withSeed(value.data(), value.size(), flags);
}

void MoveJournal::fail(const char* what) const {
  throw refused_by_system(ErrorCode::cannot_write, std::string("cannot ") + what + " the journal " + path_);
}

MoveJournal::MoveJournal(const std::string& path, std::string_view move, Clock* clock) : path_(path) {
  constexpr Duration retry_delay = std::chrono::milliseconds(20);
  descriptor_ = Descriptor(open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (descriptor_ < 0) fail("open");
  // A child of a run that was just killed may keep the file locked until it has exited too.
  for (int left = clock == nullptr ? 0 : 100; flock(descriptor_, LOCK_EX | LOCK_NB) != 0; --left) {
    if (left == 0)
      throw Failure(ErrorCode::try_again,
                    "the journal " + path + " is in use by another run; try again when it has ended");
    clock->sleep_for(retry_delay);
  }
  struct stat about {};
  if (fstat(descriptor_, &about) != 0) fail("read");
  const std::string title = title_of(move);
  const auto size = static_cast<std::size_t>(about.st_size);
  std::string found(std::min(size, title_size), '\0');
  if (pread(descriptor_, found.data(), found.size(), 0) != static_cast<ssize_t>(found.size())) fail("read");
  if (!title.starts_with(found))
    throw Failure(ErrorCode::bad_data, found.starts_with(format)
                                           ? path +
                                                 " is the journal of a drop, or of a move between other "
                                                 "servers or profiles; use the file of this move"
                                           : path + " is not a journal of ring move; use another file");
  if (size < title_size) {
    // The file is new, or its writer crashed before the title was complete.
    if (ftruncate(descriptor_, 0) != 0) fail("write");
    buffer_ = title;
    write();
    return;
  }
  const std::size_t whole = (size - title_size) / sizeof(Record) * sizeof(Record) + title_size;
  if (whole != size && ftruncate(descriptor_, static_cast<off_t>(whole)) != 0) fail("write");
  const std::size_t records = (whole - title_size) / sizeof(Record);
  history_ = records > 0;
  const std::size_t parts = std::min(records / records_per_part + 1, max_parts);
  for (std::size_t i = 0; i < parts; ++i) parts_.emplace_back();
  read_history();
}

void MoveJournal::read_history() {
  std::array<Record, 1024> records{};
  off_t at = title_size;
  while (true) {
    const ssize_t got = pread(descriptor_, records.data(), sizeof records, at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read");
    if (got == 0) break;
    at += got;
    for (std::size_t i = 0; i < static_cast<std::size_t>(got) / sizeof(Record); ++i) {
      const Record& record = records[i];
      if (record.what == Record::What::start) {
        const auto flushes = static_cast<std::uint32_t>(record.cas);
        const auto last_flush_s = static_cast<std::uint32_t>(record.cas >> 32);
        seen_.push_back({record.key, {record.digest, flushes, last_flush_s, record.expires_s}, written_});
        continue;
      }
      const Remembered one{record, record.what == Record::What::copied ? written_++ : record.digest};
      parts_[part_of(record.key)].add_bytes(bytes_of(one));
    }
  }
}

void MoveJournal::load(std::size_t part) {
  loaded_.clear();
  if (part < parts_.size()) add_part(part);
}

void MoveJournal::load_all() {
  for (std::size_t part = 0; part < parts_.size(); ++part) add_part(part);
}

void MoveJournal::add_part(std::size_t part) {
  SpillFile& spill_file = parts_[part];
  spill_file.rewind();
  for (auto bytes = spill_file.next_bytes(sizeof(Remembered)); !bytes.empty();
       bytes = spill_file.next_bytes(sizeof(Remembered))) {
    Remembered one{};
    std::memcpy(&one, bytes.data(), sizeof one);
    const Record& record = one.record;
    Copied& copied = loaded_[record.key];
    if (record.what == Record::What::copied) {
      const bool lost = record.digest == 0 && (copied.settled || copied.lost);
      copied.stored.push_back({.digest = record.digest});
      copied = {record.digest, record.cas, record.expires_s,        false,
                one.index,     lost,       std::move(copied.stored)};
    } else if (one.index == copied.index) {
      copied.settled = record.what == Record::What::settled;
      copied.stored.clear();
      if (copied.settled) copied.stored.push_back({copied.digest, record.cas});
    }
  }
}

const Copied* MoveJournal::find(const KeyHash& key) const {
  const auto found = loaded_.find(key);
  return found == loaded_.end() ? nullptr : &found->second;
}

void MoveJournal::add(const KeyHash& key, const Copied& copied) {
  if (descriptor_ < 0) return;
  const Record record{key, copied.digest, copied.cas, copied.expires_s, Record::What::copied};
  buffer_ += bytes_of(record);
  ++written_;
}

void MoveJournal::write() {
  if (!write_all(descriptor_, buffer_)) fail("write");
  buffer_.clear();
}

void MoveJournal::settle(const KeyHash& key, std::uint64_t index, std::uint64_t cas) {
  if (descriptor_ < 0) return;
  require(index < written_, "only what was written down before is settled");
  buffer_ += bytes_of(Record{key, index, cas, 0, Record::What::settled});
}

void MoveJournal::decline(const KeyHash& key, std::uint64_t index) {
  if (descriptor_ >= 0) buffer_ += bytes_of(Record{key, index, 0, 0, Record::What::declined});
}

std::uint64_t MoveJournal::alive_since(const KeyHash& server, const RecordedStart& now) const {
  // A restarted container may get the same pid, but not within a few seconds of the previous start.
  constexpr std::uint64_t clock_wobble_s = 5;
  std::uint64_t valid_from = written_;
  RecordedStart later = now;
  for (auto one = seen_.rbegin(); one != seen_.rend(); ++one) {
    if (one->server != server) continue;
    const RecordedStart& start = one->start;
    const std::uint64_t apart =
        std::max(start.started, later.started) - std::min(start.started, later.started);
    if (start.pid != later.pid || apart > clock_wobble_s || later.flushes > start.flushes ||
        later.last_flush_s != start.last_flush_s)
      break;
    valid_from = one->written;
    later = start;
  }
  return valid_from;
}

bool MoveJournal::knows(const KeyHash& server) const {
  return std::ranges::any_of(seen_, [&](const Seen& one) { return one.server == server; });
}

void MoveJournal::record_start(const KeyHash& server, const RecordedStart& start) {
  seen_.push_back({server, start, written_});
  if (descriptor_ < 0) return;
  const std::uint64_t flushes = std::uint64_t{start.last_flush_s} << 32 | start.flushes;
  buffer_ += bytes_of(Record{server, start.started, flushes, start.pid, Record::What::start});
}

}  // namespace mcds::moving
