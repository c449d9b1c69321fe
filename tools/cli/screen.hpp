// A screen of lines that is redrawn in place, and the keys that end it.
#pragma once

#include <string>
#include <vector>

namespace mcds {

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
