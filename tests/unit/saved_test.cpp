// The file of item save: what is written is read, and a file that is cut off or changed anywhere is told from
// a whole one.
#include "common/operations/saved.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "common/operations/never_saved.hpp"

namespace mcds {

namespace {

struct Item {
  std::uint32_t flags;
  std::int64_t ends_s;
  std::string value;
  bool operator==(const Item&) const = default;
};
using Items = std::map<std::string, Item>;

Items some_items() {
  return {{"plain", {0, 0, "x"}},
          {"empty", {7, 1'900'000'000, ""}},
          {"with\r\nends", {UINT32_MAX, 0, "\r\nadd evil 0 0 1\r\nx\r\n"}},
          {std::string("\0 ", 2), {1, 1'900'000'001, std::string("a\0b", 3)}},
          {"large", {0, 0, std::string(300'000, 'v')}}};
}

std::string saved(const Items& items) {
  std::string file;
  SavedWriter writer([&](std::string_view bytes) { file += bytes; }, "0123456789abcdef",
                     JsonObject().number("format", 1));
  for (const auto& [key, item] : items) writer.add(key, item.flags, item.ends_s, item.value);
  writer.finish(JsonObject().number("vanished", 0));
  CHECK(writer.bytes() == file.size());
  return file;
}

struct Read {
  Items items;
  SavedReader::End end;
};

// In pieces of `piece` bytes.
Read read(std::string_view file, std::size_t piece = 4096) {
  SavedReader reader([&](char* into, std::size_t size) {
    const std::size_t taken = std::min({size, piece, file.size()});
    std::memcpy(into, file.data(), taken);
    file.remove_prefix(taken);
    return taken;
  });
  Read result;
  while (const auto item = reader.next())
    result.items[item->key] = {item->flags, item->ends_s, std::string(item->value)};
  result.end = reader.end();
  return result;
}

}  // namespace

TEST_CASE("what is saved is read, however the file comes") {
  const Items items = some_items();
  const std::string file = saved(items);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{1} << 20}) {
    const Read back = read(file, piece);
    CHECK(back.items == items);
    CHECK((back.end.ours && back.end.whole && back.end.problem.empty()));
  }
  const Read twice = read(file + file);
  CHECK((twice.items == items && twice.end.whole));
}

TEST_CASE("a file that was cut off anywhere is not whole, and what stands before the cut is read") {
  Items items = some_items();
  items.erase("large");
  const std::string file = saved(items);
  for (std::size_t size = 1; size < file.size(); ++size) {
    const Read back = read(std::string_view(file).substr(0, size));
    CHECK_FALSE((back.end.whole || back.end.problem.empty()));
    for (const auto& [key, item] : back.items) CHECK(items.at(key) == item);
  }
}

TEST_CASE("a file with any byte changed is not whole") {
  Items items = some_items();
  items.erase("large");
  const std::string file = saved(items);
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (const char change : {'\1', '\x20'}) {
      std::string changed = file;
      changed[at] = static_cast<char>(changed[at] ^ change);
      const Read back = read(changed);
      CHECK_MESSAGE(!(back.end.ours && back.end.whole), "byte ", at, " of ", file.size());
    }
  }
}

TEST_CASE("only what stores an item is a record") {
  for (const char* text : {"flush_all\r\n", "set a 0 0 1\r\nx\r\n", "ms a 1 MS\r\nx\r\n",
                           "add a 0 0 1 noreply\r\nx\r\n", "add a 4294967296 0 1\r\nx\r\n",
                           "add a 0 0 -1\r\nx\r\n", "add a 0 0 99999999999\r\nx\r\n", "add a 0 0 1\nx\n",
                           "add a 0 0 1\r\nxy\r\n", "ms !! 1 b ME\r\nx\r\n", "add  0 0 1\r\nx\r\n", "\r\n"}) {
    const Read back = read(text);
    CHECK_MESSAGE(back.items.empty(), text);
    CHECK_MESSAGE(!back.end.problem.empty(), text);
  }
  const Read foreign = read("add a 5 -1 1\r\nx\r\nms YiBj 1 T9 b ME F3\r\ny\r\n");
  CHECK(foreign.items == Items{{"a", {5, 0, "x"}}, {"b c", {3, 9, "y"}}});
  CHECK((foreign.end.problem.empty() && !foreign.end.ours && !foreign.end.whole));
}

TEST_CASE("locks, fences, votes, marks and what has copies are never saved, under any name") {
  const std::string lock = R"(b7c1e0f2a94d4f6e {"host":"web3"})";
  const auto why = [](std::string_view key, std::string_view value, std::uint32_t flags = 0,
                      std::size_t copies = 1) -> std::string {
    const char* word = never_saved(saved_as(key, "", copies), key, value, flags);
    return word == nullptr ? "" : word;
  };
  CHECK(why("lock:night", lock) == "locks");
  CHECK(why("app:lock:night:fence", "1795234747290139") == "locks");
  CHECK(why("fortress", lock) == "locks");
  CHECK(why("fortress:fence", "1795234747290139") == "locks");
  CHECK(why("array:jobs:json:lock", lock) == "locks");
  CHECK(why("cache:report:rebuild", lock) == "locks");
  CHECK(why("lockserver:votes:1", "x") == "votes");
  CHECK(why("table0:blocked", "M1 1 2 …") == "marks");
  CHECK(why("array2:jobs", "J1") == "copies");
  CHECK(why("counter:hits", "7", 5) == "copies");
  CHECK(why("counter:hits", "7", 0, 2) == "copies");
  CHECK(why("counter:hits", "7").empty());
  CHECK(why("table:blocked:v:x", "1").empty());
  CHECK(why("page:1", "hello", 7).empty());
  CHECK(saved_as("page:1", "", 1).what == Savable::item);
  CHECK(saved_as("table:blocked:i:3", "", 1).name == "blocked");
}

}  // namespace mcds
