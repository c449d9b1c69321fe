// Event logs with several copies under every interleaving and fault, while one server after the other loses
// everything, with a read that heals between: no acknowledged event is lost, none is fetched twice, and a
// cursor that has read both copies goes on exactly when one is lost.
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "tests/support/cluster_doubles.hpp"
#include "tests/support/collecting_sink.hpp"
#include "tests/support/event_log.hpp"
#include "tests/support/mistakes.hpp"
#include "tests/support/server_losses.hpp"

namespace mcds::eventlog_copies_simulation {

namespace {

using namespace std::chrono_literals;

const RingShape shape{10, 4};
constexpr auto kept = 40s;

struct Setting {
  std::size_t copies = 2;
  std::size_t servers = 3;
  std::size_t item_size = 1 << 20;
  Faults faults{};
  bool fetches = true;
  test::Spoiled::Spoil spoil{};
  bool guesses_owner = false;
};

struct Event {
  DueWrites::Id write;
  WallTime time;
};

struct History {
  DueWrites writes;
  std::map<std::string, Event> events;
  std::set<std::string> delivered;
  CursorState cursor;
  std::size_t losses_read = 0;  // the cursor has read the server since that was lost
  std::optional<std::string> violation;

  // Whether a server was silent whose contents count: not one that lost them and of which nothing was read
  // since.
  bool missed_some(test::Listening& heard) {
    const auto& lost = writes.lost_servers();
    const bool read = lost.empty() || heard.answered.contains(lost.back());
    if (losses_read != lost.size() && !read) heard.silent.erase(lost.back());
    if (read) losses_read = lost.size();
    return !heard.silent.empty();
  }
};

EventLog log_of(Context& context) {
  return {context, "x", shape};
}

void put_some(Context& context, SimulatedClient& client, History& history) {
  for (int i = 0; i < 5; ++i) {
    const std::string text = std::to_string(client.index()) + '.' + std::to_string(i);
    const bool late = context.random.below(4) == 0;
    const WallTime at = client.wall() - std::chrono::milliseconds(late ? context.random.below(20000) : 0);
    const Event event{history.writes.begin(), at};
    history.events.emplace(text, event);
    try {
      history.writes.acknowledged(event.write, log_of(context).put(text, EventData::text, at).copies);
    } catch (const Failure&) {
      history.writes.given_up(event.write);
    }
    client.sleep_for(std::chrono::milliseconds(context.random.below(2) * context.random.below(4000)));
  }
}

// What is there must be fetched once, `due` what must be there.
void check_fetch(History& history, const std::set<std::string>& due, const CollectingSink& sink) {
  std::set<std::string> seen;
  for (const std::string& text : sink.texts()) {
    if (!seen.insert(text).second) history.violation = "event " + text + " fetched twice";
  }
  for (const std::string& text : due) {
    if (!seen.contains(text)) history.violation = "event " + text + " is missing from a fetch";
  }
}

using Judge = std::function<bool(DueWrites::Id)>;
std::set<std::string> due_events(const History& history, WallTime now, const Judge& is_due) {
  std::set<std::string> due;
  for (const auto& [text, event] : history.events) {
    if (event.time >= now - kept && is_due(event.write)) due.insert(text);
  }
  return due;
}

void fetch_some(Context& context, SimulatedClient& client, History& history) {
  const auto is_visible = [&](DueWrites::Id write) { return history.writes.visible(write); };
  for (int i = 0; i < 3; ++i) {
    client.sleep_for(std::chrono::milliseconds(context.random.below(6000)));
    const auto before = due_events(history, client.wall(), is_visible);
    const std::size_t losses = history.writes.lost_servers().size();
    CollectingSink sink;
    try {
      log_of(context).fetch({}, sink);
    } catch (const Failure&) {
      continue;
    }
    // One copy was lost, and made whole again, while this fetch had no answer from the other.
    if (history.writes.lost_servers().size() != losses) continue;
    std::set<std::string> due;
    for (const std::string& text : due_events(history, client.wall(), is_visible)) {
      if (before.contains(text)) due.insert(text);
    }
    check_fetch(history, due, sink);
  }
}

// Each event once; but with a copy silent that is not the one just lost, again what only that one had at the
// last read.
void deliver(Context& honest, History& history) {
  test::Listening listening(honest.cluster);
  Context context{listening, honest.clock, honest.random, honest.key_prefix, honest.copies};
  CursorState state = history.cursor;
  CollectingSink sink;
  log_of(context).deliver(state, sink);
  history.cursor = CursorState::parse(state.text(), "cursor");
  const bool missed = history.missed_some(listening);
  for (const std::string& text : sink.texts()) {
    const bool again = !history.delivered.insert(text).second;
    const bool promised = history.events.at(text).time >= context.clock.wall() - kept;
    if (again && promised && !missed) history.violation = "event " + text + " was delivered twice";
  }
}

// Whether every copy of each chunk has the same events, and the cursor has read all of them.
bool settled(Context& observer, const History& history) {
  auto& servers = dynamic_cast<MemoryCluster&>(observer.cluster);
  const LogKeys keys = log_of(observer).keys();
  const std::int64_t now = shape.chunk_of(observer.clock.wall());
  constexpr std::int64_t most_parts = 8;
  for (std::int64_t chunk = now - shape.chunks; chunk <= now + 1; ++chunk) {
    std::set<std::set<std::string>> contents;
    const auto where = copy_servers(observer, keys.part({chunk, 0}));
    for (std::size_t copy = 0; copy < where.size(); ++copy) {
      std::set<std::string> ids;
      for (std::int64_t part = 0; part < most_parts; ++part) {
        const auto item = servers.server(where[copy]).peek(keys.part({chunk, part}));
        if (!item) continue;
        const auto consumed = history.cursor.parts.find({chunk, part, static_cast<std::int64_t>(copy)});
        const auto header = parse_part_header(item->value, {chunk, part});
        if (consumed == history.cursor.parts.end() || consumed->second.bytes != item->value.size() ||
            consumed->second.incarnation != header->incarnation)
          return false;
        std::string_view rest = item->value;
        while (!rest.empty()) {
          if (const auto event = parse_event_line(take_line(rest))) ids.insert(event->id.text());
        }
      }
      contents.insert(ids);
    }
    if (contents.size() != 1) return false;
  }
  return true;
}

test::Spoiled::Spoil spoil_of(const Setting& setting, const Context& context) {
  if (!setting.guesses_owner) return setting.spoil;
  return test::guess_owner(context.cluster.placement(), setting.copies);
}

std::optional<std::string> schedule(std::uint64_t seed, const Setting& setting) {
  SimulationOptions options{.servers = setting.servers, .faults = setting.faults, .largest_skew = 2400ms};
  options.server.item_size = setting.item_size;
  Simulation simulation(seed, options);
  History history;
  Context observer = simulation.observer();
  observer.copies = setting.copies;
  const auto client = [&](auto body) {
    simulation.client([&, body](Context& honest, SimulatedClient& who) {
      test::Spoiled spoiled(honest.cluster, spoil_of(setting, honest));
      Context context{spoiled, honest.clock, honest.random, honest.key_prefix, setting.copies};
      body(context, who, history);
    });
  };
  for (int i = 0; i < 2; ++i) client(put_some);
  if (setting.fetches) client(fetch_some);
  client([&](Context& context, SimulatedClient& who, History&) {
    const auto heal = [&] {
      deliver(context, history);
      return settled(observer, history);
    };
    lose_servers(context, who, history.writes, 3, heal);
  });
  simulation.run();
  if (history.violation) return history.violation;
  const auto is_due = [&](DueWrites::Id write) { return history.writes.due(write); };
  const auto look = [&] {
    CollectingSink sink;
    log_of(observer).fetch({}, sink);
    check_fetch(history, due_events(history, observer.clock.wall(), is_due), sink);
    deliver(observer, history);
    for (const std::string& text : due_events(history, observer.clock.wall(), is_due)) {
      if (!history.delivered.contains(text)) history.violation = "event " + text + " was never delivered";
    }
  };
  look();
  // Until no clock's events are too young to be given to a copy that lacks them.
  simulation.advance(3s);
  look();
  for (std::size_t server = 0; server < setting.servers && !history.violation; ++server) {
    if (!settled(observer, history)) return "two calm reads have not made all copies equal";
    simulation.servers().restart(server);
    look();
  }
  return history.violation;
}

Setting some_setting(std::uint64_t seed, bool fetches) {
  // Small items on some schedules: chunks then continue in parts.
  const std::size_t item_size = seed % 2 == 1 ? 700 : std::size_t{1} << 20;
  return {.copies = seed % 8 == 0 ? 3U : 2U,
          .servers = seed % 4 == 3 ? 2U : 3U,
          .item_size = item_size,
          .fetches = fetches};
}

// A chunk that is created anew to make its copy whole then goes before its time.
void expire_soon_after_creation(Request& request) {
  if (request.op == Op::append_or_create) request.exptime = Exptime::after(8s, WallTime{});
}

}  // namespace

TEST_CASE(
    "eventlog copies: one server after the other loses everything, healed between: every event is fetched, "
    "once") {
  check_schedules([](std::uint64_t seed) { return schedule(seed, some_setting(seed, true)); }, 0.04);
}

TEST_CASE(
    "eventlog copies: one server after the other loses everything: a cursor delivers each event exactly "
    "once") {
  check_schedules([](std::uint64_t seed) { return schedule(seed, some_setting(seed, false)); }, 0.04);
}

TEST_CASE("eventlog copies: the simulation catches copies that expire some time after their creation") {
  CHECK(finds_violation(
      [](std::uint64_t seed) { return schedule(seed, {.spoil = expire_soon_after_creation}); }));
}

TEST_CASE("eventlog copies: the simulation catches a part whose owner is guessed from its own key") {
  CHECK(finds_violation(
      [](std::uint64_t seed) { return schedule(seed, {.item_size = 700, .guesses_owner = true}); }));
}

}  // namespace mcds::eventlog_copies_simulation
