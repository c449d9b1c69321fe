// Event logs in every interleaving.
#include "tests/exhaustive/pairs.hpp"
#include "tests/models/eventlog_model.hpp"

namespace mcds::eventlog_exhaustive {

using namespace eventlog_model;

namespace {

Bounds small_items(int faults) {
  Bounds bounds{.faults = faults};
  bounds.server.item_size = 500;
  bounds.max_schedules = 1'000'000;
  return bounds;
}

}  // namespace

TEST_CASE("exhaustive eventlog: puts against puts, fetches and a cursor") {
  using exhaustive::holds;
  holds("eventlog: p | p, nobody is disturbed", parties({"p", "p"}), small_items(0));
  exhaustive::holds_in_full("eventlog: p | p", parties({"p", "p"}), small_items(1));  // 600,000 schedules
  holds("eventlog: p | f", parties({"p", "f"}), small_items(1));
  holds("eventlog: p p | f", parties({"pp", "f"}), small_items(1));
  holds("eventlog: p | d d", parties({"p", "dd"}), small_items(1));
  holds("eventlog: b b (two parts) | f", parties({"bb", "f"}), small_items(1));
  holds("eventlog: b b (two parts) | d", parties({"bb", "d"}), small_items(1));
  holds("eventlog: b | b (two parts)", parties({"b", "b"}), small_items(0));
  // A put pauses for longer than its chunk, or nearly as long as the chunk is kept.
  exhaustive::holds_in_full("eventlog: p | p f, time passes", parties({"p", "pf"}),
                            {.pauses = {6s, 13s}, .max_pauses = 1});
}

TEST_CASE("exhaustive eventlog: what is lost is reported") {
  using exhaustive::holds;
  Bounds losing = small_items(1);
  losing.kinds = Happenings::none();
  losing.kinds.evictions = true;
  Bounds restarting = losing;
  restarting.kinds = Happenings::none();
  restarting.kinds.restarts = true;
  for (const std::vector<std::string>& incarnations :
       {std::vector<std::string>{"p", "pf"}, {"pp", "ff"}, {"bb", "f"}, {"p", "dd"}, {"pp", "dd"}}) {
    const std::string name = incarnations[0] + " | " + incarnations[1];
    // Two evictions may remove a part and the directory that names it.
    holds("eventlog, an item is evicted: " + name,
          parties(incarnations, {.loss = exhaustive::full() ? Loss::of_everything : Loss::of_items}), losing);
    if (incarnations[0] == "p" && incarnations[1] == "pf" && !exhaustive::full())
      continue;  // 270,000 schedules
    holds("eventlog, the server restarts: " + name, parties(incarnations, {.loss = Loss::of_everything}),
          restarting);
  }
}

TEST_CASE("exhaustive eventlog: caught when broken") {
  using exhaustive::caught;
  caught("eventlog, broken: a blind repetition", parties({"p"}, {.mistake = Mistake::blind_repetition}),
         small_items(1));
  caught("eventlog, broken: slots that do not carry their lap",
         parties({"pp"}, {.mistake = Mistake::slot_modulo_n}),
         {.pauses = {5s, 32s}, .max_pauses = 3, .stalls = true});
  caught("eventlog, broken: exptimes counted from the creation",
         parties({"p", "p"}, {.mistake = Mistake::exptime_from_creation}),
         {.pauses = {5s, 16s}, .max_pauses = 2, .stalls = true});
  caught("eventlog, broken: a cursor that goes by time",
         parties({"p", "pdd"}, {.mistake = Mistake::cursor_by_time}), {.pauses = {1s}, .max_pauses = 1});
  Bounds losing{.faults = 1, .kinds = Happenings::none()};
  losing.kinds.evictions = true;
  caught("eventlog, the articles': no directory, an evicted chunk is silence",
         parties({"p"}, {.mistake = Mistake::article}), losing);
  caught("eventlog, broken: a cursor without incarnations",
         parties({"pp", "dd"}, {.mistake = Mistake::cursor_without_incarnation}), losing);
}

}  // namespace mcds::eventlog_exhaustive
