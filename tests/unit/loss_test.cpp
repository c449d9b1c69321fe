// A known loss is reported after every further change of the structure, until it is replaced or accepted.
#include <doctest/doctest.h>

#include <algorithm>

#include "common/structures/array/array.hpp"
#include "common/structures/elements/hash.hpp"
#include "tests/support/world.hpp"

namespace mcds::loss_test {

namespace {

using Texts = std::vector<std::string>;

const Journal::Options small{.segment_size = 600, .max_padding = 2048, .max_change = 4096};

struct World : test::World {
  explicit World(std::size_t copies) : test::World(5, copies, {.item_size = 4096}) {}

  // Damages the checksum of the line that contains `text`, in every copy.
  std::size_t damage(const std::string& key_part, const std::string& text) {
    std::size_t damaged = 0;
    for (std::size_t server = 0; server < memory.size(); ++server) {
      std::vector<std::pair<std::string, std::string>> spoiled;
      for (const auto& [key, item] : memory.server(server).items()) {
        const std::size_t at = item.value.find(text);
        if (key.find(key_part) == std::string::npos || at == std::string::npos) continue;
        std::string value = item.value;
        const std::size_t end = value.find('\n', at);
        value[end - 1] = value[end - 1] == '0' ? '1' : '0';
        spoiled.emplace_back(key, value);
      }
      for (const auto& [key, value] : spoiled) {
        memory.server(server).execute(Request::set(key, value, Exptime::never()));
        ++damaged;
      }
    }
    return damaged;
  }
};

Elements::Listing listing(const Context& context) {
  Hash cfg(context, "cfg");
  return cfg.fetch([](Elements::Found&) {});
}

}  // namespace

TEST_CASE("loss: an array with a damaged line goes on telling it when it is compacted and grows") {
  for (const int elements : {10, 200}) {
    CAPTURE(elements);
    World world(1);
    Array jobs(world.context, "jobs", small);
    for (int i = 0; i < elements; ++i) jobs.change(Texts{'"' + std::to_string(i) + '"'}, {});
    CHECK(jobs.fetch().complete());
    REQUIRE(world.damage("jobs", " \"7\" ") == 1);
    const auto report = [&] {
      const auto contents = jobs.fetch();
      CHECK(contents.loss.any());
      CHECK(std::count(contents.elements.begin(), contents.elements.end(), "\"7\"") == 0);
      CHECK(contents.elements.size() >= static_cast<std::size_t>(elements) - 1);
    };
    report();
    CHECK_FALSE(Journal(world.context, "array:jobs", small).compact(compacted));
    report();
    // These changes exceed the item, so that it is sealed.
    for (int i = 0; i < 100; ++i) jobs.change(Texts{"\"more" + std::to_string(i) + '"'}, {});
    report();
    jobs.replace(Texts{"1"});
    CHECK(jobs.fetch().complete());
  }
}

TEST_CASE("loss: a change behind bytes that begin like padding is read, also after the journal was sealed") {
  std::string page = "# a page";
  for (int i = 0; i < 100; ++i) page += " - one = two + " + std::to_string(i);
  for (const std::string& foreign : {std::string("#padding"), page}) {
    World world(1);
    Array jobs(world.context, "jobs", small);
    jobs.change(Texts{"1"}, {});
    static_cast<void>(world.memory.execute(Request::append("array:jobs", foreign)));
    jobs.change(Texts{"2"}, {});
    for (int i = 3; i < 203; ++i) {
      const auto contents = jobs.fetch();
      CHECK(contents.loss.any());
      CHECK(std::ranges::find(contents.elements, "2") != contents.elements.end());
      jobs.change(Texts{std::to_string(i)}, {});
    }
  }
}

TEST_CASE(
    "loss: an index with a damaged line goes on telling it when it is compacted, until it is accepted") {
  for (const std::size_t copies : {1U, 2U, 3U}) {
    CAPTURE(copies);
    World world(copies);
    Hash cfg(world.context, "cfg");
    std::vector<Element> fields;
    for (int i = 0; i < 50; ++i) fields.push_back({"f" + std::to_string(i), "v"});
    for (const auto& result : cfg.set(fields)) CHECK_FALSE(result.failure);
    CHECK(listing(world.context).complete());
    REQUIRE(world.damage(":i:", "\"f7\"") == copies);
    CHECK_FALSE(listing(world.context).complete());
    cfg.remove(Texts{"f1"});
    world.clock.advance(std::chrono::seconds(61));
    cfg.compact();
    CHECK_FALSE(listing(world.context).complete());
    CHECK(cfg.get(Texts{"f7"}).front().yes);
    cfg.accept();
    CHECK(listing(world.context).complete());
    CHECK(cfg.drop());
    CHECK(listing(world.context).shards == 0);
  }
}

}  // namespace mcds::loss_test
