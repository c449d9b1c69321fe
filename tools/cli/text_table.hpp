// Answers as tables for people: -o text. A column for each field, all rows of the first screenful aligned;
// what comes after keeps these columns. Fields that only a few rows have are shown after such a row, in
// words.
#pragma once

#include "common/base/json.hpp"
#include "tools/cli/cell_words.hpp"

namespace mcds {

class TextTable {
 public:
  // `width`: of the terminal; 0: unlimited.
  TextTable(std::size_t width, bool colours) : width_(width), colours_(colours) {}

  void call_servers(ServerNames names) { names_ = std::move(names); }

  // One more row, of a JSON object. Returns what can be printed by now, if anything. A row that begins with
  // another field than those before it begins another table. A row that is alone and too wide is printed a
  // field a line.
  std::string add(const std::string& object);
  // All that is left; what comes later is printed at once, as wide as that was.
  std::string flush();
  // Flushes, and the next row has a header of its own.
  std::string end();

 private:
  struct Cell {
    std::string name;
    std::string text;
    bool number = false;
    bool good = false, bad = false;  // worth a colour
  };
  using Row = std::vector<Cell>;
  struct Column {
    std::string name;
    std::string title;
    std::size_t width = 0;
    bool shown = true;
    bool right = true;  // nothing but numbers
  };

  Row row_of(const std::string& object) const;
  Cell cell_of(const JsonMember& member) const;
  void settle();
  void add_columns(const Row& row);
  void measure(Column& column) const;
  void fit();
  std::size_t total_width(std::size_t most = SIZE_MAX) const;  // with cells cut to that
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
  std::vector<Row> waiting_;
  std::string kind_;             // the first field's name
  std::vector<Column> columns_;  // settled
};

// Of the terminal that standard output is, or what COLUMNS says; 0: neither.
std::size_t terminal_width();
// Standard output is a terminal, and NO_COLOR is not set.
bool terminal_has_colours();

// A screen of lines that is redrawn in place, and the keys that end it.

struct ScreenSize {
  std::size_t width = 80, height = 24;
};
// Of the terminal that standard output is.
ScreenSize screen_size();

// From its making to its end the terminal shows another page; then that of before is back, with the last
// lines below it. A signal that ends the program, or stops it, gives the terminal back too. One at a time.
class Screen {
 public:
  // Standard output is a terminal.
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // What is drawn over the lines of before: as many as the terminal has, each no wider than it is.
  static std::string frame(const std::vector<std::string>& lines, const ScreenSize& size);
  void show(const std::vector<std::string>& lines);
  // The terminal whose keys are read, or -1.
  int keys() const;

 private:
  std::string last_;
};

}  // namespace mcds
