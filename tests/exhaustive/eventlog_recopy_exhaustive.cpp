// Event logs that are put into another number of copies by a mover that dies at any of its steps, while one
// client puts and another reads: whoever comes next completes the change, and then every acknowledged event
// is fetched once, and was delivered once.
#include <map>
#include <set>

#include "tests/exhaustive/pairs.hpp"
#include "tests/support/cluster_doubles.hpp"
#include "tests/support/collecting_sink.hpp"
#include "tests/support/event_log.hpp"
#include "tests/support/refusals.hpp"

namespace mcds::eventlog_recopy_exhaustive {

namespace {

using namespace std::chrono_literals;
using exhaustive::in_copies;

const std::string first(360, 'a');  // leaves room for one more in its part
constexpr std::size_t not_yet = std::numeric_limits<std::size_t>::max();
constexpr std::size_t mover = 0;

struct Setting {
  std::size_t from;
  std::size_t to;
  RingShape shape{120, 1};
  test::Spoiled::Spoil spoil = nullptr;  // of the mover
};

// What was answered; steps as the exploration counts them.
struct History {
  RingShape shape;
  std::map<std::string, std::size_t> puts;  // when that of this text was acknowledged
  std::set<std::string> delivered;
  CursorState cursor;
  std::optional<std::string> violation;

  void check(const CollectingSink& sink, std::size_t begun, bool delivers) {
    std::set<std::string> seen;
    for (const std::string& text : sink.texts()) {
      if (!seen.insert(text).second) violation = text.substr(0, 3) + " comes twice in one read";
      if (delivers && !delivered.insert(text).second) violation = text.substr(0, 3) + " is delivered twice";
    }
    for (const auto& [text, ended] : puts) {
      if (ended < begun && !(delivers ? delivered : seen).contains(text))
        violation = text.substr(0, 3) + " is missing";
    }
    if (!sink.gaps.empty()) violation = "a gap although nothing was lost";
    if (!sink.damages.empty()) violation = sink.damages.front();
  }
};

// Who waits for a mover looks again when that would count as dead: a look is not to be repeated forty times.
class PatientClock final : public Clock {
 public:
  explicit PatientClock(Clock& clock) : clock_(clock) {}
  WallTime wall() const override { return clock_.wall(); }
  SteadyTime steady() const override { return clock_.steady(); }
  void sleep_for(Duration duration) override {
    clock_.sleep_for(duration == 50ms ? recopy_lease + 100ms : duration);
  }

 private:
  Clock& clock_;
};

// Fillers that no item has room for cost no step.
class SmallFillers final : public Decorator {
 public:
  using Cluster::execute;
  using Decorator::Decorator;
  std::vector<Reply> execute(std::span<const Request> batch) override {
    std::vector<Request> sent;
    for (const Request& request : batch) {
      if (!is_large(request)) sent.push_back(request);
    }
    auto answers = inner().execute(sent);
    std::vector<Reply> replies;
    auto next = answers.begin();
    for (const Request& request : batch) replies.push_back(is_large(request) ? Reply{} : std::move(*next++));
    return replies;
  }

 private:
  static bool is_large(const Request& request) {
    return request.value.starts_with("F ") && request.value.size() > 64;
  }
};

// Gives the number that the last refusal named.
class Client {
 public:
  Client(Context context, History& history) : context_(std::move(context)), history_(history) {}

  void put(const std::string& text) {
    follow([&](EventLog& log) { log.put(text, EventData::text); });
  }
  CollectingSink fetch() {
    CollectingSink sink;
    follow([&](EventLog& log) {
      sink = {};
      log.fetch({}, sink);
    });
    return sink;
  }
  CollectingSink deliver(bool polls) {
    CollectingSink sink;
    CursorState state;
    follow([&](EventLog& log) {
      sink = {};
      state = history_.cursor;
      polls ? log.poll(state, sink) : log.deliver(state, sink);
    });
    history_.cursor = state;
    return sink;
  }

 private:
  void follow(const std::function<void(EventLog& log)>& act) {
    test::follow_refusals(context_, [&] {
      if (!log_ || log_copies_ != context_.copies) log_.emplace(context_, "x", history_.shape);
      log_copies_ = context_.copies;
      act(*log_);
    });
  }

