// Drops an event log while clients put and read, and may die at every step: no event put after the drop
// begins to remove is lost, earlier events are gone when it answers, and a second drop leaves nothing.
#include <functional>
#include <set>

#include "tests/exhaustive/pairs.hpp"
#include "tests/models/eventlog_model.hpp"
#include "tests/support/world.hpp"

namespace mcds::eventlog_drop_exhaustive {

namespace {

using namespace std::chrono_literals;

using eventlog_model::Put;
using models::never;
const eventlog_model::Setting setting;
const RingShape& shape = setting.shape;

struct Drop {
  std::size_t begun = never;
  std::size_t removes = never;  // the step from which it removes
  bool done = false;
};

struct History : eventlog_model::History {
  std::vector<Drop> drops;
  bool conf_fails = false;  // its server could not be reached or refused; a put still ends
};

enum class Mistake { none, conf_first, without_comparing };

// Records when a drop first removes something.
class Watched final : public Decorator {
 public:
  using Cluster::execute;
  Watched(Cluster& inner, Actor& client, Drop& drop, Mistake mistake)
      : Decorator(inner), client_(client), drop_(drop), mistake_(mistake) {}
  std::vector<Reply> execute(std::span<const Request> batch) override {
    std::vector<Request> requests(batch.begin(), batch.end());
    for (Request& request : requests) {
      const bool changes = request.op == Op::remove_if || request.op == Op::remove || request.op == Op::cas;
      if (changes && drop_.removes == never) drop_.removes = client_.run().steps();
      if (mistake_ == Mistake::without_comparing && request.op == Op::remove_if) request.op = Op::remove;
    }
    return inner().execute(requests);
  }

 private:
  Actor& client_;
  Drop& drop_;
  Mistake mistake_;
};

// Records what a put could not write.
class Heard final : public Decorator {
 public:
  using Cluster::execute;
  Heard(Cluster& inner, History& history) : Decorator(inner), history_(history) {}
  std::vector<Reply> execute(std::span<const Request> batch) override {
    auto replies = inner().execute(batch);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const bool fails = replies[i].failed() && !replies[i].unknown();
      history_.conf_fails = history_.conf_fails || (fails && batch[i].key.ends_with(":conf"));
    }
    return replies;
  }

 private:
  History& history_;
};

// Acts at the end of the scope, even if the client dies.
struct OnExit {
  std::function<void()> act;
  ~OnExit() { act(); }
};

// Runs one client's operations: those of the model, and x, which drops.
class Party {
 public:
  Party(const Context& context, Actor& client, History& history, Mistake mistake)
      : context_(context),
        client_(client),
        history_(history),
        mistake_(mistake),
        got_reply_(context.cluster, history),
        others_({got_reply_, context.clock, context.random, context.key_prefix}, client, history, setting) {}

  void act(char letter) { letter == 'x' ? drop() : others_.act(letter); }

 private:
  void drop() {
    const std::size_t number = history_.drops.size();
    history_.drops.emplace_back();
    auto drop = std::make_unique<Drop>();
    Watched watched(context_.cluster, client_, *drop, mistake_);
    const Context context{watched, context_.clock, context_.random, context_.key_prefix};
    const OnExit noting{[&] { history_.drops[number] = *drop; }};
    const bool done = client_.operation("drop", [&] {
      if (mistake_ == Mistake::conf_first)
        context.cluster.execute(Request::remove(LogRing(context, "x", shape).keys.conf()));
      return drop_log(context, "x", shape) ? "dropped" : "nothing";
    });
    drop->begun = client_.begun();
    drop->done = done;
  }

