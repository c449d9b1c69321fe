#include "common/cluster/keys/live.hpp"

#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <charconv>
#include <climits>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/new_file.hpp"
#include "common/base/process.hpp"
#include "common/cluster/keys/dump.hpp"

namespace mcds {

namespace {

// A child process reads the dumps, so that the servers do not wait while this process is stopped.

// Reads the dumps in the child. `keep` takes a key, and returns false if no more keys of that server are
// needed. `goes_on` must be called several times a second; when it returns false, the child must end.
using ReadDumps = std::function<std::vector<LiveKeysOfServer>(const TakeLiveKey& keep,
                                                              const std::function<bool()>& goes_on)>;

constexpr std::size_t memory_size = std::size_t{4} << 20;
constexpr std::size_t chunk_size = 64 * 1024;
constexpr std::uint64_t hole_size = std::uint64_t{16} << 20;  // the file's space is freed in such pieces

// Progress of the child, in memory shared with the parent.
struct Progress {
  std::atomic<std::uint64_t> written{0};  // bytes of records written so far
  std::atomic<int> error{0};              // errno; if set, no more can be kept
};

// One key, followed by its bytes; or the result for one server, followed by its DumpOutcome and the failure's
// message.
struct Record {
  LiveKey about = {};
  std::uint32_t size = 0;  // size of the bytes that follow
  bool is_result = false, failed = false, late = false;
  ReplyFailure::Kind kind = ReplyFailure::Kind::unknown;
};
static_assert(std::is_trivially_copyable_v<Record> && std::is_trivially_copyable_v<DumpOutcome>);

// Passes bytes from the child to the parent: first memory_size bytes in memory, then an unnamed file.
class KeyPipe {
 public:
  explicit KeyPipe(std::size_t servers)
      : size_(sizeof(Progress) + servers * sizeof(std::atomic<bool>) + memory_size),
        file_(Descriptor(open_unnamed_file())),
        file_error_(file_ < 0 ? errno : 0),
        bell_(Pipe::make(O_NONBLOCK)) {
    void* const shared = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) throw refused_by_system(ErrorCode::system, "cannot share memory with a child");
    progress_ = new (shared) Progress;
    enough_ = reinterpret_cast<std::atomic<bool>*>(progress_ + 1);
    for (std::size_t i = 0; i < servers; ++i) new (enough_ + i) std::atomic<bool>(false);
    memory_ = reinterpret_cast<char*>(enough_ + servers);
  }
  ~KeyPipe() { munmap(progress_, size_); }
  KeyPipe(const KeyPipe&) = delete;
  KeyPipe& operator=(const KeyPipe&) = delete;

  std::atomic<bool>& enough(std::size_t server) { return enough_[server]; }
  int error() const { return progress_->error; }

  // The child's side: closes every inherited descriptor except those it writes to. A file lock held through
  // one of them would otherwise last until the child ends.
  void only_write() {
    bell_.read_end.reset();
    unsigned from = STDERR_FILENO + 1;
    const auto [first, second] = std::minmax<int>({file_, bell_.write_end});
    for (const int kept : {first, second}) {
      if (kept < 0) continue;
      if (static_cast<unsigned>(kept) > from) close_range(from, static_cast<unsigned>(kept) - 1, 0);
      from = static_cast<unsigned>(kept) + 1;
    }
    close_range(from, UINT_MAX, 0);
  }
  // Returns false if there is no space left.
  bool write(std::string_view bytes) {
    const std::uint64_t from = progress_->written;
    std::uint64_t at = from;
    while (!bytes.empty() && progress_->error == 0) {
      const std::size_t size = put(bytes, at);
      at += size;
      bytes.remove_prefix(size);
    }
    progress_->written = at;
    if (at > from) static_cast<void>(!::write(bell_.write_end, "", 1));  // a full pipe wakes the parent too
    return progress_->error == 0;
  }

  // The parent's side. read() waits for bytes; it returns false once the child has exited and all is read.
  void only_read() { bell_.write_end.reset(); }
  bool read(std::string& into) {
    while (position_ == progress_->written) {
      if (ended_) return false;
      pollfd bell{bell_.read_end, POLLIN, 0};
      static_cast<void>(poll(&bell, 1, -1));
      char rung[256];
      const ssize_t size = ::read(bell_.read_end, rung, sizeof rung);
      ended_ = size == 0;
    }
    get(into, std::min<std::uint64_t>(progress_->written - position_, chunk_size));
    return true;
  }

