// Caches in every interleaving.
#include "tests/exhaustive/pairs.hpp"
#include "tests/models/cache_model.hpp"

namespace mcds::cache_exhaustive {

using namespace cache_model;

namespace {

// Longer than a rebuild's lease plus the extra lifetime of its key.
constexpr Duration lapse = 8s;

}  // namespace

TEST_CASE("exhaustive cache: askers, rebuilders and invalidations against each other") {
  using exhaustive::holds;
  for (const Before before : {Before::nothing, Before::stale}) {
    const std::string state = before == Before::nothing ? ", missing" : ", stale";
    const auto pair = [&](const std::string& name, std::vector<std::string> incarnations,
                          const Bounds& bounds) {
      holds("cache: " + name + state, callers(std::move(incarnations), {.before = before}), bounds);
    };
    pair("ask | ask", {"a", "a"}, {.faults = 1});
    pair("ask | ask waiting", {"a", "w"}, {.faults = 1, .hasty_attempts = 1});
    pair("ask | expire ask", {"a", "ea"}, {.faults = 1});
    pair("ask | remove ask", {"a", "ra"}, {.faults = 1});
    pair("expire | remove", {"e", "r"}, {.faults = 1});
    pair("ask dying | ask waiting", {"d", "w"}, {.faults = 1, .hasty_attempts = 1});
    pair("ask, stored late | ask, a lapse anywhere", {"a", "a"}, {.pauses = {lapse}, .max_pauses = 1});
    pair("ask, building long | ask", {"l", "a"}, {.faults = exhaustive::full() ? 1 : 0});
    pair("ask, building long, renewing | ask", {"k", "a"}, {.faults = 1});
  }
  holds("cache: ask anew | ask anew, fresh", callers({"f", "f"}, {.before = Before::fresh}), {.faults = 1});
  holds("cache: ask anew | expire ask, fresh", callers({"f", "ea"}, {.before = Before::fresh}),
        {.faults = 1});
}

TEST_CASE("exhaustive cache: three clients") {
  using exhaustive::holds_in_full;
  for (const std::vector<std::string>& three : {std::vector<std::string>{"a", "a", "a"},
                                                {"a", "a", "e"},
                                                {"a", "ea", "r"},
                                                {"a", "e", "r"},
                                                {"f", "a", "e"}}) {
    const std::string name = "cache: " + three[0] + " | " + three[1] + " | " + three[2];
    for (const Before before : {Before::nothing, Before::stale})
      holds_in_full(name + (before == Before::nothing ? ", missing" : ", stale"),
                    callers(three, {.before = before}), {});
  }
}

// Two clients may then rebuild at the same time, which makes no value wrong.
TEST_CASE("exhaustive cache: no invalidation is undone although items are lost") {
  using exhaustive::holds;
  Bounds losing{.faults = 1, .kinds = Happenings::none()};
  losing.kinds.evictions = true;
  losing.evictable = [](const std::string& key) { return key != source; };
  for (const std::vector<std::string>& one :
       {std::vector<std::string>{"a", "a"}, {"a", "ea"}, {"a", "ra"}, {"e", "r"}})
    holds("cache, an item is evicted: " + one[0] + " | " + one[1], callers(one, {.exclusive = false}),
          losing);
}

// A build that is overtaken by an expire is stale as soon as it is stored. A lost tag makes nothing fresh.
TEST_CASE("exhaustive cache: tags, askers and expires against each other") {
  using exhaustive::holds;
  Bounds losing{.faults = 1, .kinds = Happenings::none()};
  losing.kinds.evictions = losing.kinds.delayed = true;
  losing.evictable = [](const std::string& key) { return key != source; };
  for (const std::vector<std::string>& one : {std::vector<std::string>{"t", "t"},
                                              {"t", "x"},
                                              {"t", "xt"},
                                              {"t", "xu"},
                                              {"u", "xu"},
                                              {"x", "x"},
                                              {"tu", "x"},
                                              {"v", "xt"}}) {
    for (const Before before : {Before::nothing, Before::stale, Before::fresh}) {
      if (before == Before::fresh && one[0] == "x") continue;
      const std::string name = "cache, tags: " + one[0] + " | " + one[1] +
                               (before == Before::nothing ? ", missing"
                                : before == Before::stale ? ", stale"
                                                          : ", fresh");
      const Setting setting{.before = before, .exclusive = false, .tagged = true};
      holds(name, callers(one, setting), {.faults = 1}, 0);
      holds(name + ", data lost", callers(one, setting), losing);
    }
  }
}

void number_of_nobody(Request& request) {
  if (request.op == Op::add_and_get && request.key == "cachetag:T") request.value = "4611686018427387904";
}

void look_at_no_tag(Request& request) {
  if (request.op == Op::incr_or_create && request.key == "cachetag:T") request.key = "cachetag:elsewhere";
}

TEST_CASE("exhaustive cache: tags, caught when broken") {
  using exhaustive::caught;
  const Setting tagged{.before = Before::nothing, .exclusive = false, .tagged = true};
  caught("cache, broken: a tag's numbers read after the build began", callers({"b", "x"}, tagged), {});
  Setting spoiled = tagged;
  spoiled.spoil = number_of_nobody;
  Bounds losing{.faults = 1, .kinds = Happenings::none()};
  losing.kinds.evictions = true;
  losing.evictable = [](const std::string& key) { return key == "cachetag:T"; };
  caught("cache, broken: a tag is created with the same number again", callers({"txvt"}, spoiled), losing);
  spoiled.spoil = look_at_no_tag;
  caught("cache, broken: another tag is expired", callers({"tu", "x"}, spoiled), {});
}

TEST_CASE("exhaustive cache: caught when broken") {
  using exhaustive::caught;
  caught("cache, broken: stored by set", callers({"a", "e"}, {.spoil = test::store_by_set}), {});
  caught("cache, broken: a lock that is no lock", callers({"a", "a"}, {.spoil = test::lock_by_set}), {});
  caught("cache, broken: a placeholder like any other",
         callers({"a", "ra"}, {.before = Before::nothing, .spoil = test::placeholder_of_nobody}),
         {.faults = 1});
}

}  // namespace mcds::cache_exhaustive
