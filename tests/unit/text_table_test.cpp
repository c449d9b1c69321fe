#include "tools/cli/text_table.hpp"

#include <doctest/doctest.h>

#include "tools/cli/cell_text.hpp"

namespace mcds::text_table_test {

namespace {

std::string table_of(std::size_t width, std::initializer_list<const char*> rows) {
  TextTable table(width, false);
  table.call_server("unix:/run/a.sock", "m1");
  std::string text;
  for (const char* row : rows) text += table.add(row);
  return text + table.flush();
}

}  // namespace

TEST_CASE("cell_words: units, words and stored data") {
  const ServerNames servers{{"unix:/run/a.sock", "m1"}};
  CHECK(cell_text("size_bytes", "4608", servers) == "4.5 KiB");
  CHECK(cell_text("size_bytes", "0", servers) == "0 B");
  CHECK(cell_text("rtt_us", "180", servers) == "180 us");
  CHECK(cell_text("rtt_us", "1500000", servers) == "1.5 s");
  CHECK(cell_text("ttl_s", "90", servers) == "1m30s");
  CHECK(cell_text("uptime_s", "7265", servers) == "2h1m");
  CHECK(cell_text("uptime_s", "180000", servers) == "2d2h");
  CHECK(cell_text("ttl_s", "null", servers) == "-");
  CHECK(cell_text("share", "0.3371", servers) == "33.71%");
  CHECK(cell_text("made_at", "\"2026-11-21T04:08:53.945Z\"", servers) == "2026-11-21 04:08:53Z");
  CHECK(cell_text("found", "true", servers) == "yes");
  CHECK(cell_text("server", "\"unix:/run/a.sock\"", servers) == "m1");
  CHECK(cell_text("member", "\"a\\nb\"", servers) == "a\\nb");
  CHECK(
      cell_text(
          "holder",
          R"({"host":"web3","pid":4711,"user":"deploy","note":"backup","acquired_at":"2026-11-21T04:08:53.945Z"})",
          servers) == "deploy@web3 pid 4711, backup, since 2026-11-21 04:08:53Z");
  CHECK(
      cell_text(
          "copies",
          R"([{"server":"unix:/run/a.sock","value":3},{"server":"b:1","error":{"code":"unavailable","message":"no connection"}}])",
          servers) == "m1 value 3; b:1 no connection");
  CHECK(cell_text("value", R"({"host":"is","pid":1})", servers) == R"({"host":"is","pid":1})");
  CHECK(cell_text("values", R"(["a",{"b":1}])", servers) == R"(a, {"b":1})");
}

TEST_CASE("shortened: whole characters, at the end or in the middle") {
  CHECK(shown_width("äöü") == 3);
  CHECK(shown_width("日本") == 4);
  CHECK(shown_width("e\u0301") == 1);
  CHECK(shortened("abcdef", 6, false) == "abcdef");
  CHECK(shortened("abcdefg", 6, false) == "abcde…");
  CHECK(shortened("日本語", 5, false) == "日本…");
  CHECK(shortened("cache-prod-1.example.com:11211", 12, true) == "cache…:11211");
}

TEST_CASE("a table aligns all its rows, numbers to the right") {
  CHECK(table_of(0, {R"({"counter":"hits","value":7,"server":"unix:/run/a.sock"})",
                     R"({"counter":"x","value":1234,"server":"10.0.0.2:11211"})",
                     R"({"counter":"nope","found":false})"}) ==
        "counter  found  value  server\n"
        "hits                7  m1\n"
        "x                1234  10.0.0.2:11211\n"
        "nope     no\n");
}

TEST_CASE("a row's error stands behind it, or below where there is no room") {
  const auto rows = {R"({"server":"a:1","up":true,"version":"1.6.18","items":3})",
                     R"({"server":"b:1","up":false,"error":"no connection: refused"})"};
  CHECK(table_of(0, rows) ==
        "server  up    version  items\n"
        "a:1     up    1.6.18       3\n"
        "b:1     down  no connection: refused\n");
  CHECK(table_of(24, rows) ==
        "server  up    items\n"
        "a:1     up        3\n"
        "b:1     down\n"
        "    no connection:\n"
        "    refused\n");
}

TEST_CASE("a table is as narrow as the terminal: what is missed least goes first") {
  const auto rows = {R"({"key":"price:44","server":"10.0.0.1:11211","index":0,"hash":"2876543210"})",
                     R"({"key":"price:45","server":"10.0.0.2:11211","index":1,"hash":"12"})"};
  CHECK(table_of(30, rows) ==
        "key       server\n"
        "price:44  10.0.0.1:11211\n"
        "price:45  10.0.0.2:11211\n");
  for (std::size_t width = 20; width < 80; ++width) {
    const std::string text = table_of(width, rows);
    for (std::size_t from = 0; from < text.size();) {
      const std::size_t end = text.find('\n', from);
      CHECK(shown_width(text.substr(from, end - from)) <= width);
      from = end + 1;
    }
  }
}

TEST_CASE("a narrow table keeps the ttl, and what its rows are sorted by, and what is used is a share") {
  const char* lock =
      R"({"lock":"a","holder":{"host":"web3","pid":4711,"user":"bob","acquired_at":"2026-11-21T04:08:53.945Z"},"ttl_s":9,"server":"s:1"})";
  CHECK(table_of(40, {lock, lock}).starts_with("lock  holder    ttl  server\na     bob@web3   9s  s:1\n"));
  const char* used = R"({"server":"s:1","version":"1.6.18","used_bytes":734003,"limit_bytes":1048576})";
  CHECK(table_of(23, {used, used}).starts_with("server  version  used\ns:1     1.6.18    70%\n"));
  TextTable sorted(20, false);
  sorted.keep("idle_s");
  for (int i = 0; i < 2; ++i)
    static_cast<void>(sorted.add(R"({"key":"a","idle_s":5,"uptime_s":77,"server":"s:1"})"));
  CHECK(sorted.flush().starts_with("key  idle  server\na      5s  s:1\n"));
}

TEST_CASE("bars and grouped digits") {
  CHECK(bar(0.5, 4) == "██");
  CHECK(bar(0.28, 4) == "█▏");
  CHECK(bar(0, 4).empty());
  CHECK(bar(7, 2) == "██");
  CHECK(grouped(7) == "7");
  CHECK(grouped(1024) == "1,024");
  CHECK(grouped(1234567) == "1,234,567");
}

TEST_CASE("what is red on a screen takes no column, and ends with its line") {
  const std::string line = std::string("m3  ") + red_begins + "down: nobody" + red_ends;
  CHECK(shown_width(line) == 16);
  setenv("NO_COLOR", "1", 1);  // the test may run on a terminal
  CHECK(Screen::drawn(line, 80) == "m3  down: nobody");
  CHECK(Screen::drawn(line, 8) == "m3  dow…");
  unsetenv("NO_COLOR");
}

// A table of rates was once 118 columns wide on any terminal, and redrawing it on a terminal of 80 failed.
TEST_CASE("a table of many columns of which none is known as useless is as narrow as the terminal too") {
  std::string row = R"({"key":"a")";
  for (int i = 0; i < 14; ++i) row += ",\"some_rate_" + std::to_string(i) + "\":12345.678";
  row += "}";
  for (std::size_t width = 20; width < 160; ++width) {
    const std::string text = table_of(width, {row.c_str(), row.c_str()});
    CHECK(text.starts_with("key"));
    for (std::size_t from = 0; from < text.size();) {
      const std::size_t end = text.find('\n', from);
      CHECK(shown_width(text.substr(from, end - from)) <= width);
      from = end + 1;
    }
  }
}

TEST_CASE("a single row that is too wide is printed a field a line") {
  CHECK(table_of(20, {R"({"lock":"nightly","acquired":true,"ttl_s":600})"}) ==
        "lock      nightly\n"
        "acquired  yes\n"
        "ttl       10m\n");
}

TEST_CASE("rows that come after the screenful keep its columns; others begin a table") {
  TextTable table(0, false);
  CHECK(table.add(R"({"member":"a","has":true})").empty());
  CHECK(table.flush() == "member  has\na       yes\n");
  CHECK(table.add(R"({"member":"longer name","has":false,"note":"x"})") == "longer name  no  note x\n");
  CHECK(table.add(R"({"count":2})").empty());
  CHECK(table.flush() == "\ncount\n    2\n");
  std::string text = table.end();
  for (int i = 0; i < 59; ++i) text += table.add(R"({"count":3})");
  CHECK(text.empty());
  CHECK_FALSE(table.add(R"({"count":3})").empty());
}

TEST_CASE("the profile is of interest where there are several") {
  const char* one = R"({"key":"a","server":"s:1","profile":"ketama"})";
  const char* other = R"({"key":"a","server":"s:2","profile":"dalli"})";
  CHECK(table_of(0, {one, one}) == "key  server\na    s:1\na    s:1\n");
  CHECK(table_of(0, {one, other}) == "key  server  profile\na    s:1     ketama\na    s:2     dalli\n");
}

TEST_CASE("two columns that would have one title are distinguished by the field's name") {
  CHECK(table_of(0, {R"({"source":"live","moved":3,"moved_bytes":2048})"}) ==
        "source  moved  moved_bytes\nlive        3        2 KiB\n");
}

TEST_CASE("colours frame words, and nothing is counted for them") {
  TextTable table(80, true);
  static_cast<void>(table.add(R"({"server":"a:1","up":false,"items":1})"));
  CHECK(table.flush() == "server  up    items\na:1     \033[31mdown\033[0m      1\n");
}

}  // namespace mcds::text_table_test
