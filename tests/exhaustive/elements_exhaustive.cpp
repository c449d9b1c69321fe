// Tables and hashes in every interleaving.
#include "tests/exhaustive/pairs.hpp"
#include "tests/models/elements_model.hpp"

namespace mcds::elements_exhaustive {

using namespace elements_model;

namespace {

// Returns bounds with small items. A compaction fills items up, so large ones would be copied repeatedly.
Bounds small_items(int faults, std::vector<Duration> pauses = {}) {
  Bounds bounds{.faults = faults, .pauses = std::move(pauses), .hasty_attempts = 1};
  bounds.max_pauses = bounds.pauses.empty() ? 0 : 1;
  bounds.server.item_size = 500;
  return bounds;
}

}  // namespace

TEST_CASE("exhaustive table and hash: every change against every other, and against fetch and compaction") {
  using exhaustive::holds;
  for (const std::string structure : {"table", "hash"}) {
    for (const char* pair : {"ss", "sr", "rr", "sf", "rf", "sc", "rc", "cc", "cf", "so"}) {
      const std::vector<std::string> incarnations{std::string(1, pair[0]), std::string(1, pair[1])};
      const std::string name = structure + ": " + pair[0] + " | " + pair[1];
      Bounds bounds = small_items(1);
      if (pair == std::string("sc")) bounds.hasty_attempts = 0;
      holds(name + ", it is there", users(incarnations, {.structure = structure, .before = true}), bounds);
      holds(name + ", it was removed long ago",
            users(incarnations, {.structure = structure, .removed = true}), bounds);
    }
    // After a new element, the next one is assumed to be new.
    for (const char* rival : {"s", "r", "f", "c"}) {
      const std::string name = structure + ": o s | " + rival;
      const Bounds bounds = small_items(rival == std::string("f") || rival == std::string("c") ? 0 : 1);
      holds(name + ", it is there", users({"os", rival}, {.structure = structure, .before = true}), bounds);
      holds(name + ", it was removed long ago",
            users({"os", rival}, {.structure = structure, .removed = true}), bounds);
      holds(structure + ": o b | " + rival + ", two batches on their way",
            users({"ob", rival}, {.structure = structure, .removed = true}), small_items(0), 0);
    }
    holds(structure + ": s | s, the first ever", users({"s", "s"}, {.structure = structure, .shard = false}),
          small_items(1));
    holds(structure + ": s g | r g", users({"sg", "rg"}, {.structure = structure, .before = true}),
          small_items(1));
  }
  holds("hash: s | c, a minute passes anywhere", users({"s", "c"}, {.removed = true}), small_items(0, {61s}));
}

TEST_CASE("exhaustive table and hash: what is lost is reported") {
  using exhaustive::holds;
  // An index that is lost as a whole cannot be detected, so only one fault is allowed.
  Bounds losing = small_items(1);
  losing.kinds = Happenings::none();
  losing.kinds.evictions = losing.kinds.restarts = true;
  for (const std::string structure : {"table", "hash"}) {
    for (const char* pair : {"sf", "sg", "rf", "so"}) {
      const std::vector<std::string> incarnations{std::string(1, pair[0]), std::string(1, pair[1])};
      holds(structure + ", data lost: " + pair[0] + " | " + pair[1],
            users(incarnations, {.structure = structure, .before = true}), losing, 0);
    }
  }
}

TEST_CASE("exhaustive table and hash: fields that expire, against every change, fetch and compaction") {
  using exhaustive::holds;
  for (const char* pair : {"e s", "e e", "e r", "e f", "e c", "e g", "es f", "ee c", "e sf"}) {
    const std::string both = pair;
    const std::vector<std::string> incarnations{both.substr(0, both.find(' ')),
                                                both.substr(both.find(' ') + 1)};
    Bounds bounds = small_items(0, {4s});
    if (both == "e c" || both == "ee c") bounds.hasty_attempts = 0;
    const std::string name = "hash, they expire: " + incarnations[0] + " | " + incarnations[1];
    holds(name + ", it is there", users(incarnations, {.before = true, .ending = true}), bounds);
    holds(name + ", it was removed long ago", users(incarnations, {.removed = true, .ending = true}), bounds);
    if (both.size() > 3) continue;
    holds(name + ", a fault", users(incarnations, {.before = true, .ending = true}), small_items(1));
  }
  // After a new element, the next one is assumed to be new.
  holds("hash, they expire: o e | s", users({"oe", "s"}, {.before = true, .ending = true}),
        small_items(0, {4s}));
  // The pause is long enough for compaction to drop the line of an expired element. A request that is also in
  // flight for a minute exceeds the guarantees.
  holds("hash, they expire: e | c, a minute passes anywhere",
        users({"e", "c"}, {.before = true, .ending = true}), small_items(0, {61s}), 0);
  holds("hash, they expire: e e | c, a minute passes anywhere",
        users({"ee", "c"}, {.removed = true, .ending = true}), small_items(0, {61s}), 0);
}

TEST_CASE("exhaustive table and hash: two copies") {
  using exhaustive::holds;
  for (const std::string structure : {"table", "hash"}) {
    for (const char* pair : {"ss", "sr", "rr", "sf", "rf", "sg", "rg", "sc", "rc", "cc", "cf", "so"}) {
      const std::vector<std::string> incarnations{std::string(1, pair[0]), std::string(1, pair[1])};
      const std::string name = structure + ", 2 copies: " + pair[0] + " | " + pair[1];
      // Fetches and compactions read some hundred keys; with a fault, there would be too many schedules.
      const std::string written = std::string(pair).substr(0, 2);
      Bounds bounds = small_items(written == "sr" || written == "rr" ? 1 : 0);
      bounds.servers = 2;
      bounds.kinds.restarts = true;
      holds(name + ", it is there",
            users(incarnations, {.structure = structure, .before = true, .copies = 2}), bounds, 0);
      holds(name + ", it was removed long ago",
            users(incarnations, {.structure = structure, .removed = true, .copies = 2}), bounds, 0);
    }
    // After a new element, the next one is read while it is being listed, but only in the first copy, which
    // may hold what the other copy has lost.
    Bounds forgetting = small_items(1);
    forgetting.servers = 2;
    forgetting.kinds = Happenings::none();
    forgetting.kinds.evictions = true;
    holds(structure + ", 2 copies: o s | g, it is there, or forgotten by one",
          users({"os", "g"}, {.structure = structure, .before = true, .copies = 2}), forgetting, 0);
    // A client that has just created the structure reads nothing before it adds.
    for (const std::string rival : {"s", "r", "g"}) {
      if (rival == "s" && (structure == "table" || !exhaustive::full())) continue;
      if (rival == "r" && structure == "table" && !exhaustive::full()) continue;
      Bounds bounds = small_items(rival == "s" ? 0 : 1);
      bounds.servers = 2;
      holds(structure + ", 2 copies: o s | " + rival + ", the first ever",
            users({"os", rival}, {.structure = structure, .shard = false, .copies = 2}), bounds, 0);
    }
    // Two batches are in flight, one of them after another that exists.
    for (const char* rival : {"s", "r", "g"}) {
      const std::string name = structure + ", 2 copies: ";
      Bounds bounds = small_items(0);
      bounds.servers = 2;
      holds(name + "o s | " + rival + ", it is there",
            users({"os", rival}, {.structure = structure, .before = true, .copies = 2}), bounds, 0);
      holds(name + "o b | " + rival + ", two batches on their way",
            users({"ob", rival}, {.structure = structure, .removed = true, .copies = 2}), bounds, 0);
    }
  }
}

TEST_CASE(
    "exhaustive table and hash: who removes drops the name at once, unless another is about to set it") {
  using exhaustive::holds;
  for (const char* rival : {"s", "os", "r", "t", "f", "c", "d"}) {
    const bool drops = rival == std::string("d");
    for (const bool old : {false, true}) {
      Bounds bounds = small_items(rival == std::string("os") ? 0 : 1);
      bounds.hasty_attempts = 0;
      holds(
          std::string("hash: t | ") + rival + (old ? ", it was listed long ago" : ", it was listed just now"),
          users({"t", rival}, {.before = true, .old = old, .drops = drops}), bounds, 0);
    }
  }
}

TEST_CASE("exhaustive table and hash: drop, against every change, fetch, compaction and another drop") {
  using exhaustive::holds;
  for (const std::string structure : {"table", "hash"}) {
    for (const char* rival : {"s", "sg", "sd", "r", "f", "c", "d", "o"}) {
      for (const bool prompt : {true, false}) {
        if (!prompt && std::string("s sg").find(rival) == std::string::npos) continue;
        const std::string name = structure + ": d | " + rival + (prompt ? "" : ", who stands still");
        // A set that could not be listed again is answered as such, and its element may still be seen.
        Bounds bounds = small_items(!prompt && rival == std::string("sg") ? 0 : 1);
        bounds.hasty_attempts = 0;
        bounds.prompt = prompt;
        bounds.kinds.delayed = !prompt && rival == std::string("s");
        holds(name + ", it is there",
              users({"d", rival}, {.structure = structure, .before = true, .drops = true, .prompt = prompt}),
              bounds, 0);
        holds(name + ", it was removed long ago",
              users({"d", rival}, {.structure = structure, .removed = true, .drops = true, .prompt = prompt}),
              bounds, 0);
        holds(name + ", it was removed just now",
              users({"d", rival}, {.structure = structure, .drops = true, .prompt = prompt}), bounds, 0);
      }
    }
    Bounds bounds = small_items(0);
    bounds.prompt = true;
    holds(structure + ": d | o s, behind a new one",
          users({"d", "os"}, {.structure = structure, .before = true, .drops = true, .prompt = true}), bounds,
          0);
    holds(structure + ": d | s, the first ever",
          users({"d", "s"}, {.structure = structure, .shard = false, .drops = true, .prompt = true}), bounds,
          0);
  }
}

TEST_CASE("exhaustive table and hash: drop of several copies, and who dies or gets no reply meanwhile") {
  using exhaustive::holds;
  for (const std::size_t copies : {2U, 3U}) {
    for (const char* rival : {"s", "sd", "r", "f", "d"}) {
      for (const bool faulty : {false, true}) {
        // The others have some hundred requests, in too many orders to explore in every run.
        const bool is_short =
            copies == 2 && (rival == std::string("r") || (rival == std::string("s") && !faulty));
        if (!is_short && !exhaustive::full()) continue;
        Bounds bounds = small_items(faulty ? 1 : 0);
        bounds.servers = copies;
        bounds.mortal = 0;
        bounds.prompt = true;
        bounds.servers_in_order = true;
        bounds.kinds = Happenings::none();
        bounds.kinds.deaths = bounds.kinds.reply_lost = faulty;
        bounds.hasty_attempts = 0;
        const std::string name = "hash, " + std::to_string(copies) + " copies: d | " + rival +
                                 (faulty ? ", it dies or gets no reply" : "");
        holds(name + ", it is there",
              users({"d", rival}, {.before = true, .copies = copies, .drops = true, .prompt = true}), bounds,
              0);
      }
    }
  }
}

TEST_CASE("exhaustive table and hash: caught when broken") {
  using exhaustive::caught;
  const Bounds dying = small_items(1);
  caught("elements, broken: listed after it was set", users({"s", "g"}, {.mistake = Mistake::listed_after}),
         dying);
  Bounds two_servers = dying;
  two_servers.servers = 2;
  caught("elements, 2 copies, broken: removed without a trace",
         users({"r", "g"}, {.before = true, .mistake = Mistake::removal_without_trace, .copies = 2}),
         two_servers);
  caught("elements, broken: one that expired is taken for listed",
         users({"ee", "c"}, {.removed = true, .mistake = Mistake::listed_when_it_was_there, .ending = true}),
         small_items(0, {61s}));
  caught("elements, broken: it keeps the end that it had",
         users({"es", "g"}, {.mistake = Mistake::end_kept, .ending = true}), small_items(0));
  caught("elements, broken: compaction without a grace",
         users({"s", "c"}, {.removed = true, .mistake = Mistake::compaction_without_grace}), small_items(0));
  caught("elements, broken: compaction without cas",
         users({"s", "c"}, {.others = true, .mistake = Mistake::compaction_without_cas}), small_items(0));
  caught("elements, broken: drop does not compare",
         users({"d", "s"}, {.before = true, .mistake = Mistake::drop_without_comparing, .drops = true}),
         small_items(0));
  caught("elements, broken: drop does not wait for who has listed a name",
         users({"d", "s"}, {.removed = true, .mistake = Mistake::drop_without_waiting, .drops = true}),
         small_items(0));
  caught("elements, broken: slow, and not listed again",
         users({"s", "c"}, {.removed = true, .mistake = Mistake::never_listed_again}), small_items(0, {90s}));
}

}  // namespace mcds::elements_exhaustive