  Context context_;
  History& history_;
  std::optional<EventLog> log_;
  std::size_t log_copies_ = 0;
};

void put(Client& self, ExploredClient& client, History& history) {
  history.puts["b"] = not_yet;
  if (client.operation("put", [&] { return self.put("b"), "b"; })) history.puts["b"] = client.ended();
}

void read(Client& self, ExploredClient& client, History& history, char letter) {
  CollectingSink sink;
  const bool done = client.operation(letter == 'f' ? "fetch" : "deliver", [&] {
    sink = letter == 'f' ? self.fetch() : self.deliver(letter == 'p');
    return std::to_string(sink.events.size()) + " events";
  });
  if (done) history.check(sink, client.begun(), letter != 'f');
}

// Without the lines that name former rings.
void forget_former(Request& request) {
  if (!request.key.ends_with(":conf") || (request.op != Op::add && request.op != Op::cas)) return;
  std::vector<InUse> conf = parse_in_use(request.value, WallTime{});
  std::erase_if(conf, [](const InUse& line) { return !former_rings(std::span(&line, 1)).empty(); });
  request.value = in_use_value(conf);
}

// `lives`: letters, one client each: w puts, f fetches; what the cursor has not delivered yet, d delivers by
// one look and p by polling.
Scenario meanwhile(std::string lives, Setting setting) {
  return [=](Exploration& run) {
    auto history = std::make_shared<History>();
    history->shape = setting.shape;
    const Context before = in_copies(run.observer(), setting.from);
    EventLog(before, "x", setting.shape).put(first, EventData::text);
    history->puts[first] = 0;
    if (lives.find('f') == std::string::npos)
      history->check(Client(before, *history).deliver(false), 1, true);
    run.time().advance(10s);
    run.client([setting](Context& honest, ExploredClient& client) {
      test::Spoiled spoiled(honest.cluster, setting.spoil);
      SmallFillers small(spoiled);
      const Context context{small, honest.clock, honest.random, {}, setting.to};
      client.operation("recopy", [&] { return recopy_log(context, "x").found ? "done" : "nothing there"; });
    });
    for (const char letter : lives) {
      run.client([letter, setting, history](Context& honest, ExploredClient& client) {
        PatientClock patient(honest.clock);
        SmallFillers small(honest.cluster);
        Client self({small, patient, honest.random, {}, setting.from}, *history);
        letter == 'w' ? put(self, client, *history) : read(self, client, *history, letter);
      });
    }
    run.check([setting, history](Context& observer) -> std::optional<std::string> {
      // Whoever comes next completes the change, if only by reading; then there is nothing left of it.
      history->check(Client(in_copies(observer, setting.from), *history).fetch(), not_yet, false);
      const Context context = in_copies(observer, setting.to);
      if (!recopy_log(context, "x").found) return "it is nowhere";
      Client last(context, *history);
      history->check(last.fetch(), not_yet, false);
      history->check(last.deliver(false), not_yet, true);
      return history->violation;
    });
  };
}

Bounds bounds_of(const Setting& setting, int preemptions) {
  Bounds bounds{.faults = 1, .kinds = Happenings::none(), .hasty_attempts = 1};
  bounds.kinds.deaths = true;
  bounds.mortal = mover;
  bounds.prompt = true;
  bounds.servers = std::max(setting.from, setting.to);
  bounds.server.item_size = 600;
  bounds.reduced = false;
  bounds.servers_in_order = true;
  bounds.preemptions = preemptions;
  return bounds;
}

void holds(const std::string& lives, const Setting& setting, int preemptions) {
  std::string name = "eventlog, " + std::to_string(setting.from) + " to " + std::to_string(setting.to) +
                     " copies, " + setting.shape.text() + ": recopy dies";
  for (const char letter : lives) name += std::string(" | ") + letter;
  exhaustive::holds(name, meanwhile(lives, setting), bounds_of(setting, preemptions), 0);
}

}  // namespace

// Clients are interrupted between operations, and where they wait. In the midst, once: two of them; three
// under `tests/run --full`.
TEST_CASE("exhaustive eventlog recopy: a mover dies while one client puts and another reads") {
  for (const Setting& setting : {Setting{1, 2}, {2, 1}, {3, 2}}) {
    for (const char* lives : {"wf", "wd", "wp"}) holds(lives, setting, exhaustive::full() ? 1 : 0);
  }
  // Chunks end meanwhile, and what is named and not there would be reported.
  for (const char* lives : {"wf", "wd"}) holds(lives, {2, 1, {10, 3}}, exhaustive::full() ? 1 : 0);
  for (const Setting& setting : {Setting{1, 2}, {2, 1}}) {
    for (const char* lives : {"w", "d"}) holds(lives, setting, 1);
  }
}

TEST_CASE("exhaustive eventlog recopy: caught when broken") {
  const Setting forgetful{.from = 2, .to = 1, .spoil = forget_former};
  exhaustive::caught("eventlog, 2 to 1 copies, broken: the former ring is not named",
                     meanwhile("f", forgetful), bounds_of(forgetful, 0));
}

}  // namespace mcds::eventlog_recopy_exhaustive
