#include "tools/commands/servers/screen_lines.hpp"

#include <array>

#include "tools/cli/cell_words.hpp"

namespace mcds {

namespace {

struct Column {
  const char* title;
  const char* field;
  enum class Form { number, bytes, share, used } form;
};

// The most important first.
constexpr std::array columns_of_the_screen{
    Column{"get/s", "gets_per_s", Column::Form::number},
    Column{"hit", "hit_ratio", Column::Form::share},
    Column{"set/s", "sets_per_s", Column::Form::number},
    Column{"evict/s", "evictions_per_s", Column::Form::number},
    Column{"used", "used_bytes", Column::Form::used},
    Column{"conns", "connections", Column::Form::number},
    Column{"refused", "out_of_memory", Column::Form::number},
    Column{"in/s", "received_bytes_per_s", Column::Form::bytes},
    Column{"out/s", "sent_bytes_per_s", Column::Form::bytes},
    Column{"items", "items", Column::Form::number},
    Column{"limit", "limit_bytes", Column::Form::bytes},
    Column{"expired/s", "expired_unfetched_per_s", Column::Form::number},
    Column{"of conns", "max_connections", Column::Form::number},
    Column{"no conns", "listen_disabled", Column::Form::number},
};
constexpr std::size_t between = 2, indent_below = 4, least_columns = 3;

// 3 or 4 digits and a letter: 950, 12.3k, 1.20M.
std::string short_number(double value, double step) {
  static constexpr std::array letters{"", "k", "M", "G", "T"};
  std::size_t letter = 0;
  for (; value >= step && letter + 1 < letters.size(); ++letter) value /= step;
  const int digits =
      letter == 0   ? (value < 10 && value != static_cast<double>(static_cast<std::uint64_t>(value)) ? 1 : 0)
      : value < 10  ? 2
      : value < 100 ? 1
                    : 0;
  return format_fixed(value, digits) + letters[letter];
}

std::string cell_of(const JsonObject& line, const Column& column) {
  const std::string text = line.text();
  const auto number = [&](const char* field) -> std::optional<double> {
    const auto json = json_field(text, field);
    return json ? parse_double(*json) : std::nullopt;
  };
  const auto value = number(column.field);
  if (!value) return "-";
  switch (column.form) {
    case Column::Form::number:
      return short_number(*value, 1000);
    case Column::Form::bytes:
      return short_number(*value, 1024);
    case Column::Form::share:
      return format_fixed(*value * 100, 1) + '%';
    case Column::Form::used:
      break;
  }
  const auto limit = number("limit_bytes");
  return limit && *limit > 0 ? format_fixed(*value / *limit * 100, 0) + '%' : short_number(*value, 1024);
}

std::string right(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, shown_width(text)), ' ') + text;
}

// Why there are no figures.
std::string state_of(const JsonObject& line) {
  const std::string text = line.text();
  const auto error = json_field(text, "error");
  if (error) return (json_field(text, "up") == "false" ? "down: " : "") + json_unquote(*error).value_or("");
  return json_field(text, "restarted") ? "restarted" : "";
}

struct Cells {
  std::vector<std::vector<std::string>> rows;  // of each server, by column
  std::vector<std::size_t> widths;

  explicit Cells(const std::vector<ServerRow>& servers) {
    for (const Column& column : columns_of_the_screen) widths.push_back(shown_width(column.title));
    for (const ServerRow& server : servers) {
      auto& row = rows.emplace_back();
      for (std::size_t i = 0; i < columns_of_the_screen.size(); ++i) {
        row.push_back(cell_of(server.line, columns_of_the_screen[i]));
        // Wide enough for what comes at the next look, so that columns stay where they are.
        widths[i] = std::max({widths[i], shown_width(row.back()), std::size_t{5}});
      }
    }
  }
  // How many columns fit behind so many places.
  std::size_t fitting(std::size_t from, std::size_t width) const {
    std::size_t count = 0;
    for (; count < widths.size() && from + between + widths[count] <= width; ++count)
      from += between + widths[count];
    return count;
  }
};

}  // namespace

std::vector<std::string> server_lines(const std::vector<ServerRow>& rows, std::size_t width,
                                      std::size_t height) {
  const Cells cells(rows);
  std::size_t names = shown_width("server");
  for (const ServerRow& row : rows) names = std::max(names, shown_width(row.name));
  std::size_t start = names, count = cells.fitting(names, width);
  const bool below = count < least_columns;
  if (below) start = indent_below, count = cells.fitting(indent_below, width);
  const auto figures = [&](auto text_of) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i)
      text += std::string(between, ' ') + right(text_of(i), cells.widths[i]);
    return text;
  };
  const auto padded = [&](const std::string& name) {
    return name + std::string(start - std::min(start, shown_width(name)), ' ');
  };
  std::vector<std::string> lines{padded("server") +
                                 figures([](std::size_t i) { return columns_of_the_screen[i].title; })};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t needed = below ? 2 : 1;
    if (i + 1 < rows.size() && lines.size() + needed + 1 > height) {
      lines.push_back("and " + std::to_string(rows.size() - i) + " more; a taller window shows them");
      break;
    }
    const std::string state = state_of(rows[i].line);
    const std::string rest = state.empty() ? figures([&](std::size_t at) { return cells.rows[i][at]; })
                                           : std::string(between, ' ') + state;
    if (below) lines.push_back(rows[i].name);
    lines.push_back((below ? std::string(start, ' ') : padded(rows[i].name)) + rest);
  }
  return lines;
}

}  // namespace mcds
