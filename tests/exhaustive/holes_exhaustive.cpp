// Known holes: each algorithm of published articles and usual recipes fails here in a few requests, with its
// shortest story. Further known faults of theirs need arithmetic instead of an order (clocks that differ over
// a period, exptimes of more than a month as sums, counters at 2^63), or a connection that mixes up the cas
// tokens of two servers, which no Cluster allows. The bench measures how often the windows are hit.
#include "tests/exhaustive/naive.hpp"

namespace mcds::holes_exhaustive {

namespace {

using namespace exhaustive;

using namespace std::chrono_literals;

std::string left(Context& context, const std::string& key) {
  return context.cluster.execute(Request::get(key)).value;
}

bool two_holders(Context&, const Facts& facts) {
  return facts.held.two_at_a_time();
}

bool reported(const Facts& facts, const std::string& what) {
  return std::find(facts.reported.begin(), facts.reported.end(), what) != facts.reported.end();
}

const Bounds calm{};
const Bounds a_fault{.faults = 1};
const Bounds two_seconds{.pauses = {2s}, .max_pauses = 1};

Bounds one_kind(bool Happenings::*kind, std::size_t servers = 1) {
  Bounds bounds{.faults = 1, .kinds = Happenings::none(), .servers = servers};
  bounds.kinds.*kind = true;
  return bounds;
}

const Deed acquires = [](Naive& my) { my.acquire(); };

}  // namespace

TEST_CASE("exhaustive holes: locks") {
  hole("lock: deleted after it expired",
       {[](Naive& my) {
          if (!my.acquire()) return;
          my.let_go();
          my.remove("lock");
        },
        acquires, acquires},
       two_holders, two_seconds);
  hole("lock: read, compared, deleted",
       {[](Naive& my) {
          if (!my.acquire() || my.get("lock") != my.name()) return;
          my.let_go();
          my.remove("lock");
        },
        acquires, acquires},
       two_holders, two_seconds);
  hole("lock: renewed by touch",
       {[](Naive& my) {
          if (!my.acquire()) return;
          if (my.ask(Request::touch("lock", Exptime::after(1s, WallTime{}))).outcome == Outcome::stored)
            my.facts.held.begin(my.client, 1s);
        },
        acquires},
       two_holders, two_seconds);
  hole("lock: a ttl of 1", {acquires, acquires}, two_holders,
       {.pauses = {1ms, 998ms}, .max_pauses = 2, .server = {.tick_phase = 999ms}});
  hole("lock: a ttl beyond 30 days",
       {[](Naive& my) { my.acquire(Exptime::gone()); }, [](Naive& my) { my.acquire(Exptime::gone()); }},
       two_holders, calm);
  const auto nobody_holds = [](Context& context, const Facts& facts) {
    return reported(facts, "busy") && !left(context, "lock").empty() && facts.done == 0;
  };
  const auto tries_twice = [](Naive& my) {
    my.acknowledge(false);
    if (my.acquire() || my.acquire()) return my.acknowledge(true);
    my.facts.reported.emplace_back("busy");
  };
  hole("lock: locked out by its own add, whose reply was lost", {tries_twice}, nobody_holds, a_fault);
  hole("lock: granted after its client gave up",
       {[](Naive& my) { my.acknowledge(my.acquire()); },
        [](Naive& my) {
          const bool had = my.acquire();
          my.acknowledge(had);
          if (!had) my.facts.reported.emplace_back("busy");
        }},
       nobody_holds, one_kind(&Happenings::delayed));
  const auto fence_does_not_grow = [](Context&, const Facts& facts) { return !facts.held.fences_grow(); };
  const auto fenced_before = [](Naive& my) {
    const Reply fence = my.ask(Request::incr("fence", 1));
    if (!my.add("lock", my.name())) return;
    my.facts.held.begin(my.client, 1s, fence.number);
    my.let_go();
    my.remove("lock");
  };
  hole("lock: a fence drawn before the add", {fenced_before, fenced_before}, fence_does_not_grow, calm,
       {{"fence", "0"}});
  const auto fenced_behind = [](Naive& my) {
    if (!my.add("lock", my.name())) return;
    const Reply fence = my.ask(Request::incr_or_create("fence", 1, 1, Exptime::never()));
    my.facts.held.begin(my.client, 1s, fence.number);
    my.let_go();
    my.remove("lock");
  };
  hole("lock: a fence that is lost begins again at 1", {fenced_behind, fenced_behind}, fence_does_not_grow,
       one_kind(&Happenings::evictions));
  hole("lock: a server that restarts", {acquires, acquires}, two_holders, one_kind(&Happenings::restarts));
  const auto majority = [](Naive& my) {
    int votes = 0;
    const std::size_t first = my.client.index();
    for (std::size_t i = 0; i < 2; ++i) {
      votes += my.ask(Request::add("lock", my.name(), Exptime::never())
                          .on((2 * first + i * (first == 0 ? 1 : 2)) % 3))
                   .outcome == Outcome::stored;
    }
    if (votes == 2) my.facts.held.begin(my.client, 1s);
  };
  hole("lock: two majorities of 3 after one restart", {majority, majority}, two_holders,
       one_kind(&Happenings::restarts, 3));
  const auto rerouted = [](Naive& my) {
    Reply reply = my.ask(Request::add("lock", my.name(), Exptime::never()).on(0));
    if (reply.failed()) reply = my.ask(Request::add("lock", my.name(), Exptime::never()).on(1));
    if (reply.outcome == Outcome::stored) my.facts.held.begin(my.client, 1s);
  };
  hole("lock: the next server in the place of one that is away", {rerouted, rerouted}, two_holders,
       one_kind(&Happenings::unreachable, 2));
}

TEST_CASE("exhaustive holes: counters") {
  const auto fewer = [](Context& context, const Facts& facts) {
    return parse_u64(left(context, "n")).value_or(0) < facts.done;
  };
  const auto more = [](Context& context, const Facts& facts) {
    return parse_u64(left(context, "n")).value_or(0) > facts.tried;
  };
  const auto sets_first = [](Naive& my) {
    if (!my.get("n")) my.set("n", "0");
    my.acknowledge(my.incr("n"));
  };
  hole("counter: read, then set to 0", {sets_first, sets_first}, fewer, calm);
  const auto adds_one = [](Naive& my) { my.acknowledge(my.incr("n") || my.add("n", "1")); };
  hole("counter: tried again after a lost reply",
       {[](Naive& my) { my.acknowledge(my.incr("n") || my.incr("n")); }}, more, a_fault, {{"n", "0"}});
  hole("counter: begins again at 1 when it was evicted", {adds_one, adds_one}, fewer,
       one_kind(&Happenings::evictions));
  hole("counter: incr does not prolong its life", {[](Naive& my) {
         my.acknowledge(my.add("n", "1", Exptime::after(1s, WallTime{})));
         my.acknowledge(my.incr("n"));
       }},
       fewer, two_seconds);
  hole("counter: decr stops at 0",
       {[](Naive& my) { my.ask(Request::decr("n", 10)); }, [](Naive& my) { my.ask(Request::incr("n", 10)); }},
       [](Context& context, const Facts&) { return left(context, "n") != "5 " && left(context, "n") != "5"; },
       calm, {{"n", "5"}});
  hole("counter: decr leaves a blank", {[](Naive& my) { my.ask(Request::decr("n", 1)); }},
       [](Context& context, const Facts&) { return left(context, "n") != "9"; }, calm, {{"n", "10"}});
  hole("counter: incr wraps", {[](Naive& my) { my.acknowledge(my.incr("n")); }}, fewer, calm,
       {{"n", "18446744073709551615"}});
  const auto on_both = [](Naive& my) {
    my.acknowledge(true);
    for (std::size_t server = 0; server < 2; ++server)
      if (my.ask(Request::incr("n", 1).on(server)).outcome == Outcome::not_found)
        my.ask(Request::add("n", "1", Exptime::never()).on(server));
  };
  const auto reads_and_repairs = [](Naive& my) {
    const Reply first = my.ask(Request::get("n").on(0));
    const Reply second = my.ask(Request::get("n").on(1));
    const auto one = parse_u64(first.value).value_or(0);
    const auto other = parse_u64(second.value).value_or(0);
    if (one > other &&
        my.ask(Request::add("n", first.value, Exptime::never()).on(1)).outcome != Outcome::stored)
      my.ask(Request::incr("n", one - other).on(1));
  };
  const auto replica = [](Context& context) {
    return parse_u64(context.cluster.execute(Request::get("n").on(1)).value).value_or(0);
  };
  hole("counter: a replica repaired while an increment is on its way", {on_both, reads_and_repairs},
       [=](Context& context, const Facts& facts) { return replica(context) > facts.tried; }, {.servers = 2});
  hole(
      "counter: a replica that restarted, revived by add 1", {[=](Naive& my) { on_both(my), on_both(my); }},
      [=](Context& context, const Facts& facts) {
        return replica(context) != 0 && replica(context) < facts.done;
      },
      one_kind(&Happenings::restarts, 2));
}

TEST_CASE("exhaustive holes: logs in a ring of slots") {
  const auto slot = [](Naive& my) {
    return "slot" + std::to_string(my.client.wall().time_since_epoch() / 10s % 2);
  };
  const auto puts = [slot](Naive& my) {
    const std::string event = my.name() + ',', key = slot(my);
    my.acknowledge(my.append(key, event) || my.add(key, event, Exptime::after(20s, WallTime{})));
  };
  const auto missing = [](Context& context, const Facts& facts) {
    return left(context, "slot0").size() + left(context, "slot1").size() < 2 * facts.done;
  };
  hole("ring: a late event makes a slot that dies in its next lap", {puts, puts}, missing,
       {.pauses = {16s, 5s}, .max_pauses = 2, .stalls = true});
  hole(
      "ring: a full slot", {[](Naive& my) {
        while (!my.append("slot0", "event") && !my.add("slot0", "event")) {
        }
      }},
      [](Context&, const Facts&) { return false; },
      [] {
        Bounds bounds{.max_steps = 100};
        bounds.server.item_size = 105;
        return bounds;
      }(),
      {{"slot0", std::string(40, '.')}});
  // The events it saw are of the last second. Events that arrive in the same second are not newer.
  hole("ring: a tail by time",
       {[](Naive& my) { my.acknowledge(my.append("slot0", "1")); },
        [](Naive& my) {
          const std::string first = my.get("slot0").value_or("");
          const std::string second = my.get("slot0").value_or("");
          const bool same_second = !first.empty();
          my.facts.reported.push_back(same_second ? first : second);
        }},
       [](Context& context, const Facts& facts) { return !reported(facts, left(context, "slot0")); }, calm,
       {{"slot0", "0"}});
  hole("ring: tried again after a lost reply",
       {[](Naive& my) { my.acknowledge(my.append("slot0", "0,") || my.append("slot0", "0,")); }},
       [](Context& context, const Facts& facts) {
         return left(context, "slot0").size() > 1 + 2 * facts.tried;
       },
       a_fault, {{"slot0", ","}});
  hole("ring: an evicted slot looks like a quiet one", {puts}, missing, one_kind(&Happenings::evictions));
  const auto reader = [](Naive& my) {
    const std::string first = my.get("slot0").value_or("");
    my.facts.reported.push_back(first + my.get("slot1").value_or(""));
  };
  hole("ring: no snapshot over slots",
       {[](Naive& my) {
          my.append("slot0", "0");
          my.append("slot1", "1");
        },
        reader},
       [](Context&, const Facts& facts) { return reported(facts, "1"); }, calm,
       {{"slot0", ""}, {"slot1", ""}});
}

TEST_CASE("exhaustive holes: arrays") {
  const auto has_fewer = [](Context& context, const Facts& facts) {
    return left(context, "a").size() < 2 * facts.done;
  };
  const auto rewrites = [](Naive& my) {
    const std::string before = my.get("a").value_or("");
    my.acknowledge(my.set("a", before + my.name() + ','));
  };
  hole("array: read, changed, set", {rewrites, rewrites}, has_fewer, calm);
  const auto under_lock = [=](Naive& my) {
    if (!my.add("lock", my.name(), Exptime::after(1s, WallTime{}))) return;
    rewrites(my);
    my.remove("lock");
  };
  hole("array: a lock that expires before the set", {under_lock, under_lock}, has_fewer, two_seconds);
  const auto appends = [](Naive& my) { my.acknowledge(my.append("a", my.name() + ',')); };
  const auto kept = [](Context& context, const Facts& facts) {
    return left(context, "a").size() < 2 + 2 * facts.done;
  };
  hole("array: compacted by set", {appends, [](Naive& my) { my.set("a", my.get("a").value_or("")); }}, kept,
       calm, {{"a", "x,"}});
  hole("array: compacted by delete and add", {[](Naive& my) {
         const auto before = my.get("a");
         if (!before) return;
         my.remove("a");
         my.add("a", *before);
       }},
       kept, one_kind(&Happenings::deaths), {{"a", "x,"}});
  Bounds small;
  small.server.item_size = 120;
  hole("array: set past the item size",
       {[](Naive& my) { my.set("a", my.get("a").value_or("") + std::string(100, 'y')); }}, kept, small,
       {{"a", "x,"}});
  hole("array: tried again after a lost reply",
       {[](Naive& my) { my.acknowledge(my.append("a", "0,") || my.append("a", "0,")); }},
       [](Context& context, const Facts& facts) { return left(context, "a").size() > 2 + 2 * facts.tried; },
       a_fault, {{"a", "x,"}});
  const auto sets_first = [](Naive& my) {
    if (!my.append("a", my.name() + ',')) my.set("a", my.name() + ',');
    my.acknowledge(true);
  };
  hole("array: begun by set", {sets_first, sets_first}, has_fewer, calm);
  hole("array: one incr makes a number of it",
       {[](Naive& my) { my.append("a", "1"); }, [](Naive& my) { my.incr("a"); }},
       [](Context& context, const Facts&) { return left(context, "a").starts_with("2"); }, calm,
       {{"a", ""}, {"n", ""}});
  const auto shards = [](Naive& my) {
    const auto replies = my.ask_all({Request::get("a").on(0), Request::get("a").on(1)});
    my.facts.reported.push_back(replies[0].value + replies[1].value);
  };
  hole(
      "array: a lost shard is not told", {[](Naive& my) {
        my.acknowledge(my.ask(Request::add("a", "0", Exptime::never()).on(0)).outcome == Outcome::stored &&
                       my.ask(Request::add("a", "1", Exptime::never()).on(1)).outcome == Outcome::stored);
        if (my.facts.done == 0) return;
        const auto replies = my.ask_all({Request::get("a").on(0), Request::get("a").on(1)});
        my.facts.reported.push_back(replies[0].value + replies[1].value);
      }},
      [](Context&, const Facts& facts) { return reported(facts, "0") || reported(facts, "1"); },
      one_kind(&Happenings::restarts, 2));
  hole("array: no snapshot over shards",
       {[](Naive& my) {
          my.ask(Request::add("a", "0", Exptime::never()).on(0));
          my.ask(Request::add("a", "1", Exptime::never()).on(1));
        },
        shards},
       [](Context&, const Facts& facts) { return reported(facts, "1"); }, {.servers = 2});
}

TEST_CASE("exhaustive holes: tables and hashes") {
  const auto unlisted = [](Context& context, const Facts&) {
    return !left(context, "e").empty() && left(context, "index").find('e') == std::string::npos;
  };
  const auto phantom = [](Context& context, const Facts&) {
    return left(context, "e").empty() && left(context, "index").find('e') != std::string::npos;
  };
  const auto adds = [](Naive& my) {
    if (my.add("e", "1")) my.append("index", "e,");
  };
  const auto removes = [](Naive& my) {
    if (my.ask(Request::remove("e")).outcome != Outcome::deleted) return;
    std::string index = my.get("index").value_or("");
    if (const auto at = index.find("e,"); at != std::string::npos) index.erase(at, 2);
    my.set("index", index);
  };
  hole("table: dead between element and index", {adds}, unlisted, one_kind(&Happenings::deaths),
       {{"index", ""}});
  hole("table: listed first, and dead before the element", {[](Naive& my) {
         my.append("index", "e,");
         my.add("e", "1");
       }},
       phantom, one_kind(&Happenings::deaths), {{"index", ""}});
  hole("table: an index that is rewritten loses another's",
       {adds, [](Naive& my) { my.set("index", my.get("index").value_or("")); }}, unlisted, calm,
       {{"index", ""}});
  hole("table: half removed", {removes}, phantom, one_kind(&Happenings::deaths),
       {{"e", "1"}, {"index", "e,"}});
  hole(
      "table: half removed, then listed twice", {[=](Naive& my) { removes(my); }, adds},
      [](Context& context, const Facts&) { return left(context, "index").find("e,e,") != std::string::npos; },
      one_kind(&Happenings::deaths), {{"e", "1"}, {"index", "e,"}});
  hole("table: added and removed at once", {adds, removes},
       [=](Context& context, const Facts& facts) {
         return unlisted(context, facts) || phantom(context, facts);
       },
       calm, {{"index", ""}});
  Bounds index_lost = one_kind(&Happenings::evictions);
  index_lost.evictable = [](const std::string& key) { return key == "index"; };
  hole("table: a lost index is an empty table that refuses adds", {adds}, unlisted, index_lost,
       {{"e", "1"}, {"index", "e,"}});
  Bounds element_lost = one_kind(&Happenings::evictions);
  element_lost.evictable = [](const std::string& key) { return key == "e"; };
  hole("table: a lost element stays listed", {adds}, phantom, element_lost, {{"index", ""}});
  hole("hash: two writers of one field list it twice",
       {[](Naive& my) {
          const bool there = my.get("e").has_value();
          my.set("e", "0");
          if (!there) my.append("index", "e,");
        },
        [](Naive& my) {
          const bool there = my.get("e").has_value();
          my.set("e", "1");
          if (!there) my.append("index", "e,");
        }},
       [](Context& context, const Facts&) { return left(context, "index") == "e,e,"; }, calm,
       {{"index", ""}});
}

TEST_CASE("exhaustive holes: caches") {
  // The source is an item too. The client that has the lock builds.
  const auto builds = [](Naive& my) {
    if (my.get("entry")) return;
    if (!my.add("lock", my.name(), Exptime::after(1s, WallTime{}))) return;
    const std::string built = my.get("source").value_or("");
    my.set("entry", built);
    my.remove("lock");
  };
  const auto changes = [](Naive& my) {
    my.incr("source");
    my.remove("entry");
  };
  const auto old_stays = [](Context& context, const Facts&) {
    return !left(context, "entry").empty() && left(context, "entry") != left(context, "source");
  };
  const auto rebuilds_changed = [=](Naive& my) {
    my.incr("source");
    builds(my);
    my.facts.done += my.number("entry") == 2 ? 1 : 0;
  };
  hole("cache: built for longer than its lock, over a newer one", {builds, rebuilds_changed},
       [=](Context& context, const Facts& facts) { return facts.done == 1 && old_stays(context, facts); },
       two_seconds, {{"source", "1"}});
  hole("cache: an invalidation undone by who was building", {builds, changes}, old_stays, calm,
       {{"source", "1"}});
  const auto builds_without_lock = [](Naive& my) {
    if (my.get("entry")) return;
    ++my.facts.tried;
    my.set("entry", my.get("source").value_or(""));
  };
  hole("cache: all build what is missing", {builds_without_lock, builds_without_lock},
       [](Context&, const Facts& facts) { return facts.tried == 2; }, calm, {{"source", "1"}});
  hole(
      "cache: a dead builder's lock without an end",
      {[](Naive& my) {
         if (my.add("lock", "0")) my.set("entry", "1"), my.remove("lock");
       },
       [](Naive& my) {
         if (my.add("lock", "1")) my.set("entry", "1"), my.remove("lock");
       }},
      [](Context& context, const Facts&) {
        return left(context, "entry").empty() && !left(context, "lock").empty();
      },
      one_kind(&Happenings::deaths));
  hole(
      "cache: the stale value ends while it is rebuilt", {[](Naive& my) {
        my.ask(Request::set("entry", "1", Exptime::after(1s, WallTime{})));
        my.add("lock", "0");
        my.facts.reported.push_back(my.get("entry").value_or("nothing"));
      }},
      [](Context&, const Facts& facts) { return reported(facts, "nothing"); }, two_seconds);
}

}  // namespace mcds::holes_exhaustive
