#include "tools/cli/text_table.hpp"

#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "common/base/bytes.hpp"
#include "common/base/process.hpp"
#include "common/base/text.hpp"
#include "common/base/units.hpp"

namespace mcds {

namespace {

constexpr std::size_t screenful = 60;  // rows
constexpr std::size_t narrowest = 8;   // the width that a cut cell keeps
constexpr std::size_t gap = 2;

// Fields that are shortened in the middle.
constexpr std::array told_by_both_ends{"server", "key", "from", "to"};
// Fields that are shown after a row, whatever the columns.
constexpr std::array notes{"error", "explain"};

// The order in which columns are dropped, the least important first, or shown in their brief form.
constexpr std::string_view min_useful =
    "server_pid server_started_at pid acquired_at holder cas index expires servers_up servers interval_s "
    "dropped watched_s expired_unfetched_per_s hash md5 flags points method point_index weight fair "
    "deletes_per_s refused_per_s max_connections bar fragile versions when_down idle_s copies "
    "alike_here_only also uptime_s connections language told_apart_after keys_needed selected_by "
    "behind_after explained limit_bytes evictions rtt_us distribution profile version fence lines listed "
    "items expires_at id";

template <typename List>
bool is_one_of(std::string_view word, const List& list) {
  return std::ranges::find(list, word) != list.end();
}

// Returns a holder without the process and the time of acquisition. Other fields have no brief form.
std::string brief_words(const JsonMember& member, const ServerNames& names) {
  if (member.name != "holder") return {};
  JsonObject rest;
  for (const JsonMember& part : json_members(member.value).value_or(std::vector<JsonMember>())) {
    if (part.name != "pid" && part.name != "acquired_at") rest.raw(part.name, part.value);
  }
  return cell_text(member.name, rest.text(), names);
}

}  // namespace

std::size_t terminal_width() {
  if (const char* columns = std::getenv("COLUMNS")) {
    const auto width = parse_u64(columns);
    if (width && *width >= 20 && *width <= 10000) return *width;
  }
  winsize size{};
  if (isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) return size.ws_col;
  return 0;
}

bool terminal_has_colours() {
  const char* refused = std::getenv("NO_COLOR");
  const char* kind = std::getenv("TERM");
  const bool dumb = kind == nullptr || std::string_view(kind) == "dumb";
  return !dumb && (refused == nullptr || *refused == '\0') && isatty(STDOUT_FILENO) != 0;
}

TextTable::Cell TextTable::cell_of(const JsonMember& member) const {
  static constexpr std::array judged{"up", "verdict", "copy", "severity", "ok"};
  static constexpr std::array<std::string_view, 4> good{"up", "ok", "found", "yes"};
  static constexpr std::array<std::string_view, 9> bad{
      "down", "missing", "misplaced", "duplicate", "divergent", "unreachable", "no answer", "problem", "no"};
  Cell cell{visible(member.name), cell_text(member.name, member.value, names_)};
  cell.brief = brief_words(member, names_);
  cell.number =
      !member.value.empty() && (member.value[0] == '-' || (member.value[0] >= '0' && member.value[0] <= '9'));
  if (member.name == "up") cell.text = cell.text == "yes" ? "up" : "down";
  cell.good = is_one_of(member.name, judged) && is_one_of(cell.text, good);
  cell.bad = member.name == "error" || (is_one_of(member.name, judged) && is_one_of(cell.text, bad));
  // A missing copy is normal, because most servers do not hold a key.
  if (member.name == "copy" && cell.text == "missing") cell.bad = false;
  return cell;
}

TextTable::Row TextTable::row_of(const std::string& object) const {
  Row row;
  const auto members = json_members(object).value_or(std::vector<JsonMember>());
  const auto is_called = [&](const JsonMember& name) {
    return name.name == "name" && std::ranges::any_of(row, [&](const Cell& cell) {
             return cell.name == "server" && cell.text == cell_text("name", name.value, {});
           });
  };
  for (const JsonMember& member : members) {
    if (is_called(member)) continue;
    // `at_s` and `expires_at_s` repeat the column before them as a number.
    if (member.name == "at_s" || member.name.ends_with("_at_s")) continue;
    row.push_back(cell_of(member));
    // A number of bytes means nothing without the limit, so the brief form is the share of the limit.
    const auto used = member.name == "limit_bytes" ? json_field(object, "used_bytes") : std::nullopt;
    const auto limit = parse_double(member.value);
    const auto cell = std::ranges::find(row, "used_bytes", &Cell::name);
    if (!used || !limit || *limit <= 0 || cell == row.end()) continue;
    cell->brief = format_fixed(parse_double(*used).value_or(0) / *limit * 100, 0) + '%';
  }
  return row;
}

std::string TextTable::add(const std::string& object) {
  Row row = row_of(object);
  if (row.empty()) return {};
  std::string text;
  if (row.front().name != kind_) text = end();
  kind_ = row.front().name;
  if (!columns_.empty()) return text + line_of(row);
  waiting_.push_back(std::move(row));
  return waiting_.size() >= screenful ? text + flush() : text;
}

std::string TextTable::flush() {
  if (waiting_.empty()) return {};
  settle();
  std::string text = std::exchange(began_, true) ? "\n" : "";
  if (waiting_.size() == 1 && width_ != 0 && total_width() > width_) {
    text += upright(waiting_.front());
    waiting_.clear();
    columns_.clear();
    return text;
  }
  if (width_ != 0) fit();
  text += header();
  for (const Row& row : waiting_) text += line_of(row);
  waiting_.clear();
  return text;
}

std::string TextTable::end() {
  std::string text = flush();
  columns_.clear();
  kind_.clear();
  return text;
}

// Chooses the columns of all waiting rows. A column stands after the one that precedes it in the first row
// that has it.
void TextTable::settle() {
  columns_.clear();
  for (const Row& row : waiting_) add_columns(row);
  for (Column& column : columns_) measure(column);
}

void TextTable::add_columns(const Row& row) {
  std::size_t place = 0;
  for (const Cell& cell : row) {
    if (is_one_of(cell.name, notes)) continue;
    const auto found = std::ranges::find(columns_, cell.name, &Column::name);
    if (found != columns_.end()) {
      place = static_cast<std::size_t>(found - columns_.begin()) + 1;
      continue;
    }
    Column column;
    column.name = cell.name;
    column.title = column_title(cell.name);
    // Two columns never have the same title: `moved` counts keys, so the size is `moved_bytes`.
    if (std::ranges::find(columns_, column.title, &Column::title) != columns_.end()) column.title = cell.name;
    columns_.insert(columns_.begin() + static_cast<std::ptrdiff_t>(place++), std::move(column));
  }
}

void TextTable::measure(Column& column) const {
  column.width = shown_width(column.title);
  const std::string* first = nullptr;
  bool differ = false;
  for (const Row& row : waiting_) {
    for (const Cell& cell : row) {
      if (cell.name != column.name) continue;
      column.width = std::max(column.width, shown_width(shown_text(cell, column.brief)));
      column.right = column.right && (cell.number || cell.text == "-" || cell.text.empty());
      if (first == nullptr) first = &cell.text;
      differ = differ || cell.text != *first;
    }
  }
  // The profile is useful only if several were requested.
  if (column.name == "profile" && &column != &columns_.front() && !differ) column.shown = false;
}

std::size_t TextTable::total_width(std::size_t most) const {
  std::size_t sum = 0;
  for (const Column& column : columns_) sum += column.shown ? std::min(column.width, most) + gap : 0;
  return sum < gap ? 0 : sum - gap;
}

bool TextTable::is_kept(const Column& column) const {
  return &column == &columns_.front() || is_one_of(column.name, kept_);
}

// Gives the width of a column to the others: all of it, or what its brief form saves.
void TextTable::spare(std::string_view field) {
  const auto has_brief = [&](const Row& row) {
    const auto cell = std::ranges::find(row, field, &Cell::name);
    return cell != row.end() && !cell->brief.empty();
  };
  const auto column = std::ranges::find(columns_, field, &Column::name);
  if (column == columns_.end()) return;
  if (std::ranges::any_of(waiting_, has_brief)) {
    column->brief = true;
    measure(*column);
  } else if (!is_kept(*column)) {
    column->shown = false;
    if (field == "limit_bytes") spare("used_bytes");
  }
}

void TextTable::fit() {
  for (const std::string_view name : split(min_useful, ' ')) {
    if (total_width() <= width_) return;
    spare(name);
  }
  // If there are still too many columns, the last are dropped.
  for (auto column = columns_.rbegin(); column != columns_.rend() && total_width(narrowest) > width_;
       ++column)
    column->shown = column->shown && is_kept(*column);
  // Cells are cut then, numbers last.
  for (const bool numbers : {false, true}) {
    while (total_width() > width_) {
      Column* widest = nullptr;
      for (Column& column : columns_) {
        if (column.shown && column.right <= numbers && (widest == nullptr || column.width > widest->width))
          widest = &column;
      }
      if (widest == nullptr || widest->width <= narrowest) break;
      --widest->width;
    }
  }
}

std::string TextTable::header() const {
  Row row;
  for (const Column& column : columns_) row.push_back({column.name, column.title});
  return line_of(row);
}

std::string TextTable::painted(const Cell& cell, const std::string& text) const {
  if (!colours_ || text.empty() || (!cell.good && !cell.bad)) return text;
  return (cell.good ? "\033[32m" : "\033[31m") + text + "\033[0m";
}

std::string TextTable::line_of(const Row& row) const {
  std::string line;
  std::size_t used = 0;   // in columns of the terminal
  std::size_t start = 0;  // of the next column of the table
  for (const Column& column : columns_) {
    if (!column.shown) continue;
    const auto cell = std::ranges::find(row, column.name, &Cell::name);
    if (cell != row.end() && !cell->text.empty()) {
      const std::string text = width_ == 0 ? cell->text
                                           : shortened(shown_text(*cell, column.brief), column.width,
                                                       is_one_of(column.name, told_by_both_ends));
      const std::size_t width = shown_width(text);
      const std::size_t place = start + (column.right ? column.width - std::min(column.width, width) : 0);
      const std::size_t from = used == 0 ? place : std::max(place, used + gap);
      line.append(from - used, ' ');
      line += painted(*cell, text);
      used = from + width;
    }
    start += column.width + gap;
  }
  return with_note(std::move(line), used, row);
}

// Returns the fields that have no column.
std::string TextTable::note_of(const Row& row) const {
  std::string note;
  for (const Cell& cell : row) {
    const bool has_column =
        std::ranges::any_of(columns_, [&](const Column& column) { return column.name == cell.name; });
    if (has_column || cell.text.empty()) continue;
    note += (note.empty() ? "" : ", ") + (is_one_of(cell.name, notes) ? "" : column_title(cell.name) + ' ') +
            cell.text;
  }
  return note;
}

// Appends the note to the row if it fits, otherwise prints it below.
std::string TextTable::with_note(std::string line, std::size_t used, const Row& row) const {
  const std::string note = note_of(row);
  if (note.empty()) return line + '\n';
  const bool bad = std::ranges::any_of(row, [](const Cell& cell) { return cell.name == "error"; });
  const bool beside = width_ == 0 || used + gap + shown_width(note) <= width_;
  line += beside ? std::string(gap, ' ') : '\n' + std::string(2 * gap, ' ');
  return line + painted({{}, {}, false, false, bad}, beside ? note : broken(note, 2 * gap)) + '\n';
}

// Returns the whole text, in lines that begin `indent` columns from the left.
std::string TextTable::broken(const std::string& text, std::size_t indent) const {
  return width_ <= indent + narrowest ? text : wrapped(text, indent, indent, width_);
}

std::string TextTable::upright(const Row& row) const {
  std::size_t titles = 0;
  for (const Cell& cell : row) titles = std::max(titles, shown_width(column_title(cell.name)));
  std::string text;
  for (const Cell& cell : row) {
    const std::string title = column_title(cell.name);
    text += title + std::string(titles - shown_width(title) + gap, ' ') +
            painted(cell, broken(cell.text, titles + gap)) + '\n';
  }
  return text;
}

namespace {

constexpr std::string_view other_page = "\033[?1049h\033[?25l\033[H\033[2J",
                           first_page = "\033[?25h\033[?1049l";

// The state of the only screen, for signal handlers.
struct Shown {
  bool keys = false;  // keys are read
  termios before{}, during{};
  sigset_t handled{};
};
Shown shown;

// Writes to the terminal. A failure means that the terminal is gone.
void put(std::string_view bytes) {
  static_cast<void>(write_all(STDOUT_FILENO, bytes));
}

void enter() {
  if (shown.keys) tcsetattr(STDIN_FILENO, TCSANOW, &shown.during);
  put(other_page);
}

void leave() {
  put(first_page);
  if (shown.keys) tcsetattr(STDIN_FILENO, TCSANOW, &shown.before);
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | SA_NODEFER | (signal == SIGCONT ? 0 : static_cast<int>(SA_RESETHAND));
  sigaction(signal, &action, nullptr);
}

// Restores the terminal, then ends or stops as if the signal had never been handled. Calls only functions
// that are safe in a signal handler.
void on_signal(int signal) {
  const int error = errno;
  if (signal != SIGCONT) {
    leave();
    ::raise(signal);
    handle(signal, on_signal);  // it was only a stop
  }
  const pid_t front = tcgetpgrp(STDOUT_FILENO);
  if (front < 0 || front == getpgrp()) enter();
  errno = error;
}

// Handles all signals that end or stop a program, except those that are waited for or left to others.
void handle_signals() {
  sigemptyset(&shown.handled);
  sigset_t blocked;
  sigprocmask(SIG_BLOCK, nullptr, &blocked);
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    struct sigaction action {};
    const bool passes = signal == SIGCHLD || signal == SIGURG || signal == SIGWINCH || signal == SIGTTIN ||
                        signal == SIGTTOU || sigismember(&blocked, signal) == 1;
    if (passes || sigaction(signal, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) continue;
    handle(signal, on_signal);
    sigaddset(&shown.handled, signal);
  }
}

}  // namespace

ScreenSize screen_size() {
  winsize window{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0 || window.ws_row == 0) return {};
  return {window.ws_col, window.ws_row};
}

Screen::Screen() {
  if (isatty(STDIN_FILENO) != 0 && tcgetpgrp(STDIN_FILENO) == getpgrp() &&
      tcgetattr(STDIN_FILENO, &shown.before) == 0) {
    shown.keys = true;
    shown.during = shown.before;
    shown.during.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  }
  handle_signals();
  enter();
}

Screen::~Screen() {
  leave();
  put(last_);
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    if (sigismember(&shown.handled, signal) == 1) std::signal(signal, SIG_DFL);
  }
  shown = {};
}

