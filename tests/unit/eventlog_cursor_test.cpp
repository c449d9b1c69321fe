#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <sstream>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/structures/eventlog/cursor.hpp"
#include "common/structures/eventlog/format.hpp"
#include "tests/support/memcached_process.hpp"

namespace mcds::eventlog_cursor_test {

namespace {

CursorState some_state() {
  CursorState state;
  state.ring = "eventlog:deploys:60x60";
  state.seen = WallTime(std::chrono::microseconds(1795234133945001));
  state.parts[{29920568, 0}] = {"5f3a9c0d1e2b4a67", 1834,
                                EventId::parse("019aa4c5-21d9-7c3e-b1f0-2a9d5e7c4b18")};
  state.parts[{29920568, 1}] = {"0f1e2d3c4b5a6978", 42, std::nullopt};
  state.lost.emplace(PartName{29920567, 0}, "0123456789abcdef");
  return state;
}

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

void write(const std::string& path, std::string_view text) {
  std::ofstream(path) << text;
}

ErrorCode code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Failure& failure) {
    return failure.code();
  }
  return ErrorCode::internal;
}

}  // namespace

TEST_CASE("cursors: what is written is read back") {
  CHECK(CursorState::parse(some_state().text(), "f") == some_state());
  CursorState plain;
  plain.ring = "eventlog:x:1x1";
  CHECK(CursorState::parse(plain.text(), "f") == plain);
  CHECK(CursorState::parse("", "f") == CursorState{});
}

TEST_CASE("cursors: one that mcds 0.x wrote for several copies is refused, and the message says so") {
  std::string text =
      "mcds-eventlog-cursor 2\nlog eventlog2:x:60x60\npart 29920568/1 5f3a9c0d1e2b4a67 1834 -\n";
  text += "end *" + checksum(text) + '\n';
  CHECK_THROWS_WITH_AS(CursorState::parse(text, "f"), doctest::Contains("f is a cursor of mcds 0.x"),
                       Failure);
}

TEST_CASE("cursors: a damaged, truncated or foreign file is refused, byte by byte") {
  const std::string text = some_state().text();
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 4);
    CAPTURE(i);
    CHECK_THROWS_AS(CursorState::parse(changed, "f"), Failure);
    if (i != 0) CHECK_THROWS_AS(CursorState::parse(text.substr(0, i), "f"), Failure);
  }
  CHECK_THROWS_AS(CursorState::parse(text + text, "f"), Failure);
  CHECK_THROWS_AS(CursorState::parse("\n", "f"), Failure);
  CHECK_THROWS_AS(CursorState::parse("root:x:0:0\n", "f"), Failure);
  CHECK_THROWS_AS(CursorState::parse(std::string("\0\0\0", 3), "f"), Failure);
  // The checksum is right, but the version is another.
  std::string other = "mcds-eventlog-cursor 3\nlog x\n";
  other += "end *" + checksum(other) + '\n';
  CHECK_THROWS_AS(CursorState::parse(other, "f"), Failure);
}

TEST_CASE("cursors: forgetting keeps what is in the window") {
  CursorState state = some_state();
  state.forget_before(29920568);
  CHECK(state.parts.size() == 2);
  CHECK(state.lost.empty());
  state.forget_before(29920569);
  CHECK(state.parts.empty());
}

TEST_CASE("cursor files: saved whole, through symbolic links, with the file's mode") {
  const test::TempDirectory directory;
  const std::string path = directory.path() + "/cursor";
  const std::string link = directory.path() + "/link";
  write(path, "");
  ::chmod(path.c_str(), 0600);
  REQUIRE(::symlink("cursor", link.c_str()) == 0);
  {
    CursorFile file(link);
    CHECK(file.load() == CursorState{});
    file.save(some_state());
    file.save(some_state());
  }
  CHECK(content(path) == some_state().text());
  struct stat status {};
  REQUIRE(::lstat(link.c_str(), &status) == 0);
  CHECK(S_ISLNK(status.st_mode));
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  CHECK(CursorFile(path).load() == some_state());
}

TEST_CASE("cursor files: locked while one run has them, also after it has saved") {
  const test::TempDirectory directory;
  const std::string path = directory.path() + "/cursor";
  {
    CursorFile file(path);
    CHECK(code_of([&] { CursorFile second(path); }) == ErrorCode::try_again);
    file.save(some_state());
    CHECK(code_of([&] { CursorFile second(path); }) == ErrorCode::try_again);
    file.save(some_state());
    CHECK(code_of([&] { CursorFile second(path); }) == ErrorCode::try_again);
  }
  CHECK(CursorFile(path).load() == some_state());
}

TEST_CASE("cursor files: what cannot be used says why") {
  const test::TempDirectory directory;
  CHECK(code_of([&] { CursorFile file(directory.path() + "/no/such"); }) == ErrorCode::cannot_write);
  CHECK(code_of([&] { CursorFile file(directory.path()); }) == ErrorCode::cannot_read);
  const std::string path = directory.path() + "/foreign";
  write(path, "my shopping list\n");
  CHECK(code_of([&] { CursorFile(path).load(); }) == ErrorCode::bad_data);
  CHECK(content(path) == "my shopping list\n");
}

}  // namespace mcds::eventlog_cursor_test
