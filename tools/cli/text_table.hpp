// Formats answers as tables for people (-o text): one column per field, aligned over the first screenful of
// rows. Later rows keep these columns. A field that only few rows have is printed after its row.
#pragma once

#include "common/base/json.hpp"
#include "tools/cli/cell_text.hpp"

namespace mcds {

class TextTable {
 public:
  // `width` is that of the terminal; 0 means unlimited.
  TextTable(std::size_t width, bool colours) : width_(width), colours_(colours) {}

  void call_server(std::string address, std::string name) {
    names_.emplace(std::move(address), std::move(name));
  }
  // Keeps the column of this field, however narrow the table is.
  void keep(std::string field) { kept_.push_back(std::move(field)); }

  // Adds a row for a JSON object. Returns text that can be printed now, if any. A row whose first field
  // differs from the previous row's begins a new table. A single row that is too wide is printed one field
  // per line.
  std::string add(const std::string& object);
  // Returns true if rows wait for flush().
  bool waits() const { return !waiting_.empty(); }
  // Returns the remaining text. Later rows are returned at once, with the same column widths.
  std::string flush();
  // Flushes; the next row then has a header of its own.
  std::string end();

 private:
  struct Cell {
    std::string name;
    std::string text;
    bool number = false;
    bool good = false, bad = false;  // shown in colour
    std::string brief{};             // a shorter form for a narrow column
  };
  using Row = std::vector<Cell>;
  static const std::string& shown_text(const Cell& cell, bool brief) {
    return brief && !cell.brief.empty() ? cell.brief : cell.text;
  }
  struct Column {
    std::string name;
    std::string title;
    std::size_t width = 0;
    bool shown = true, brief = false;
    bool right = true;  // holds only numbers
  };

  Row row_of(const std::string& object) const;
  Cell cell_of(const JsonMember& member) const;
  void settle();
  void add_columns(const Row& row);
  void measure(Column& column) const;
  bool is_kept(const Column& column) const;
  void spare(std::string_view field);
  void fit();
  std::size_t total_width(std::size_t most = SIZE_MAX) const;  // with cells cut to `most`
  std::string header() const;
  std::string line_of(const Row& row) const;
  std::string painted(const Cell& cell, const std::string& text) const;
  std::string note_of(const Row& row) const;
  std::string with_note(std::string line, std::size_t used, const Row& row) const;
  std::string broken(const std::string& text, std::size_t indent) const;
  std::string upright(const Row& row) const;

  std::size_t width_;
  bool colours_;
  bool began_ = false;  // a table was printed
  ServerNames names_;
  std::vector<std::string> kept_{"server", "ttl_s"};
  std::vector<Row> waiting_;
  std::string kind_;             // first field of the rows
  std::vector<Column> columns_;  // empty until the widths are chosen
};

// Returns the width of the terminal on standard output, or of COLUMNS; 0 if there is neither.
std::size_t terminal_width();
// Returns true if standard output is a terminal and NO_COLOR is not set.
bool terminal_has_colours();

// A screen of lines that is redrawn in place, with the keys that end it.

struct ScreenSize {
  std::size_t width = 80, height = 24;
};
// Returns the size of the terminal on standard output.
ScreenSize screen_size();

// Shows the terminal's alternate page during its lifetime, then the previous page with the last lines below
// it, also if a signal ends or stops the program. Only one Screen may exist.
class Screen {
 public:
  // Requires that standard output is a terminal.
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Returns the line cut to `width` columns, with the red marks replaced by the terminal's codes, or removed.
  static std::string drawn(const std::string& line, std::size_t width);
  // Returns the bytes that overwrite the previous lines, cut to the terminal's size.
  static std::string frame(const std::vector<std::string>& lines, const ScreenSize& size);
  void show(const std::vector<std::string>& lines);
  // Returns the descriptor of the terminal whose keys are read, or -1.
  int keys() const;

 private:
  std::string last_;
};

}  // namespace mcds
