// The file of `item save` and `item load`: items as the commands that store them. Any server, `nc` and
// memcached-tool can read it, and SavedReader reads the output of `memcached-tool dump`.
//
//   add KEY FLAGS END BYTES\r\nVALUE\r\n          END: UNIX seconds by the saving client's clock; 0: never
//   ms BASE64 BYTES b Fflags Tend ME\r\nVALUE\r\n keys with spaces or control bytes (read by memcached 1.6.13
//                                                 and later)
//
// The first and last records of our files are `add mcds:saved:<id> 0 2592001 BYTES` with JSON; the time is
// long past, so that a server drops them. The first record has the server list and a sample of the keys with
// their servers. Records in between, {"from":N}, name the server of the items that follow. The last record
// has the number of items and the XXH3 of all bytes before its line and of its own JSON up to there. A file
// with the first record but without the last was cut off. Whether a file without either is complete cannot be
// determined, nor whether items outside the two are all that there were: a file that has such is not whole.
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
  std::string_view value;                // valid until the reader's next()
  std::optional<std::size_t> from = {};  // index into the server list of the first record
};

// Computes the XXH3 of bytes that arrive in pieces.
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
  // `id` identifies the file; `about` is the content of its first record.
  SavedWriter(Sink sink, std::string id, const JsonObject& about);
  // Returns true if a server can read this key from a file.
  static bool can_save(std::string_view key);
  void add(std::string_view key, std::uint32_t flags, std::int64_t ends_s, std::string_view value);
  // States the server of the items that follow.
  void from(std::size_t server);
  // Writes the last record: `about`, and the totals.
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
  std::uint64_t items_ = 0, bytes_ = 0;  // bytes_ includes the first record
  std::optional<std::size_t> from_;
};

class SavedReader {
 public:
  // Reads up to `size` bytes into `into`. Returns 0 at the end.
  using Fill = std::function<std::size_t(char* into, std::size_t size)>;
  explicit SavedReader(Fill fill) : fill_(std::move(fill)) {}

  // Returns the next item, or nullopt at the end and at the first invalid record. Nothing after that is read,
  // because it may be part of a value.
  std::optional<SavedItem> next();

  struct End {
    bool ours = false;         // it has our first record
    bool whole = false;        // it also has a valid last record
    std::string problem = {};  // what is wrong, if anything
    std::string about = {};    // JSON of the last record
  };
  // Returns the JSON of the first record, once next() was called; empty if there is none.
  const std::string& head() const { return head_; }
  // Returns the verdict on the file, after next() returned nullopt.
  const End& end() const { return end_; }
  std::uint64_t offset() const { return offset_; }  // of the next record
  std::uint64_t items() const { return all_items_; }

 private:
  struct Header;
  bool have(std::size_t size);
  std::optional<std::string_view> line();
  std::optional<SavedItem> damaged(const std::string& what) { return damaged(what, offset_); }
  std::optional<SavedItem> damaged(const std::string& what, std::uint64_t at);
  bool take_note(const SavedItem& note);
  std::optional<SavedItem> at_end();

  Fill fill_;
  std::string buffer_;
  std::size_t position_ = 0;
  std::uint64_t offset_ = 0;
  bool filled_ = false;  // the file was read to its end
  bool open_ = false;    // between a first record and its last
  std::string id_;       // of the first and the last record
  std::string head_;
  bool appended_ = false;                 // another file follows the first
  std::optional<std::uint64_t> outside_;  // the offset of an item that no first and last record enclose
  std::optional<std::size_t> from_;
  std::uint64_t items_ = 0, all_items_ = 0;
  RunningHash hash_;
  End end_;
};

}  // namespace mcds
