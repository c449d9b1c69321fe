#include "common/operations/saved.hpp"

#include <xxhash.h>

#include <new>

#include "common/base/bounds.hpp"
#include "common/base/bytes.hpp"
#include "common/cluster/request.hpp"

namespace mcds {

namespace {

constexpr std::size_t buffer_size = 256 * 1024;
constexpr std::size_t max_line_length = 1024;
constexpr std::size_t max_in_base64 = max_key_size / 4 * 3;
constexpr std::string_view note_prefix = "mcds:saved:";
constexpr std::int64_t long_ago = 2'592'001;
constexpr std::string_view formats[] = {"1", "2"};  // 1: without `from`

}  // namespace

RunningHash::RunningHash()
    : state_(XXH3_createState(), [](void* state) { XXH3_freeState(static_cast<XXH3_state_t*>(state)); }) {
  if (!state_) throw std::bad_alloc();
  reset();
}
void RunningHash::add(std::string_view bytes) {
  XXH3_64bits_update(static_cast<XXH3_state_t*>(state_.get()), bytes.data(), bytes.size());
}
std::uint64_t RunningHash::value() const {
  return XXH3_64bits_digest(static_cast<const XXH3_state_t*>(state_.get()));
}
void RunningHash::reset() {
  XXH3_64bits_reset(static_cast<XXH3_state_t*>(state_.get()));
}

SavedWriter::SavedWriter(Sink sink, std::string id, const JsonObject& about)
    : sink_(std::move(sink)), id_(std::move(id)) {
  buffer_.reserve(buffer_size + buffer_size / 4);
  note(about);
}

bool SavedWriter::can_save(std::string_view key) {
  return is_one_word(key) || key.size() <= max_in_base64;
}

void SavedWriter::add(std::string_view key, std::uint32_t flags, std::int64_t ends_s,
                      std::string_view value) {
  const std::string size = std::to_string(value.size());
  if (is_one_word(key)) {
    append_all(buffer_, {"add ", key, " ", std::to_string(flags), " ", std::to_string(ends_s), " ", size});
  } else {
    append_all(buffer_, {"ms ", base64(key), " ", size, " b F", std::to_string(flags), " T",
                         std::to_string(ends_s), " ME"});
  }
  append_all(buffer_, {"\r\n", value, "\r\n"});
  ++items_;
  if (buffer_.size() >= buffer_size) flush();
}

void SavedWriter::note(const JsonObject& about) {
  const std::string text = about.text();
  append_all(buffer_, {"add ", note_prefix, id_, " 0 ", std::to_string(long_ago), " ",
                       std::to_string(text.size()), "\r\n", text, "\r\n"});
}

void SavedWriter::from(std::size_t server) {
  if (from_ == server) return;
  from_ = server;
  note(JsonObject().number("from", server));
}

void SavedWriter::flush() {
  hash_.add(buffer_);
  bytes_ += buffer_.size();
  sink_(buffer_);
  buffer_.clear();
}

void SavedWriter::finish(JsonObject about) {
  flush();
  about.number("items", items_).number("bytes", bytes_).boolean("last", true);
  const std::string text = about.text();
  hash_.add(std::string_view(text).substr(0, text.size() - 1));
  note(about.bytes("xxh3", hex64(hash_.value())));
  flush();
}

// The line before a record's value.
struct SavedReader::Header {
  std::string key;
  std::uint32_t flags = 0;
  std::int64_t ends_s = 0;
  std::size_t size = 0;

  bool take_add(const std::vector<std::string_view>& words) {
    if (words.size() != 5) return false;
    key = words[1];
    return is_one_word(key) && take(words[2], words[3], words[4]);
  }

  bool take_ms(const std::vector<std::string_view>& words) {
    if (words.size() < 4) return false;
    std::string_view flag_word = "0", end_word = "0";
    bool encoded = false, adds = false;
    for (std::size_t i = 3; i < words.size(); ++i) {
      const std::string_view word = words[i];
      if (word == "b")
        encoded = true;
      else if (word == "ME")
        adds = true;
      else if (word.starts_with('F'))
        flag_word = word.substr(1);
      else if (word.starts_with('T'))
        end_word = word.substr(1);
      else
        return false;
    }
    auto decoded = encoded ? parse_base64(words[1]) : std::optional<std::string>(words[1]);
    if (!adds || !decoded || decoded->empty()) return false;
    key = std::move(*decoded);
    if (encoded ? key.size() > max_in_base64 : !is_one_word(key)) return false;
    return take(flag_word, end_word, words[2]);
  }

