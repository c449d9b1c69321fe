// Event logs that are put into another number of copies, again and again, by movers that die, while clients
// put, fetch and deliver: what was acknowledged is fetched once and delivered once, whatever number it was
// put with.
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "tests/support/cluster_doubles.hpp"
#include "tests/support/collecting_sink.hpp"
#include "tests/support/event_log.hpp"
#include "tests/support/refusals.hpp"
#include "tests/support/server_losses.hpp"
#include "tests/support/simulation.hpp"

namespace mcds::eventlog_recopy_simulation {

namespace {

using namespace std::chrono_literals;

const RingShape shape{10, 4};
constexpr auto kept = 40s;

struct Setting {
  test::Spoiled::Spoil spoil{};
};

struct Event {
  WallTime time;
  bool everywhere = false;  // acknowledged by all copies; otherwise who reads another one alone may miss it
};

struct History {
  std::map<std::string, Event> events;
  std::set<std::string> delivered;
  CursorState cursor;
  bool cursor_locked = false;
  std::optional<std::string> violation;

  std::set<std::string> due(WallTime now) const {
    std::set<std::string> texts;
    for (const auto& [text, event] : events) {
      if (event.everywhere && event.time >= now - kept) texts.insert(text);
    }
    return texts;
  }
  void check_fetch(const std::set<std::string>& due_before, WallTime now, const CollectingSink& sink) {
    std::set<std::string> seen;
    for (const std::string& text : sink.texts()) {
      if (!seen.insert(text).second) violation = "event " + text + " fetched twice";
    }
    const std::set<std::string> due_now = due(now);
    for (const std::string& text : due_before) {
      if (due_now.contains(text) && !seen.contains(text))
        violation = "event " + text + " is missing from a fetch";
    }
    if (!sink.damages.empty()) violation = sink.damages.front();
  }
};

// Gives the number that the last refusal named.
class Client {
 public:
  Client(Context context, History& history, test::Listening& listening)
      : context_(std::move(context)), history_(history), listening_(listening) {}

  std::optional<Failure> follow(const std::function<void(EventLog& log)>& act) {
    try {
      test::follow_refusals(context_, [&] {
        if (!log_ || log_copies_ != context_.copies) log_.emplace(context_, "x", shape);
        log_copies_ = context_.copies;
        act(*log_);
      });
    } catch (const Failure& failure) {
      return failure;
    }
    return std::nullopt;
  }

  void put(const std::string& text, WallTime at) {
    Event& event = history_.events[text];
    event.time = at;
    follow([&](EventLog& log) {
      const auto copies = log.put(text, EventData::text, at).copies;
      event.everywhere = all_written(copies);
    });
  }

  void fetch() {
    CollectingSink sink;
    // Who is not answered by a copy of a conf key may miss what it says: eventlog.hpp.
    listening_.silent.clear();
    const auto due = history_.due(context_.clock.wall());
    const auto failure = follow([&](EventLog& log) {
      sink = {};
      log.fetch({}, sink);
    });
    if (failure) return;
    const bool heard_all = listening_.silent.empty();
    history_.check_fetch(heard_all ? due : std::set<std::string>(), context_.clock.wall(), sink);
  }

  // A copy that does not answer may have been the only one from which an event was read before: eventlog.hpp.
  void deliver() {
    CursorState state;
    CollectingSink sink;
    const auto failure = follow([&](EventLog& log) {
      state = history_.cursor;
      sink = {};
      log.deliver(state, sink);
    });
    if (failure) return;
    history_.cursor = CursorState::parse(state.text(), "cursor");
    for (const std::string& text : sink.texts()) {
      const bool again = !history_.delivered.insert(text).second;
      const bool promised = history_.events.at(text).time >= context_.clock.wall() - kept;
      if (again && promised && listening_.silent.empty())
        history_.violation = "event " + text + " delivered twice";
    }
  }

