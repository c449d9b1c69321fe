// Arrays in every interleaving.
#include "tests/exhaustive/pairs.hpp"
#include "tests/models/array_model.hpp"

namespace mcds::array_exhaustive {

using namespace array_model;

namespace {

// Returns bounds with small items. A compaction fills items up, so large ones would be copied repeatedly.
Bounds small_items(int faults) {
  Bounds bounds{.faults = faults, .hasty_attempts = 1};
  bounds.server.item_size = 600;
  return bounds;
}

}  // namespace

TEST_CASE("exhaustive array: every change against every other, and against fetch and compaction") {
  using exhaustive::holds;
  const std::string letters = "amdpzcfk";
  for (std::size_t i = 0; i < letters.size(); ++i) {
    for (std::size_t j = i; j < letters.size(); ++j) {
      if (letters[i] == 'f' && letters[j] == 'f') continue;
      holds(std::string("array: ") + letters[i] + " | " + letters[j] + "f",
            writers({{letters[i]}, {letters[j], 'f'}}), small_items(1));
    }
  }
  holds("array: append | compact append", writers({"a", "ca"}), small_items(1));
  holds("array: take | compact take", writers({"k", "ck"}), small_items(0));
  holds("array: take | compact take, segments", writers({"k", "ck"}, {.grown = true}), small_items(0));
}

TEST_CASE("exhaustive array: what is lost is reported") {
  using exhaustive::holds;
  Bounds losing{.faults = 1, .kinds = Happenings::none(), .hasty_attempts = 1};
  losing.server.item_size = 600;
  losing.kinds.evictions = true;
  for (const char* incarnation : {"af", "df", "pf", "cf", "zf", "ff"}) {
    losing.evictable = [](const std::string& one) { return one != key; };
    holds(std::string("array, a segment is evicted: a | ") + incarnation[0] + incarnation[1],
          writers({"a", incarnation}, {.grown = true}), losing);
    losing.evictable = [](const std::string& one) { return one == key; };
    holds(std::string("array, the root is evicted: a | ") + incarnation[0] + incarnation[1],
          writers({"a", incarnation}, {.grown = true, .may_go = true}), losing);
    Bounds restarting = losing;
    restarting.kinds = Happenings::none();
    restarting.kinds.restarts = true;
    holds(std::string("array, the server restarts: a | ") + incarnation[0] + incarnation[1],
          writers({"a", incarnation}, {.grown = true, .may_go = true}), restarting);
  }
}

// Drops while writers and readers run, with faults of any of their requests.
TEST_CASE("exhaustive array: a drop loses nothing that comes after it") {
  using exhaustive::holds;
  // A drop also removes the ids: an append that is executed late counts again after it (array.hpp).
  Bounds none_late = small_items(0);
  none_late.kinds.delayed = false;
  for (const bool grown : {false, true}) {
    const std::string state = grown ? ", segments" : "";
    for (const char letter : {'a', 'm', 'd', 'p', 'z', 'k', 'c', 'f', 'x'})
      holds(std::string("array: drop | ").append(1, letter).append("f").append(state),
            writers({"x", {letter, 'f'}}, {.grown = grown}), small_items(1));
    holds("array: drop append | append fetch" + state, writers({"xa", "af"}, {.grown = grown}), none_late);
    holds("array: drop | append | compact" + state, writers({"x", "a", "c"}, {.grown = grown}),
          small_items(0));
  }
}

// The client that drops may die at any step, get no answer, or be refused.
TEST_CASE("exhaustive array: a second drop leaves nothing of what the first has not finished") {
  using exhaustive::holds;
  for (const bool grown : {false, true}) {
    const std::string state = grown ? ", segments" : "";
    holds("array: drop, dropped again" + state, writers({"x"}, {.grown = grown, .ends = true}),
          small_items(2));
    Bounds dying = small_items(1);
    dying.kinds = Happenings::none();
    dying.kinds.deaths = true;
    dying.mortal = 0;
    for (const char letter : {'a', 'd', 'p', 'k', 'f', 'x'})
      holds(std::string("array: drop dying | ").append(1, letter).append(", dropped again").append(state),
            writers({"x", {letter}}, {.grown = grown, .ends = true}), dying);
  }
}

TEST_CASE("exhaustive array: the JSON encoding") {
  using exhaustive::holds;
  const Setting json{.encoding = ArrayEncoding::json};
  for (const char* pair : {"aa", "am", "md", "pa", "pm", "za", "xa", "xm", "xp", "xx"})
    holds(std::string("array, JSON: ").append(1, pair[0]).append(" | ").append(1, pair[1]).append("f"),
          writers({{pair[0]}, {pair[1], 'f'}}, json), small_items(1));
}

TEST_CASE("exhaustive array: caught when broken") {
  using exhaustive::caught;
  Setting broken;
  broken.compact = compact_without_cas;
  caught("array, broken: compaction without cas", writers({"a", "c"}, broken), small_items(0));
  broken.compact = compact_and_forget;
  caught("array, broken: compaction that forgets ids", writers({"a", "c"}, broken), small_items(1));
  caught("array, broken: a change in two steps", writers({"m", "f"}, {.change = change_in_two_steps}),
         small_items(0));
  caught("array, broken: it is told what was there before the change",
         writers({"k", "k"}, {.take = look_and_take}), small_items(0));
  caught("array, broken: a blind repetition", writers({"a"}, {.change = repeat_blindly}), small_items(1));
  caught("array, broken: a drop removes the segments before the root is emptied",
         writers({"x", "af"}, {.grown = true, .drop = remove_segments_first}), small_items(1));
  caught("array, the articles': get, change, set",
         writers({"a", "a"}, {.encoding = ArrayEncoding::json, .change = get_and_set}), small_items(0));
}

}  // namespace mcds::array_exhaustive
