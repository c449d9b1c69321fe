// What `item save` writes and `item load` reads: items as the commands that store them, so that any server,
// `nc` and memcached-tool read the file too, and we read what `memcached-tool dump` prints.
//
//   add KEY FLAGS END BYTES\r\nVALUE\r\n          END: UNIX seconds by the clock of who saved; 0: never
//   ms BASE64 BYTES b Fflags Tend ME\r\nVALUE\r\n keys with spaces or control bytes (memcached 1.6.13 and
//   later reads it)
//
// The first and the last record of a file of ours are `add mcds:saved:<id> 0 2592001 BYTES` with JSON: a time
// long past, so that a server takes and drops them. The first one has the list of servers and a sample of the
// keys with where they were; records between, {"from":N}, say on which server of the list the items behind
// them were. The last one has how many items there are, and at its end
// the XXH3 of all bytes of the file before its line, and of its own JSON up to there. A file that begins with
// the one and does not end with the other was cut off. A file without them is somebody else's, and nothing
// tells whether it is whole.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "common/base/json.hpp"

namespace mcds {

struct SavedItem {
  std::string key;
  std::uint32_t flags = 0;
  std::int64_t ends_s = 0;               // UNIX seconds; 0: never
  std::string_view value;                // of the reader: until its next()
  std::optional<std::size_t> from = {};  // the server it was on, of the list in the file's first record
};

// The XXH3 of bytes that come in pieces.
class RunningHash {
 public:
  RunningHash();
  void add(std::string_view bytes);
  std::uint64_t value() const;
  void reset();

 private:
  std::unique_ptr<void, void (*)(void*)> state_;
};

class SavedWriter {
 public:
  using Sink = std::function<void(std::string_view bytes)>;
  // `id`: of this file. `about`: what its first record says.
  SavedWriter(Sink sink, std::string id, const JsonObject& about);
  // Whether a server takes this key from a file at all.
  static bool can_save(std::string_view key);
  void add(std::string_view key, std::uint32_t flags, std::int64_t ends_s, std::string_view value);
  // The next items were on this server.
  void from(std::size_t server);
  // The last record: `about`, and what was written.
  void finish(JsonObject about);
  std::uint64_t items() const { return items_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  void note(const JsonObject& about);
  void flush();

  Sink sink_;
  std::string id_;
  std::string buffer_;
  RunningHash hash_;
  std::uint64_t items_ = 0, bytes_ = 0;  // bytes: with those of the first record
  std::optional<std::size_t> from_;
};

class SavedReader {
 public:
  // Up to `size` bytes into `into`; 0: there are no more.
  using Fill = std::function<std::size_t(char* into, std::size_t size)>;
  explicit SavedReader(Fill fill) : fill_(std::move(fill)) {}

  // nullopt: the end, or the first record that is none; nothing behind that is taken, because it may be part
  // of a value.
  std::optional<SavedItem> next();

  struct End {
    bool ours = false;         // it has our first record
    bool whole = false;        // and the last one, which is right
    std::string problem = {};  // else, if anything is wrong, what
    std::string about = {};    // JSON, of the last record
  };
  // JSON, of the first record, once next() was called; empty: it has none.
  const std::string& head() const { return head_; }
  // After next() returned nullopt.
  const End& end() const { return end_; }
  std::uint64_t offset() const { return offset_; }  // of the next record in the file
  std::uint64_t items() const { return all_items_; }

 private:
  struct Header;
  bool have(std::size_t size);
  std::optional<std::string_view> line();
  std::optional<SavedItem> damaged(const std::string& what);
  bool take_note(const SavedItem& note);
  std::optional<SavedItem> at_end();

  Fill fill_;
  std::string buffer_;
  std::size_t position_ = 0;
  std::uint64_t offset_ = 0;
  bool filled_ = false;  // to the end of the file
  bool open_ = false;    // behind a first record and before its last
  std::string id_;       // of both
  std::string head_;
  bool appended_ = false;  // behind the first file is another one
  std::optional<std::size_t> from_;
  std::uint64_t items_ = 0, all_items_ = 0;
  RunningHash hash_;
  End end_;
};

}  // namespace mcds