 private:
  std::size_t put(std::string_view bytes, std::uint64_t at) {
    if (at < memory_size) {
      const std::size_t size = std::min<std::size_t>(bytes.size(), memory_size - at);
      std::memcpy(memory_ + at, bytes.data(), size);
      return size;
    }
    if (file_ < 0) progress_->error = file_error_;
    if (file_ < 0) return 0;
    const ssize_t size = pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(at - memory_size));
    if (size <= 0 && errno != EINTR) progress_->error = size == 0 ? ENOSPC : errno;
    return static_cast<std::size_t>(std::max<ssize_t>(size, 0));
  }

  void get(std::string& into, std::size_t size) {
    if (position_ < memory_size) {
      size = std::min<std::size_t>(size, memory_size - position_);
      into.append(memory_ + position_, size);
      position_ += size;
      return;
    }
    const auto at = static_cast<off_t>(position_ - memory_size);
    const std::size_t had = into.size();
    into.resize(had + size);
    const ssize_t got = pread(file_, into.data() + had, size, at);
    into.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got <= 0 && errno != EINTR)
      throw refused_by_system(ErrorCode::cannot_read, "cannot read the list of keys");
    position_ += static_cast<std::uint64_t>(std::max<ssize_t>(got, 0));
    for (; position_ - memory_size >= freed_ + hole_size; freed_ += hole_size)
      static_cast<void>(fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                  static_cast<off_t>(freed_), static_cast<off_t>(hole_size)));
  }

  std::size_t size_;
  Descriptor file_;
  int file_error_;
  Pipe bell_;  // a byte is written for new data; closed when the child ends
  Progress* progress_;
  std::atomic<bool>* enough_;
  char* memory_;
  std::uint64_t position_ = 0, freed_ = 0;
  bool ended_ = false;
};

void append(std::string& to, Record record, std::string_view bytes) {
  record.size = static_cast<std::uint32_t>(bytes.size());
  record.about.key = {};
  to.append(reinterpret_cast<const char*>(&record), sizeof record);
  to += bytes;
}

void serve(KeyPipe& passage, const ReadDumps& read) {
  std::string pending;
  const auto flush = [&] {
    const bool kept = passage.write(pending);
    pending.clear();
    return kept;
  };
  const auto keep = [&](const LiveKey& key) {
    if (passage.enough(key.server)) return false;
    append(pending, {.about = key}, key.key);
    return pending.size() < chunk_size || flush();
  };
  const std::vector<LiveKeysOfServer> results = read(keep, flush);
  for (std::size_t i = 0; i < results.size(); ++i) {
    Record record{.is_result = true};
    record.about.server = i;
    const auto& failure = results[i].failure;
    record.failed = failure != nullptr;
    if (failure) record.kind = failure->kind, record.late = failure->late;
    const DumpOutcome& outcome = results[i];
    const std::string_view bytes(reinterpret_cast<const char*>(&outcome), sizeof outcome);
    append(pending, record, std::string(bytes) + (failure ? failure->message : ""));
  }
  static_cast<void>(flush());
}

class Child {
 public:
  Child(KeyPipe& passage, const ReadDumps& read) {
    const pid_t parent = getpid();
    pid_ = fork_process();
    if (pid_ == 0) run(passage, read, parent);
    passage.only_read();
  }
  ~Child() { end_process(pid_); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

 private:
  [[noreturn]] static void run(KeyPipe& passage, const ReadDumps& read, pid_t parent) {
    passage.only_write();  // first, because work_beside() may have to wait
    work_beside(parent, "mcds-dump");
    try {
      serve(passage, read);
    } catch (...) {
      _exit(1);  // the parent finds the results missing
    }
    _exit(0);
  }

  pid_t pid_;
};

class KeyPipeReader {
 public:
  KeyPipeReader(KeyPipe& passage, std::size_t servers, const TakeLiveKey& take)
      : passage_(passage), take_(take), given_(servers) {
    const ReplyFailure ended{ReplyFailure::Kind::unknown,
                             "the process that reads the list of keys was ended"};
    results_.resize(servers, {{}, std::make_shared<ReplyFailure>(ended)});
  }