 private:
  Context context_;
  History& history_;
  test::Listening& listening_;
  std::optional<EventLog> log_;
  std::size_t log_copies_ = 0;
};

// A client that gets no answer from those who hold the log would begin another (kept.hpp). Stores nothing,
// whatever is there.
void begin_nothing(Request& request) {
  constexpr CasUnique of_nothing{~std::uint64_t{0}};
  if (request.op == Op::add && request.key.ends_with(":conf") &&
      request.value.find("kept/") == std::string::npos) {
    request.op = Op::cas;
    request.cas = of_nothing;
  }
}

std::optional<std::string> schedule(std::uint64_t seed, const Setting& setting) {
  SimulationOptions options{.servers = 4, .largest_skew = 2400ms};
  if (seed % 2 == 1) options.server.item_size = 700;
  Simulation simulation(seed, options);
  History history;
  test::Listening calm(simulation.observer().cluster);
  Client observer(simulation.observer(), history, calm);
  observer.put("first", simulation.observer().clock.wall());
  const auto client = [&](auto body) {
    simulation.client([&, body](Context& honest, SimulatedClient& who) {
      test::Spoiled spoiled(honest.cluster, [&](Request& request) {
        if (setting.spoil) setting.spoil(request);
        begin_nothing(request);
      });
      test::Listening listening(spoiled);
      body(Context{listening, honest.clock, honest.random, honest.key_prefix, 1}, who, listening);
    });
  };
  for (int i = 0; i < 3; ++i) {
    client([&](const Context& context, SimulatedClient& who, test::Listening& listening) {
      Client self(context, history, listening);
      for (int j = 0; j < 5; ++j) {
        const bool late = context.random.below(4) == 0;
        const auto ago = std::chrono::milliseconds(late ? context.random.below(20000) : 0);
        self.put(std::to_string(who.index()) + '.' + std::to_string(j), who.wall() - ago);
        if (context.random.below(3) == 0) self.fetch();
        who.sleep_for(std::chrono::milliseconds(context.random.below(2) * context.random.below(5000)));
      }
    });
  }
  client([&](const Context& context, SimulatedClient& who, test::Listening& listening) {
    for (int j = 0; j < 4; ++j) {
      who.sleep_for(std::chrono::milliseconds(context.random.below(6000)));
      Client self(context, history, listening);
      self.deliver();
    }
  });
  for (int i = 0; i < 2; ++i) {
    client([&](Context context, SimulatedClient& who, test::Listening&) {
      for (int j = 0; j < 3; ++j) {
        context.copies = 1 + context.random.below(3);
        try {
          EventLog(context, "x", shape).recopy();
        } catch (const Failure&) {
        }
        who.sleep_for(std::chrono::milliseconds(context.random.below(6000)));
      }
    });
  }
  simulation.run();
  if (history.violation) return history.violation;
  simulation.advance(1s);
  for (const bool repeated : {false, true}) {
    Context context = simulation.observer();
    if (repeated) {
      // Wherever the movers have stopped, one more comes to an end.
      context.copies = 1 + seed % 3;
      const bool found = EventLog(context, "x", shape).recopy().found;
      if (!found && !history.due(context.clock.wall()).empty()) return "the log is not found";
      context.copies = 1;
    }
    Client last({calm, context.clock, context.random, context.key_prefix, 1}, history, calm);
    last.fetch();
    last.deliver();
    for (const std::string& text : history.due(context.clock.wall())) {
      if (!history.delivered.contains(text)) return "event " + text + " was never delivered";
    }
    if (history.violation) return history.violation;
  }
  return std::nullopt;
}

// With another line, or none, for each line of a conf key.
using OtherLine = std::function<std::string(const std::string& what)>;
test::Spoiled::Spoil with_conf_lines(const OtherLine& other) {
  return [other](Request& request) {
    if (!request.key.ends_with(":conf") || (request.op != Op::add && request.op != Op::cas)) return;
    std::vector<InUse> conf = parse_in_use(request.value, WallTime{});
    for (InUse& line : conf) line.what = other(line.what);
    std::erase_if(conf, [](const InUse& line) { return line.what.empty(); });
    request.value = in_use_value(conf);
  };
}

}  // namespace

TEST_CASE("eventlog recopy: movers die, clients follow: every event is fetched once and delivered once") {
  check_schedules([](std::uint64_t seed) { return schedule(seed, {}); }, 0.03);
}

TEST_CASE("eventlog recopy: what was put without a reply before a change was seen is not put twice") {
  CHECK(schedule(8470, {}) == std::nullopt);
}

TEST_CASE("eventlog recopy: the simulation catches a new number that has forgotten the one before") {
  const auto forgetful =
      with_conf_lines([](const std::string& what) { return what.ends_with("/10x4") ? "" : what; });
  CHECK(finds_violation([&](std::uint64_t seed) { return schedule(seed, {forgetful}); }));
}

TEST_CASE("eventlog recopy: the simulation catches changes that are not numbered") {
  const auto unnumbered = with_conf_lines([](const std::string& what) {
    auto move = LogMove::parse(what);
    if (move) move->change = 1;
    return move ? move->text() : what;
  });
  CHECK(finds_violation([&](std::uint64_t seed) { return schedule(seed, {unnumbered}); }));
}

}  // namespace mcds::eventlog_recopy_simulation