int Screen::keys() const {
  return shown.keys ? STDIN_FILENO : -1;
}

std::string Screen::drawn(const std::string& line, std::size_t width) {
  const bool colours = terminal_has_colours();
  std::string text;
  bool red = false;
  for (const char c : shortened(line, width, false)) {
    const bool marks = c == red_begins || c == red_ends;
    if (marks) red = c == red_begins;
    text += !marks ? std::string(1, c) : !colours ? "" : red ? "\033[31m" : "\033[0m";
  }
  return text + (red && colours ? "\033[0m" : "");
}

std::string Screen::frame(const std::vector<std::string>& lines, const ScreenSize& size) {
  std::string text = "\033[H";
  const std::size_t shown = std::min(lines.size(), size.height);
  for (std::size_t i = 0; i < shown; ++i)
    text += "\033[2K" + drawn(lines[i], size.width) + (i + 1 < shown ? "\r\n" : "");
  // Clears the lines below. The character in the last column of the last line must stay.
  return text + (shown < size.height ? "\r\n\033[J" : "");
}

void Screen::show(const std::vector<std::string>& lines) {
  const ScreenSize size = screen_size();
  put(frame(lines, size));
  last_.clear();
  for (const std::string& line : lines) last_ += drawn(line, size.width) + '\n';
}

}  // namespace mcds