  Context context_;
  Actor& client_;
  History& history_;
  Mistake mistake_;
  Heard got_reply_;
  eventlog_model::Party others_;
};

// Returns true if some drop may have removed the event.
bool may_be_dropped(const History& history, const Put& put) {
  return std::ranges::any_of(
      history.drops, [&](const Drop& drop) { return drop.removes != never && put.begun <= drop.removes; });
}

// Checks the history. A delayed request may restore removed events.
std::optional<std::string> violation(const History& history, bool faultless) {
  for (const auto& read : history.reads) {
    const std::set<std::string> found(read.texts.begin(), read.texts.end());
    if (found.size() != read.texts.size()) return "an event comes twice in one read";
    for (const auto& [text, put] : history.puts) {
      if (put.ended < read.begun && !found.contains(text) && !may_be_dropped(history, put))
        return text.substr(0, 3) + " is missing";
      const bool dropped = std::ranges::any_of(history.drops, [&](const Drop& drop) {
        return faultless && drop.done && put.ended < drop.begun && read.begun == never;
      });
      if (dropped && found.contains(text)) return text.substr(0, 3) + " is there after a drop";
    }
  }
  return std::nullopt;
}

// Returns true if a client that knows no shape can find what is left of the log.
bool is_named(const Context& observer) {
  const Reply conf = observer.cluster.execute(Request::get(LogRing(observer, "x", shape).keys.conf()));
  const auto shapes = shapes_in(parse_active_variants(conf.value, observer.clock.wall()));
  return std::ranges::find(shapes, shape) != shapes.end();
}

// Returns clients of a log with `before` events, each in a chunk of its own except the last two.
Scenario parties(std::vector<std::string> incarnations, int before, bool faultless,
                 Mistake mistake = Mistake::none) {
  return [=](Trial& run) {
    auto history = std::make_shared<History>();
    for (int i = 0; i < before; ++i) {
      const std::string text = "old" + std::to_string(i);
      const WallTime now = run.observer().clock.wall();
      EventLog(run.observer(), "x", shape)
          .put(text, EventData::text, now - std::chrono::seconds(10 * std::max(before - 2 - i, 0)));
      history->puts[text] = {now, 0, 0};
    }
    for (const std::string& incarnation : incarnations) {
      run.client([&incarnation, history, mistake](Context& context, Actor& client) {
        Party party(context, client, *history, mistake);
        for (const char letter : incarnation) party.act(letter);
      });
    }
    run.check([history, &run, faultless](Context& observer) -> std::optional<std::string> {
      CollectingSink sink;
      EventLog log(observer, "x", shape);
      log.fetch({}, sink);
      history->reads.push_back({never, never, sink.texts(), sink.gaps, false, observer.clock.wall()});
      if (const auto wrong = violation(*history, faultless)) return wrong;
      const auto texts = sink.texts();
      const bool any = std::ranges::any_of(
          texts, [&](const std::string& text) { return history->puts[text].ended != never; });
      if (any && !history->conf_fails && !is_named(observer)) return "no conf key names what is there";
      run.time().advance(EventLog::grace + std::chrono::seconds(shape.chunk_s) / 2 + 1s);
      CollectingSink later;
      log.fetch({}, later);
      if (faultless && !later.gaps.empty()) return "a gap although nothing was lost";
      drop_log(observer, "x", shape);
      if (!test::left_in(run.servers()).empty()) return "something is left of it";
      return std::nullopt;
    });
  };
}

Bounds small_items(int faults) {
  Bounds bounds{.faults = faults, .hasty_attempts = 1};
  bounds.server.item_size = 500;
  return bounds;
}

}  // namespace

TEST_CASE("exhaustive eventlog drop: beside puts and fetches, whoever dies") {
  using exhaustive::holds;
  for (const std::vector<std::string>& incarnations :
       {std::vector<std::string>{"x", "p"}, {"x", "pf"}, {"x", "pp"}, {"xx", "p"}, {"x", "b"}}) {
    const std::string name = "eventlog drop: " + incarnations[0] + " | " + incarnations[1];
    holds(name, parties(incarnations, 1, true), small_items(0), 0);
    holds(name + ", a fault", parties(incarnations, 1, false), small_items(1));
  }
  holds("eventlog drop: x | x", parties({"x", "x"}, 1, true), small_items(0), 1);
  holds("eventlog drop: x | p, older chunks", parties({"x", "p"}, 3, !exhaustive::full()), small_items(0));
  holds("eventlog drop: x | p, there was nothing", parties({"x", "p"}, 0, false), small_items(1));
  exhaustive::holds_in_full("eventlog drop: x | x | p", parties({"x", "x", "p"}, 1, false), small_items(0));
}

TEST_CASE("exhaustive eventlog drop: two servers, and time that passes") {
  using exhaustive::holds;
  Bounds two = small_items(0);
  two.servers = 2;
  holds("eventlog drop, 2 servers: x | p", parties({"x", "p"}, 1, false), two, 1);
  Bounds paused = small_items(0);
  paused.pauses = {12s};
  paused.max_pauses = 1;
  paused.stalls = true;
  holds("eventlog drop: x | p, time passes", parties({"x", "p"}, 1, false), paused, 0);
}

TEST_CASE("exhaustive eventlog drop: caught when broken") {
  using exhaustive::caught;
  caught("eventlog drop, broken: the conf key goes first", parties({"x", "p"}, 1, false, Mistake::conf_first),
         small_items(1));
  caught("eventlog drop, broken: removes without comparing",
         parties({"x", "p"}, 1, false, Mistake::without_comparing), small_items(0));
}

}  // namespace mcds::eventlog_drop_exhaustive
