#include "tools/cli/output.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/base/bytes.hpp"
#include "common/base/text.hpp"
#include "tools/cli/exit_status.hpp"

namespace mcds {

namespace {

constexpr std::size_t buffer_size = 64 * 1024;

// Whole, or as much as the descriptor takes; false when it takes no more.
bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = write(descriptor, bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
  return true;
}

// Characters, not bytes: what a column of UTF-8 takes on a terminal.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

// A JSON value as a cell: strings without quotes, everything else as it is.
std::string cell(const std::string& json) {
  auto text = json.starts_with('"') ? json_unquote(json) : std::nullopt;
  if (text && is_visible(*text)) return std::move(*text);
  std::string shown;
  append_visible_json(shown, json);
  return shown;
}

// One line of stderr in JSON mode.
std::string json_line(const char* kind, const JsonObject& object) {
  std::string line;
  append_visible_json(line, JsonObject().object(kind, object).text());
  return line;
}

// Of a message in JSON: UTF-8, whose controls the escapes of JSON show.
std::string readable(std::string_view text) {
  return is_utf8(text) ? std::string(text) : visible(text);
}

}  // namespace

void Output::answer(const JsonObject& object, std::string_view bare) {
  if (mode_ == OutputMode::json) {
    append_visible_json(pending_, object.text());
  } else if (mode_ == OutputMode::value) {
    pending_ += bare;
  } else {
    text_row(object.text());
    return line_done();
  }
  pending_ += '\n';
  line_done();
}

void Output::answer_bytes(const JsonObject& object, std::string_view bytes) {
  if (mode_ != OutputMode::value) return answer(object, {});
  pending_ += bytes;
  line_done();
}

void Output::raw(std::string_view bytes) {
  pending_ += bytes;
  line_done();
}

void Output::line_done() {
  if (!buffered_ || pending_.size() >= buffer_size) flush();
}

void Output::flush() {
  if (pending_.empty()) return;
  const bool written = write_all(STDOUT_FILENO, pending_);
  const int error = errno;
  pending_.clear();
  if (written) return;
  if (error == EPIPE) throw ClosedPipe{};
  throw Failure(ErrorCode::output_failed,
                "cannot write to standard output: " + std::string(std::strerror(error)));
}

void Output::text_row(const std::string& json) {
  std::vector<std::string> names;
  std::vector<std::string> cells;
  for (const JsonMember& member : json_members(json).value_or(std::vector<JsonMember>())) {
    names.push_back(visible(member.name));
    cells.push_back(cell(member.value));
  }
  const bool header = names != columns_;
  if (header) widths_.assign(names.size(), 0);
  columns_ = names;
  for (std::size_t i = 0; i < names.size(); ++i) {
    widths_[i] = std::max({widths_[i], names[i].size(), width_of(cells[i])});
  }
  const auto add_row = [&](const std::vector<std::string>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      pending_ += row[i];
      if (i + 1 < row.size()) pending_.append(widths_[i] - std::min(widths_[i], width_of(row[i])) + 2, ' ');
    }
    pending_ += '\n';
  };
  if (header) add_row(names);
  add_row(cells);
}

void Output::error(const Failure& failure, std::size_t line) const {
  std::string text;
  const std::string message =
      std::string(failure.what()) + (failure.code() == ErrorCode::unavailable ? no_server_hint_ : "");
  if (mode_ == OutputMode::json) {
    JsonObject error;
    error.bytes("code", name_of(failure.code())).bytes("message", readable(message));
    if (!failure.server().empty()) error.bytes("server", failure.server());
    if (line != 0) error.number("line", line);
    text = json_line("error", error);
  } else {
    text = "mcds: " + (line == 0 ? "" : "line " + std::to_string(line) + ": ") + message;
    if (!failure.server().empty()) text += " (server " + failure.server() + ')';
    text = visible(text);
  }
  // A failing stderr leaves nobody to tell.
  static_cast<void>(write_all(STDERR_FILENO, text + '\n'));
}

void Output::error_of(std::string_view name, std::span<const std::string> names,
                      const Failure& failure) const {
  if (names.size() < 2) return error(failure);
  error(Failure(failure.code(), std::string(name) + ": " + failure.what(), failure.server()));
}

void Output::raw_error(std::string_view bytes) const {
  static_cast<void>(write_all(STDERR_FILENO, bytes));
}

void Output::note(std::string_view line) const {
  static_cast<void>(write_all(STDERR_FILENO, visible(line) + '\n'));
}

void Output::warning(std::string_view message) const {
  note(mode_ == OutputMode::json ? json_line("warning", JsonObject().bytes("message", readable(message)))
                                 : "mcds: " + std::string(message));
}

}  // namespace mcds
