// Parts that item save, load and keep share: saving and loading with failures, progress and a report.
#pragma once

#include "common/base/compression.hpp"
#include "common/base/new_file.hpp"
#include "common/operations/load.hpp"
#include "common/operations/save.hpp"
#include "tools/commands/item/options.hpp"

namespace mcds {

inline bool is_compressed(const std::string& path) {
  return path.ends_with(".zst");
}

// A file that is being saved. It is compressed if its name ends with .zst.
class SavingFile {
 public:
  // Throws Failure(cannot_write).
  explicit SavingFile(const std::string& path);
  void write(std::string_view bytes) { compressor_ ? compressor_->write(bytes) : file_.write(bytes); }
  // Completes the file and puts it in place.
  void keep();
  // Returns how many bytes of items fit at least; unknown for a compressed file.
  std::uint64_t room() const { return compressor_ ? UINT64_MAX : file_.room(); }
  const std::string& path() const { return file_.path(); }

 private:
  NewFile file_;
  std::optional<Compressor> compressor_;
};

// A saved file that is being read. `-` is standard input, which is never compressed.
class SavedFile {
 public:
  // Throws Failure(cannot_read).
  explicit SavedFile(const std::string& path);
  std::optional<SavedItem> next() { return reader_.next(); }
  const std::string& head() const { return reader_.head(); }
  // Returns how the file ended. Valid after next() returned nullopt.
  SavedReader::End end() const;
  std::uint64_t items() const { return reader_.items(); }
  std::uint64_t offset() const { return reader_.offset(); }
  std::uint64_t bytes_read() const { return bytes_read_; }  // out of size()
  std::optional<std::uint64_t> size() const { return input_.size(); }

 private:
  std::size_t read(char* into, std::size_t size);
  ByteReader input_;
  std::uint64_t bytes_read_ = 0;
  std::optional<Decompressor> decompressor_;
  SavedReader reader_;
};

struct SaveDone {
  ExitStatus status = ExitStatus::ok;  // 2 if items are missing from the file
  SaveReport report;
  Duration took{};
};
// Saves the items to the file, whose free space is checked first, or with nullptr to standard output.
SaveDone save_items(Session& session, const ItemOptions& options, SavingFile* file);

struct LoadDone {
  ExitStatus status =
      ExitStatus::ok;  // 2 for a file that is cut off or damaged, or structures that are there
  LoadReport report;
  SavedReader::End file;
  Duration took{};
};
// Loads the items. Throws Failure(try_again) between two batches if a deadline or a signal ends the run.
void load_items(Session& session, Cluster& cluster, const LoadOptions& options, const std::string& file,
                LoadDone& done);

void add_structures(JsonObject& line, const LoadReport& report);
void add_skipped(JsonObject& line, const std::map<std::string, std::uint64_t>& skipped);

}  // namespace mcds