 private:
  bool take(std::string_view flag_word, std::string_view end_word, std::string_view size_word) {
    const auto flag = parse_u64(flag_word), bytes = parse_u64(size_word);
    const auto end = parse_i64(end_word);
    if (!flag || *flag > UINT32_MAX || !end || *end > latest_second || !bytes || *bytes > max_item_value_size)
      return false;
    flags = static_cast<std::uint32_t>(*flag);
    // memcached's dumps have -1 or 0 for never; all positive numbers are times.
    ends_s = *end < 0 ? 0 : *end;
    size = static_cast<std::size_t>(*bytes);
    return !key.empty() && key.size() <= max_key_size;
  }
};

bool SavedReader::have(std::size_t size) {
  while (buffer_.size() - position_ < size && !filled_) {
    buffer_.erase(0, position_);
    position_ = 0;
    const std::size_t had = buffer_.size();
    const std::size_t more =
        std::max(buffer_size, std::min(size, 2 * had) - std::min(size, had));  // the file may be wrong
    buffer_.resize(had + more);
    const std::size_t got = fill_(buffer_.data() + had, more);
    buffer_.resize(had + got);
    filled_ = got == 0;
  }
  return buffer_.size() - position_ >= size;
}

// Returns the next line without its end; it stays in the buffer.
std::optional<std::string_view> SavedReader::line() {
  for (std::size_t size = 64;; size = std::min(size * 4, max_line_length)) {
    have(size);
    const std::string_view rest = std::string_view(buffer_).substr(position_, max_line_length);
    const std::size_t end = rest.find("\r\n");
    if (end != std::string_view::npos) return rest.substr(0, end);
    if (filled_ || size == max_line_length) return std::nullopt;
  }
}

std::optional<SavedItem> SavedReader::damaged(const std::string& what, std::uint64_t at) {
  end_.problem = what + " at byte " + std::to_string(at);
  end_.whole = false;
  return std::nullopt;
}

std::optional<SavedItem> SavedReader::at_end() {
  if (open_) return damaged("the file was cut off: the last record is missing");
  if (end_.ours && outside_)
    return damaged("more items may be missing outside the first and the last record", *outside_);
  return std::nullopt;
}

// Returns false if the record is not ours or contradicts what was read.
bool SavedReader::take_note(const SavedItem& note) {
  const auto last = json_field(note.value, "last");
  if (!open_) {
    const auto format = json_field(note.value, "format");
    if (last || !format || std::ranges::find(formats, *format) == std::end(formats)) return false;
    appended_ = !head_.empty();
    if (!appended_) head_ = note.value;
    from_.reset();
    open_ = end_.ours = true;
    id_ = note.key;
    end_.whole = false;
    items_ = 0;
    hash_.reset();
    return true;
  }
  if (const auto from = parse_u64(json_field(note.value, "from").value_or("")); from && note.key == id_) {
    from_ = from;
    return true;
  }
  const auto items = parse_u64(json_field(note.value, "items").value_or(""));
  const std::size_t sum = note.value.rfind(",\"xxh3\":\"");
  if (!last || items != items_ || sum == std::string_view::npos || note.key != id_ || note.flags != 0)
    return false;
  hash_.add(note.value.substr(0, sum));
  if (note.value.substr(sum) != ",\"xxh3\":\"" + hex64(hash_.value()) + "\"}") return false;
  open_ = false;
  end_.whole = true;
  end_.about = note.value;
  return true;
}

std::optional<SavedItem> SavedReader::next() {
  while (end_.problem.empty()) {
    if (!have(1)) return at_end();
    const auto first = line();
    if (!first) return damaged(filled_ ? "the file was cut off in a record" : "a line is not a record");
    const std::size_t line_size = first->size() + 2;
    const std::vector<std::string_view> words = split(*first, ' ');
    Header header;
    if (words[0] == "add" ? !header.take_add(words) : words[0] != "ms" || !header.take_ms(words))
      return damaged("a line is not a record");
    const std::size_t size = line_size + header.size + 2;
    if (!have(size)) return damaged("the file was cut off in a record");
    const std::string_view record = std::string_view(buffer_).substr(position_, size);
    if (!record.ends_with("\r\n")) return damaged("a value's length differs from its record");
    SavedItem item{std::move(header.key), header.flags, header.ends_s, record.substr(line_size, header.size)};
    const bool note = item.key.starts_with(note_prefix) && item.ends_s == long_ago;
    if (note && !take_note(item)) return damaged("the last record does not match the file");
    hash_.add(record);
    position_ += size;
    offset_ += size;
    if (note) continue;
    ++items_;
    ++all_items_;
    if (!open_ && !outside_) outside_ = offset_ - size;
    if (open_ && !appended_) item.from = from_;
    return item;
  }
  return std::nullopt;
}

}  // namespace mcds
