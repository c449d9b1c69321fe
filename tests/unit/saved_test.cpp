// The file of item save: it is read back as written, and a truncated or changed file is detected.
#include "common/operations/saved.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "common/journal/lines.hpp"
#include "common/operations/not_saveable.hpp"
#include "common/primitives/seal.hpp"

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

// Reads the file in pieces of `piece` bytes.
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

std::string why_never(std::string_view key, std::string_view value, std::uint32_t flags = 0) {
  const SavedAs as = judged(saved_as(key, ""), key, value, flags);
  return as.what == Savable::never ? as.why : "";
}

Savable saved_by_value(std::string_view key, std::string_view value) {
  return judged(saved_as(key, ""), key, value, 0).what;
}

std::string small_journal() {
  return journal_header("b7c1e0f2a94d4f6e") + encode({Change::add, "b7c1e0f2a94d4f6e.0", "\"x\""});
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

TEST_CASE("a file with items before its first or behind its last record is not whole") {
  const std::string file = saved(some_items()), other = "add other 0 0 1\r\ny\r\n";
  CHECK(read(file + file).end.whole);
  for (const std::string& text : {file + other, other + file, file + other + file}) {
    const Read done = read(text);
    CHECK(done.items.size() == some_items().size() + 1);
    CHECK_FALSE(done.end.whole);
    CHECK(done.end.problem.find("outside") != std::string::npos);
  }
  CHECK(read(other).end.problem.empty());
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

TEST_CASE("locks, fences, votes and what has copies are never saved, under any name") {
  const std::string lock = R"(b7c1e0f2a94d4f6e {"host":"web3","ttl_s":60})";
  CHECK(why_never("lock:night", lock) == "locks");
  CHECK(why_never("app:lock:night", R"(mine {"host":"web3"})") == "locks");
  CHECK(why_never("fortress", R"(mine {"finished_at":"2026-11-21T04:08:53.945Z"})") == "locks");
  CHECK(why_never("lock:night", "a word of another program") == "locks");
  CHECK(why_never("app:lock:night", lock) == "locks");
  CHECK(why_never("app:lock:night", "b7c1e0f2a94d4f6e") == "locks");
  CHECK(why_never("app:lock:night:fence", "1795234747290139") == "locks");
  CHECK(why_never("fortress", lock) == "locks");
  CHECK(why_never("fortress:fence", "1795234747290139") == "locks");
  CHECK(why_never("array:jobs:json:lock", lock) == "locks");
  CHECK(why_never("cache:report:rebuild", lock) == "locks");
  CHECK(why_never("lockserver:votes:1", "V0") == "votes");
  CHECK(why_never("app:lockserver:votes:1", "V1 1795234747290139") == "votes");
  CHECK(why_never("array2:jobs", small_journal()) == "copies");
  CHECK(why_never("table2:jobs:v:x", "1", 5) == "copies");
  CHECK(why_never("counter2:hits", seal("C3 1 2 3")) == "copies");
  CHECK(why_never("cache:page", seal("P1 b7c1e0f2a94d4f6e") + '\n') == "cache");
  CHECK(why_never("cachetag:x", "1234567890123456789") == "cache");
}

TEST_CASE("an application's keys are its own, whatever they are called") {
  for (const char* key : {"myapp:cache:page1",
                          "cache:page1",
                          "shop:counter:1",
                          "counter:1",
                          "counter2:1",
                          "site:visitors:1",
                          "visitors:today",
                          "visitors:site:300:5966666",
                          "user:table:1",
                          "table:users:v:1",
                          "table2:users:i:3",
                          "u:hash:9",
                          "x:array:1",
                          "array:x:s:b7c1e0f2a94d4f6e",
                          "z:eventlog:1",
                          "eventlog:z:conf",
                          "eventlog:z:60x60:dir:3",
                          "y:array0:q",
                          "v:hash0:q",
                          "account:lock:5",
                          "app:cachetag:x",
                          "mylockserver:votes:1",
                          "page:1"}) {
    CHECK_MESSAGE(saved_by_value(key, "app value") == Savable::item, key);
  }
  // A word, a space and a brace made a lock of these.
  for (const char* value :
       {"a {", "q {\x80\x01", R"(INFO {"user":"bob"})", R"(INFO {"ttl_s":60)", "INFO {}"}) {
    CHECK_MESSAGE(saved_by_value("page:1", value) == Savable::item, value);
  }
  // A number counts as an item, with the flags of any client.
  CHECK(saved_by_value("counter:hits", "7") == Savable::item);
  CHECK(saved_by_value("shop:counter:7:limit:1000:5", "7") == Savable::item);
  // A value that looks as mcds writes it counts as a structure, in any namespace.
  CHECK(saved_by_value("app:array:jobs", small_journal()) == Savable::structure);
  CHECK(saved_by_value("app:table:users:i", small_journal()) == Savable::structure);
  CHECK(saved_by_value("app:table:users:i:3", small_journal()) == Savable::structure);
  CHECK(saved_by_value("array:x:s:b7c1e0f2a94d4f6e", seal("+ b7c1e0f2a94d4f6e.0 1") + '\n') ==
        Savable::structure);
  CHECK(saved_by_value("eventlog:z:conf", seal("P1 60x60 1795240800") + '\n') == Savable::structure);
  CHECK(saved_by_value("eventlog:z:60x60:29913978", seal("E1 29913978 b7c1e0f2a94d4f6e") + '\n') ==
        Savable::structure);
  CHECK(saved_by_value("visitors:site:300:5966666", "7") == Savable::structure);
  CHECK(saved_by_value("counter:hits", seal("C1 1 5 -")) == Savable::counter);
}

TEST_CASE("a structure is selected by its name or the key by which it is known, and with it all its parts") {
  // Once, a backslash escaped the next byte, so that this selected AppUser:9.
  CHECK(KeySelection{.pattern = "App\\User*"}.has("App\\User:1"));
  CHECK_FALSE(KeySelection{.pattern = "App\\User*"}.has("AppUser:9"));
  CHECK(KeySelection{.pattern = "[!a][^b][*]"}.has("xx*"));
  CHECK_FALSE(KeySelection{.pattern = "[!a][^b][*]"}.has("ax*"));
  const auto selected = [](std::string_view key, const char* pattern) {
    return selects({.pattern = pattern}, saved_as(key, ""));
  };
  for (const char* key : {"table:blocked:i", "table:blocked:i:3", "table:blocked:v:x"}) {
    CHECK(selected(key, "table:blocked"));
    CHECK(selected(key, "*:i"));
    CHECK(!selected(key, "*:v:*"));
  }
  CHECK(selected("array:jobs:s:b7c1e0f2a94d4f6e", "array:*bs"));
  CHECK(!selected("array:jobs", "*:s:*"));
  CHECK(selected("eventlog:z:60x60:29913978", "eventlog:z:conf"));
  CHECK(saved_as("app:table:blocked:i:3", "").name == "blocked");
  CHECK(saved_as("app:table:blocked:i:3", "").root == "app:table:blocked");
}

}  // namespace mcds
