// Visitors in every interleaving.
#include "tests/exhaustive/pairs.hpp"
#include "tests/models/visitors_model.hpp"

namespace mcds::visitors_exhaustive {

using namespace visitors_model;

namespace {

// Returns bounds with pauses around the ends of periods. A run begins five seconds into a period of 10 s, so
// the pauses reach its end (5 s), cover a whole period (10 s), or stop just before the next end (9.9 s).
Bounds boundaries(int faults, std::vector<std::chrono::milliseconds> skews = {}) {
  Bounds bounds{.faults = faults, .pauses = {5s, 9900ms, 10s}, .max_pauses = 2, .stalls = true};
  bounds.skews = std::move(skews);
  return bounds;
}

}  // namespace

TEST_CASE("exhaustive visitors: hits, ids and values over the edges of periods") {
  using exhaustive::holds;
  Bounds one_pause = boundaries(1);
  if (!exhaustive::full()) one_pause.max_pauses = 1;
  holds("visitors: h | h v", guests({"h", "hv"}), one_pause);
  Bounds short_pauses = boundaries(0);
  if (!exhaustive::full()) short_pauses.pauses = {5s, 10s};
  holds("visitors: h v | h v", guests({"hv", "hv"}), short_pauses);
  holds("visitors: h | v, clocks 4.8 s apart", guests({"h", "v"}), boundaries(1, {2400ms, -2400ms}));
  holds("visitors: v | h, clocks 4.8 s apart", guests({"v", "h"}), boundaries(1, {2400ms, -2400ms}));
  holds("visitors: i | i", guests({"i", "i"}), {.faults = 2});
  holds("visitors: i | i, without meta", guests({"i", "i"}), {.faults = 1, .native = false});
}

TEST_CASE("exhaustive visitors: what is lost is never counted twice") {
  using exhaustive::holds;
  Bounds losing = boundaries(1);
  losing.kinds = Happenings::none();
  losing.kinds.evictions = losing.kinds.restarts = true;
  losing.max_pauses = 1;
  holds("visitors, data lost: h | h v", guests({"h", "hv"}), losing);
  holds("visitors, data lost: h v | h v", guests({"hv", "hv"}), losing);
}

TEST_CASE("exhaustive visitors: caught when broken") {
  using exhaustive::caught;
  caught("visitors, broken: two alternating keys",
         guests({"h", "hv"}, {.mistake = Mistake::two_alternating_keys}),
         {.pauses = {20s, 10s}, .max_pauses = 2, .stalls = true});
  caught("visitors, broken: exptime counted from the hit",
         guests({"h", "v"}, {.mistake = Mistake::exptime_from_the_hit}), boundaries(0));
  caught("visitors, broken: no guard behind the period", guests({"h", "v"}, {.mistake = Mistake::no_guard}),
         boundaries(0, {2400ms, -2400ms}));
}

}  // namespace mcds::visitors_exhaustive
