// Event logs under every simulated interleaving: fetch returns each acknowledged event of the promised window
// once, a cursor delivers each exactly once, and lost events are reported as a gap.
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "tests/support/collecting_sink.hpp"
#include "tests/support/event_log.hpp"
#include "tests/support/simulation.hpp"

namespace mcds::eventlog_simulation {

namespace {

using namespace std::chrono_literals;

const RingShape shape{10, 4};
constexpr auto kept = 40s;

// Puts and reads events: correctly, or with one mistake.
struct Algorithm {
  virtual ~Algorithm() = default;
  virtual void put(Context& context, const std::string& text, WallTime at) {
    EventLog(context, "x", shape).put(text, EventData::text, at);
  }
  virtual void fetch(Context& context, CollectingSink& sink) {
    EventLog(context, "x", shape).fetch({}, sink);
  }
  virtual void deliver(Context& context, CursorState& state, CollectingSink& sink) {
    EventLog(context, "x", shape).deliver(state, sink);
  }
};

struct Event {
  WallTime time;
  Duration begun;
  std::optional<Duration> acknowledged;  // nullopt: may have been put
};

struct Delivery {
  Duration begun;
  Duration done;
  WallTime ended;  // on the reader's clock
  std::vector<LogGap> gaps;
};

struct History {
  std::map<std::string, Event> events;
  std::map<std::string, int> delivered;
  std::vector<Delivery> deliveries;
  CursorState cursor;
  bool cursor_locked = false;
  std::optional<std::string> violation;
  std::uint64_t false_gaps = 0;
};

void write(Algorithm& algorithm, History& history, Context& context, SimulatedClient& client) {
  for (int i = 0; i < 5; ++i) {
    const std::string text = std::to_string(client.index()) + '.' + std::to_string(i);
    const bool late = context.random.below(4) == 0;
    const WallTime at = client.wall() - std::chrono::milliseconds(late ? context.random.below(30000) : 0);
    Event& event = history.events[text];
    event.time = at;
    event.begun = client.simulation().time().elapsed();
    try {
      algorithm.put(context, text, at);
      event.acknowledged = client.simulation().time().elapsed();
    } catch (const Failure&) {
    }
    client.sleep_for(std::chrono::milliseconds(context.random.below(5000)));
  }
}

// Checks that every event acknowledged before and still promised is among the texts exactly once.
void check_fetch(History& history, Duration begun, WallTime ended, const CollectingSink& sink) {
  std::map<std::string, int> times;
  for (const auto& text : sink.texts()) ++times[text];
  for (const auto& [text, count] : times) {
    if (count > 1) history.violation = "event " + text + " fetched " + std::to_string(count) + " times";
    if (!history.events.contains(text)) history.violation = "event " + text + " was never put";
  }
  for (const auto& [text, event] : history.events) {
    const bool due = event.acknowledged && *event.acknowledged < begun && event.time >= ended - kept;
    if (due && !times.contains(text)) history.violation = "event " + text + " is missing from a fetch";
  }
}

void fetch_sometimes(Algorithm& algorithm, History& history, Context& context, SimulatedClient& client) {
  for (int i = 0; i < 3; ++i) {
    client.sleep_for(std::chrono::milliseconds(context.random.below(12000)));
    const Duration begun = client.simulation().time().elapsed();
    CollectingSink sink;
    try {
      algorithm.fetch(context, sink);
    } catch (const Failure&) {
      continue;
    }
    history.false_gaps += sink.gaps.size();
    check_fetch(history, begun, client.wall(), sink);
  }
}

void deliver_once(Algorithm& algorithm, History& history, Context& context, const VirtualTime& time) {
  CursorState state = history.cursor;
  CollectingSink sink;
  const Duration begun = time.elapsed();
  algorithm.deliver(context, state, sink);
  // Output and saving the cursor are one step here. The integration tests cover a crash in between.
  history.cursor = CursorState::parse(state.text(), "cursor");
  for (const auto& text : sink.texts()) ++history.delivered[text];
  history.deliveries.push_back({begun, time.elapsed(), context.clock.wall(), sink.gaps});
}

void deliver_sometimes(Algorithm& algorithm, History& history, Context& context, SimulatedClient& client) {
  struct Lock {
    bool& locked;
    ~Lock() { locked = false; }
  };
  for (int i = 0; i < 4; ++i) {
    client.sleep_for(std::chrono::milliseconds(context.random.below(9000)));
    if (std::exchange(history.cursor_locked, true)) continue;
    const Lock lock{history.cursor_locked};
    try {
      deliver_once(algorithm, history, context, client.simulation().time());
    } catch (const Failure&) {
    }
  }
}

// Returns true if a delivery that ended after `since` reported a gap at the event's time.
bool covered(const Event& event, const std::vector<Delivery>& deliveries, Duration since) {
  for (const Delivery& delivery : deliveries) {
    if (delivery.done < since) continue;
    for (const LogGap& gap : delivery.gaps) {
      if (event.time >= gap.from && event.time < gap.to) return true;
    }
  }
  return false;
}

// Checks that each event is delivered at most once, and delivered or reported while it is promised.
std::optional<std::string> check_deliveries(const History& history) {
  for (const auto& [text, times] : history.delivered) {
    // A writer without a reply that finds its event evicted puts it again: two deliveries, with a gap
    // between.
    const bool evicted_between = covered(history.events.at(text), history.deliveries, Duration(0));
    if (times > 1 && !evicted_between)
      return "event " + text + " delivered " + std::to_string(times) + " times";
  }
  const Delivery& last = history.deliveries.back();
  for (const auto& [text, event] : history.events) {
    const bool due =
        event.acknowledged && *event.acknowledged < last.begun && event.time >= last.ended - kept;
    if (!due || history.delivered.contains(text) || covered(event, history.deliveries, event.begun)) continue;
    return "event " + text + " was neither delivered nor reported as lost";
  }
  return std::nullopt;
}

void evict_parts(Simulation& simulation, Context& context, SimulatedClient& client) {
  for (int i = 0; i < 3; ++i) {
    client.sleep_for(std::chrono::milliseconds(context.random.below(9000)));
    std::vector<std::string> parts;
    for (std::size_t server = 0; server < simulation.servers().size(); ++server) {
      for (const auto& [key, item] : simulation.servers().server(server).items()) {
        const bool is_part = key.find(":dir:") == std::string::npos && key.find(":conf") == std::string::npos;
        if (is_part) parts.push_back(key);
      }
    }
    if (!parts.empty()) simulation.servers().evict(parts[context.random.below(parts.size())]);
  }
}

// Returns true if a directory may lack room for a withdrawn name, as with items of a few hundred bytes.
bool has_full_directory(Simulation& simulation) {
  for (std::size_t server = 0; server < simulation.servers().size(); ++server) {
    for (const auto& [key, item] : simulation.servers().server(server).items()) {
      if (key.find(":dir:") != std::string::npos && item.value.size() > 300) return true;
    }
  }
  return false;
}

struct Setting {
  Faults faults{};
  bool evictions = false;
  bool fetches = true;
  bool no_false_gaps = false;
  bool anything_lost = false;  // directories too: then the only guarantee is that no event comes twice
};

std::optional<std::string> schedule(std::uint64_t seed, Algorithm& algorithm, const Setting& setting) {
  SimulationOptions options{.servers = 2, .faults = setting.faults, .max_skew = 2400ms};
  // Some schedules use small items, so that chunks continue in further parts.
  if (seed % 2 == 1) options.server.item_size = 500;
  Simulation simulation(seed, options);
  History history;
  for (int i = 0; i < 3; ++i) {
    simulation.client(
        [&](Context& context, SimulatedClient& client) { write(algorithm, history, context, client); });
  }
  for (int i = 0; i < 2; ++i) {
    simulation.client([&](Context& context, SimulatedClient& client) {
      deliver_sometimes(algorithm, history, context, client);
    });
  }
  if (setting.fetches) {
    simulation.client([&](Context& context, SimulatedClient& client) {
      fetch_sometimes(algorithm, history, context, client);
    });
  }
  if (setting.evictions) {
    simulation.client([&](Context& context, SimulatedClient& client) {
      // These are real losses, so the faults of this client must not affect them.
      evict_parts(simulation, context, client);
    });
  }
  simulation.run();
  if (history.violation) return history.violation;
  simulation.advance(EventLog::grace + 5s + 3s);  // half a chunk and a fast clock
  history.cursor_locked = false;
  deliver_once(algorithm, history, simulation.observer(), simulation.time());
  if (setting.no_false_gaps) {
    for (const Delivery& delivery : history.deliveries) {
      for (const LogGap& gap : delivery.gaps)
        history.false_gaps += gap.reason == LogGap::Reason::evicted ? 1 : 0;
    }
    if (history.false_gaps != 0 && !has_full_directory(simulation)) return "a gap although nothing was lost";
  }
  if (!setting.anything_lost) return check_deliveries(history);
  for (const auto& [text, times] : history.delivered) {
    if (times > 1 && simulation.happened().losses == 0) return "event " + text + " delivered twice";
  }
  return std::nullopt;
}

std::optional<std::string> ours(std::uint64_t seed, const Setting& setting) {
  Algorithm algorithm;
  return schedule(seed, algorithm, setting);
}

template <typename Broken>
bool caught(const Setting& setting) {
  return finds_violation([&](std::uint64_t seed) {
    Broken algorithm;
    return schedule(seed, algorithm, setting);
  });
}

// A ring as published articles describe it: line by line, without a directory.
struct PlainRing : Algorithm {
  virtual std::string key(std::int64_t chunk) const { return "r:" + std::to_string(chunk); }
  virtual Exptime exptime(Context& context, std::int64_t chunk) const {
    return Exptime::at(shape.expiry_of(chunk), context.clock.wall());
  }
  void put(Context& context, const std::string& text, WallTime at) override {
    const std::int64_t chunk = shape.chunk_of(at);
    std::string line;
    append_event_line(line, EventIdSource(context.random).next(at), text, EventData::text);
    expect(context.cluster,
           context.cluster.execute(Request::append_or_create(key(chunk), "", line, exptime(context, chunk))));
  }
  void fetch(Context& context, CollectingSink& sink) override {
    const std::int64_t now = shape.chunk_of(context.clock.wall());
    std::set<std::string> keys;
    for (std::int64_t chunk = now - shape.chunks - 1; chunk <= now + 2; ++chunk) keys.insert(key(chunk));
    for (const std::string& key : keys) {
      const Reply reply = expect(context.cluster, context.cluster.execute(Request::get(key)));
      std::string_view lines = reply.value;
      while (!lines.empty()) {
        if (const auto event = parse_event_line(take_line(lines))) sink.event(*event);
      }
    }
  }
  void deliver(Context& context, CursorState& state, CollectingSink& sink) override {
    CollectingSink all;
    fetch(context, all);
    state.ring = "r";
    for (const auto& event : all.events) {
      const PartName place{shape.chunk_of(event.id.time()), static_cast<std::int64_t>(event.id.low >> 12)};
      if (!state.parts.try_emplace(place, CursorState::Consumed{"0000000000000000", 0, event.id}).second)
        continue;
      sink.events.push_back(event);
    }
  }
};

struct SlotModuloN final : PlainRing {
  std::string key(std::int64_t chunk) const override {
    return "r:" + std::to_string(chunk % (shape.chunks + 2));
  }
};

struct ExptimeFromCreation final : PlainRing {
  Exptime exptime(Context& context, std::int64_t) const override {
    return Exptime::after(kept, context.clock.wall());
  }
};

struct CursorByTime final : Algorithm {
  void deliver(Context& context, CursorState& state, CollectingSink& sink) override {
    EventLog log(context, "x", shape);
    LogRange range;
    const auto last = state.parts.find({0, 0});
    if (last != state.parts.end()) range.after = last->second.last;
    log.fetch(range, sink);
    state.ring = log.keys().ring();
    if (!sink.events.empty()) state.parts[{0, 0}] = {"0000000000000000", 0, sink.events.back().id};
  }
};

// Repeats an append whose reply was lost, as a new event.
struct BlindRepetition final : Algorithm {
  void put(Context& context, const std::string& text, WallTime at) override {
    const std::int64_t chunk = shape.chunk_of(at);
    EventLog log(context, "x", shape);
    for (int attempt = 0; attempt < 3; ++attempt) {
      std::string line;
      append_event_line(line, EventIdSource(context.random).next(at), text, EventData::text);
      const Reply reply = context.cluster.execute(Request::append_or_create(
          log.keys().part({chunk, 0}), part_header({chunk, 0}, context.random.token()), line,
          Exptime::at(shape.expiry_of(chunk), context.clock.wall())));
      if (reply.outcome == Outcome::stored) return;
      if (!reply.unknown()) throw NotApplied(ErrorCode::unavailable, "");
    }
    throw UnknownOutcome("");
  }
};

struct NoDirectory final : Algorithm {
  void put(Context& context, const std::string& text, WallTime at) override {
    const std::int64_t chunk = shape.chunk_of(at);
    EventLog log(context, "x", shape);
    std::string line;
    append_event_line(line, EventIdSource(context.random).next(at), text, EventData::text);
    const Reply reply = context.cluster.execute(Request::append_or_create(
        log.keys().part({chunk, 0}), part_header({chunk, 0}, context.random.token()), line,
        Exptime::at(shape.expiry_of(chunk), context.clock.wall())));
    if (reply.outcome != Outcome::stored) throw NotApplied(ErrorCode::unavailable, "");
  }
};

// Counts bytes without checking that it is still the same part.
struct CursorWithoutIncarnation final : Algorithm {
  void deliver(Context& context, CursorState& state, CollectingSink& sink) override {
    EventLog log(context, "x", shape);
    for (auto& [name, consumed] : state.parts) {
      const Reply reply =
          expect(context.cluster, context.cluster.execute(Request::get(log.keys().part(name))));
      const auto header = parse_part_header(reply.value, name);
      if (header && consumed.bytes <= reply.value.size()) consumed.incarnation = header->incarnation;
    }
    log.deliver(state, sink);
    sink.gaps.clear();
  }
};

Faults calm() {
  Faults faults = Faults::none();
  faults.late_ticks = true;
  faults.client_skew = true;
  return faults;
}

}  // namespace

TEST_CASE(
    "eventlog: every acknowledged event is fetched once and delivered once, whatever gets lost on the way") {
  check_schedules([](std::uint64_t seed) { return ours(seed, {}); }, 0.5);
}

TEST_CASE("eventlog: an evicted part is reported to a cursor, whatever else goes wrong") {
  check_schedules([](std::uint64_t seed) { return ours(seed, {.evictions = true, .fetches = false}); }, 0.3);
}

TEST_CASE("eventlog: no gap is reported where nothing went wrong, however writers and readers interleave") {
  check_schedules([](std::uint64_t seed) { return ours(seed, {.faults = calm(), .no_false_gaps = true}); },
                  0.1);
}

TEST_CASE("eventlog: restarts, flushes and evictions of anything lead to no error and no repetition") {
  check_schedules(
      [](std::uint64_t seed) {
        return ours(seed, {.faults = Faults::all(), .fetches = false, .anything_lost = true});
      },
      0.1);
}

TEST_CASE("eventlog: the simulation catches slots that do not carry their lap") {
  CHECK(caught<SlotModuloN>({}));
}

TEST_CASE("eventlog: the simulation catches exptimes counted from creation") {
  CHECK(caught<ExptimeFromCreation>({}));
}

TEST_CASE("eventlog: the simulation catches a cursor that goes by time") {
  CHECK(caught<CursorByTime>({}));
}

TEST_CASE("eventlog: the simulation catches a blind repetition after a lost reply") {
  CHECK(caught<BlindRepetition>({}));
}

TEST_CASE("eventlog: the simulation catches a log without a directory") {
  CHECK(caught<NoDirectory>({.evictions = true, .fetches = false}));
}

TEST_CASE("eventlog: the simulation catches a cursor without incarnations") {
  CHECK(caught<CursorWithoutIncarnation>({.evictions = true, .fetches = false}));
}

}  // namespace mcds::eventlog_simulation
