// Counters in every interleaving.
#include "tests/exhaustive/pairs.hpp"
#include "tests/models/counter_model.hpp"

namespace mcds::counter_exhaustive {

using namespace counter_model;

namespace {

Happenings only_cuts() {
  Happenings kinds = Happenings::none();
  kinds.unreachable = true;
  return kinds;
}

}  // namespace

TEST_CASE("exhaustive counter: every change against every other") {
  using exhaustive::holds;
  for (const Kind kind : {Kind::plain, Kind::exact}) {
    const std::string name = kind == Kind::plain ? "counter, plain: " : "counter, exact: ";
    const auto pair = [&](const std::string& what, std::vector<std::string> incarnations, Bounds bounds) {
      holds(name + what, tellers(std::move(incarnations), {.kind = kind, .before = 5}), bounds);
    };
    holds(name + "incr | incr, creating", tellers({"i", "i"}, {.kind = kind}), {.faults = 1});
    holds(name + "incr | incr, creating, without meta", tellers({"i", "i"}, {.kind = kind}),
          {.faults = 1, .native = false});
    pair("incr incr | incr", {"ii", "i"}, {.faults = 1});
    pair("incr | take", {"i", "t"}, {.faults = 1});
    pair("incr take | take", {"it", "t"}, {.faults = 1});
    pair("incr | decr", {"i", "d"}, {.faults = 1});
    pair("incr | set", {"i", "s"}, {.faults = 1});
    pair("incr | remove", {"i", "r"}, {.faults = 1});
    pair("take | decr", {"t", "d"}, {.faults = 1});
    pair("set | take", {"s", "t"}, {.faults = 1});
    pair("remove | take", {"r", "t"}, {.faults = 1});
    Bounds losing{.faults = 1};
    losing.kinds.evictions = losing.kinds.restarts = true;
    pair("incr | incr, data lost", {"i", "i"}, losing);
  }
}

TEST_CASE("exhaustive counter: three clients") {
  using exhaustive::holds_in_full;
  for (const Kind kind : {Kind::plain, Kind::exact}) {
    for (const std::vector<std::string>& three : {std::vector<std::string>{"i", "i", "i"},
                                                  {"i", "t", "t"},
                                                  {"i", "d", "t"},
                                                  {"i", "s", "t"},
                                                  {"i", "r", "i"}}) {
      const std::string name = three[0] + " | " + three[1] + " | " + three[2];
      holds_in_full((kind == Kind::plain ? "counter, plain: " : "counter, exact: ") + name,
                    tellers(three, {.kind = kind, .before = 5}), {.faults = 1});
    }
  }
  for (const std::vector<std::string>& three : {std::vector<std::string>{"i", "i", "i"},
                                                {"i", "r", "gg"},
                                                {"r", "r", "g"},
                                                {"i", "i", "gg"},
                                                {"i", "s", "i"},
                                                {"d", "d", "i"},
                                                {"s", "s", "g"},
                                                {"i", "s", "r"}})
    holds_in_full("counter, 2 copies, exact: " + three[0] + " | " + three[1] + " | " + three[2],
                  tellers(three, {.kind = Kind::exact, .before = 5, .copies = 2, .one_removes = true}),
                  {.servers = 2});
}

TEST_CASE("exhaustive counter: two and three copies") {
  using exhaustive::holds;
  const auto pair = [](const std::string& incarnations, std::size_t copies, std::uint64_t before,
                       int faults) {
    const std::size_t bar = incarnations.find(' ');
    holds(
        "counter, " + std::to_string(copies) + " copies: " + incarnations + (before == 0 ? ", creating" : ""),
        tellers({incarnations.substr(0, bar), incarnations.substr(bar + 3)},
                {.kind = Kind::exact, .before = before, .copies = copies, .one_removes = faults == 0}),
        {.faults = faults, .servers = copies}, 0);
  };
  for (const std::uint64_t before : {0, 5}) {
    pair("i | i", 2, before, 1);
    pair("i | gg", 2, before, 1);
    pair("ii | i", 2, before, 0);
  }
  for (const char* incarnations :
       {"r | i", "r | gg", "r | r", "s | i", "s | s", "s | r", "s | gg", "d | d", "i | d"}) {
    pair(incarnations, 2, 5, 0);
    pair(incarnations, 2, 5, 1);
  }
  for (const char* incarnations : {"r | ri", "r | ir", "ir | gg", "is | i", "i | sg"})
    pair(incarnations, 2, 5, 0);
  for (const char* incarnations : {"s | i", "r | i", "i | g", "s | g"}) pair(incarnations, 3, 5, 0);
  // A client fails once to reach one server.
  const auto cut = [](std::vector<std::string> incarnations, const auto& holds_so) {
    std::string name = "counter, 3 copies, a cut: " + incarnations.front();
    for (std::size_t i = 1; i < incarnations.size(); ++i) name += " | " + incarnations[i];
    const Setting setting{.kind = Kind::exact, .before = 5, .copies = 3, .observes = true};
    holds_so(name, tellers(std::move(incarnations), setting),
             {.faults = 1, .kinds = only_cuts(), .hasty_attempts = 0, .servers = 3});
  };
  const auto in_short = [](const std::string& name, const Scenario& scenario, const Bounds& bounds) {
    holds(name, scenario, bounds, 0);
  };
  for (const char* reset : {"s", "r"}) {
    cut({reset, "i"}, in_short);
    cut({reset, "ig"}, in_short);
    cut({reset, "i", "g"}, exhaustive::holds_in_full);
  }
}

TEST_CASE("exhaustive counter: caught when broken") {
  using exhaustive::caught;
  caught("counter, broken: get then set", tellers({"i", "i"}, {.increment = get_then_set_first}), {});
  caught("counter, broken: repeated after a lost reply",
         tellers({"i"}, {.increment = repeated_after_unknown}), {.faults = 1});
  caught("counter, broken: unknown called failed", tellers({"i"}, {.increment = unknown_called_failed}),
         {.faults = 1});
  caught("counter, broken: a cas loop that goes on blindly",
         tellers({"i"}, {.increment = cas_loop_repeating_after_unknown}), {.faults = 1});
  const Setting exact{.kind = Kind::exact, .before = 5, .copies = 2, .spoil = test::write_without_comparing};
  caught("counter, 2 exact copies, broken: written without comparing", tellers({"i", "i"}, exact),
         {.servers = 2});
  const Setting created{.kind = Kind::exact, .copies = 2, .spoil = test::add_over_what_is_there};
  caught("counter, 2 exact copies, broken: created over what is there", tellers({"i", "i"}, created),
         {.servers = 2});
  const Setting grown{.kind = Kind::exact, .before = 5, .copies = 2, .spoil = take_away_everything};
  caught("counter, 2 exact copies, broken: what a set takes away grows on re-reading",
         tellers({"s", "i"}, grown), {.servers = 2});
  const Setting joined{.kind = Kind::exact, .before = 5, .copies = 2, .spoil = take_nothing_away};
  caught("counter, 2 exact copies, broken: a set takes nothing away", tellers({"s", "g"}, joined),
         {.servers = 2});
  const Setting hasty{.kind = Kind::exact, .before = 5, .copies = 3, .believes = true};
  caught("counter, 3 exact copies, broken: done with one copy", tellers({"i", "g"}, hasty),
         {.faults = 3, .kinds = only_cuts(), .servers = 3});
  caught("counter, the articles': get, add, set", tellers({"i", "i"}, {.increment = get_and_set}), {});
}

}  // namespace mcds::counter_exhaustive