  std::vector<LiveKeysOfServer> run() {
    std::string buffer;
    while (passage_.read(buffer)) {
      std::size_t at = 0;
      while (buffer.size() - at >= sizeof(Record)) {
        Record record;
        std::memcpy(&record, buffer.data() + at, sizeof record);
        if (buffer.size() - at - sizeof record < record.size) break;
        at += sizeof record;
        take(record, std::string_view(buffer).substr(at, record.size));
        at += record.size;
      }
      buffer.erase(0, at);
    }
    if (const int error = passage_.error(); error != 0) {
      throw Failure(ErrorCode::cannot_write, "cannot keep the list of keys in " + temporary_folder() + ": " +
                                                 std::strerror(error) +
                                                 "; set TMPDIR to a directory with room");
    }
    for (std::size_t i = 0; i < results_.size(); ++i) {
      if (passage_.enough(i)) results_[i] = {};
      results_[i].keys = given_[i];
    }
    return std::move(results_);
  }

 private:
  void take(Record& record, std::string_view bytes) {
    const std::size_t server = record.about.server;
    if (record.is_result) {
      LiveKeysOfServer& result = results_[server];
      DumpOutcome outcome;
      std::memcpy(&outcome, bytes.data(), sizeof outcome);
      bytes.remove_prefix(sizeof outcome);
      result = {outcome, nullptr};
      if (record.failed)
        result.failure =
            std::make_shared<ReplyFailure>(ReplyFailure{record.kind, std::string(bytes), record.late});
      return;
    }
    if (passage_.enough(server)) return;
    record.about.key = bytes;
    ++given_[server];
    if (!take_(record.about)) passage_.enough(server) = true;
  }

  KeyPipe& passage_;
  const TakeLiveKey& take_;
  std::vector<std::uint64_t> given_;
  std::vector<LiveKeysOfServer> results_;
};

template <typename Number>
bool take_number(std::string_view word, std::string_view name, Number& number) {
  if (!word.starts_with(name)) return false;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data() + name.size(), end, number);
  return error == std::errc{} && stop == end;
}

}  // namespace

std::optional<LiveKey> parse_metadump_line(std::string_view line, std::string& buffer) {
  if (!line.starts_with("key=")) return std::nullopt;
  LiveKey result;
  result.key = next_word(line).substr(4);
  bool expires = false, accessed = false;
  // The fields `name=value` have a fixed order; later versions add more.
  for (auto word = next_word(line); !word.empty(); word = next_word(line)) {
    // An invalid number does not count as a time. Other fields are not needed.
    if (word[0] == 'e') expires = expires || take_number(word, "exp=", result.expires_at);
    if (word[0] == 'l') accessed = accessed || take_number(word, "la=", result.last_accessed_at);
    if (word[0] == 'c') take_number(word, "cas=", result.cas);
    if (word[0] == 's') take_number(word, "size=", result.size_bytes);
  }
  if (result.key.empty() || !expires || !accessed || !decode_key(result.key, buffer)) return std::nullopt;
  if (result.key.size() > max_key_size) return std::nullopt;
  return result;
}

std::vector<LiveKeysOfServer> read_live_keys(const Pool& pool, const LiveKeysOptions& options,
                                             const Clock& clock, const TakeLiveKey& take) {
  tls::Contexts tls;
  for (const Server& server : pool)
    static_cast<void>(tls.of(server));  // reports invalid files in this process
  KeyPipe passage(pool.size());
  const Child child(passage, [&](const TakeLiveKey& keep, const std::function<bool()>& goes_on) {
    return read_dumps(pool, options, tls, clock, keep, goes_on);
  });
  return KeyPipeReader(passage, pool.size(), take).run();
}

bool KeySelection::has(std::string_view key) const {
  if (!key.starts_with(key_prefix)) return false;
  const std::string_view name = key.substr(key_prefix.size());
  if (prefix && !name.starts_with(*prefix)) return false;
  // fnmatch() stops at a NUL, so a pattern never matches a key that has one.
  return !pattern || (name.find('\0') == std::string_view::npos &&
                      fnmatch(pattern->c_str(), std::string(name).c_str(), FNM_NOESCAPE) == 0);
}

bool takes_everything(std::string_view pattern) {
  const bool only_wild = pattern.find_first_not_of("*?") == std::string_view::npos;
  return pattern.empty() || (only_wild && pattern.find('*') != std::string_view::npos);
}

}  // namespace mcds
