#include "tools/commands/item/saving.hpp"

namespace mcds {

namespace {

bool is_compressed(const std::string& path) {
  return path.ends_with(".zst");
}

}  // namespace

SavingFile::SavingFile(const std::string& path) : file_(path) {
  if (is_compressed(path)) compressor_.emplace([this](std::string_view bytes) { file_.write(bytes); });
}

void SavingFile::keep() {
  if (compressor_) compressor_->finish();
  file_.keep();
}

SavedFile::SavedFile(const std::string& path)
    : input_(path), reader_([this](char* into, std::size_t size) {
        return decompressor_ ? decompressor_->read(into, size) : read(into, size);
      }) {
  if (is_compressed(path))
    decompressor_.emplace([this](char* into, std::size_t size) { return read(into, size); });
}

std::size_t SavedFile::read(char* into, std::size_t size) {
  const std::size_t got = input_.read(into, size);
  bytes_read_ += got;
  return got;
}

SavedReader::End SavedFile::end() const {
  SavedReader::End end = reader_.end();
  if (decompressor_ && !decompressor_->problem().empty()) {
    end.problem =
        decompressor_->problem() + " behind byte " + std::to_string(reader_.offset()) + " of what they hold";
    end.whole = false;
  }
  return end;
}

void add_passed_over(JsonObject& line, const std::map<std::string, std::uint64_t>& passed_over) {
  JsonObject reasons;
  for (const auto& [why, count] : passed_over) reasons.number(why, count);
  line.object("passed_over", reasons);
}

}  // namespace mcds
