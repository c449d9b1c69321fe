// Event logs: a fetch has every acknowledged event once, a cursor delivers each exactly once, and a gap is
// reported only where events were lost.
#include <map>
#include <set>

#include "tests/exhaustive/linearizability.hpp"
#include "tests/exhaustive/pairs.hpp"
#include "tests/support/collecting_sink.hpp"
#include "tests/support/event_log.hpp"
#include "tests/support/mistakes.hpp"

namespace mcds::eventlog_exhaustive {

namespace {

using namespace std::chrono_literals;

const RingShape shape{10, 2};

struct Put {
  WallTime at;
  std::size_t ended = exhaustive::never;  // never: may have been put
};

struct Read {
  std::size_t begun;
  std::vector<std::string> texts;
  std::size_t gaps;
  bool delivers;
  WallTime at;  // when it ended
  std::size_t reader = exhaustive::never;
  bool after_loss = false;
};

struct History {
  std::map<std::string, Put> puts;
  std::vector<Read> reads;
};

enum class Mistake {
  none,
  blind_repetition,
  article,
  slot_modulo_n,
  exptime_from_creation,
  cursor_by_time,
  cursor_without_incarnation
};

bool plain_ring(Mistake mistake) {
  return mistake == Mistake::slot_modulo_n || mistake == Mistake::exptime_from_creation;
}

std::string slot_of(std::int64_t chunk, Mistake mistake) {
  return "r:" + std::to_string(mistake == Mistake::slot_modulo_n ? chunk % (shape.chunks + 2) : chunk);
}

// Fetches without a directory and without parts: one item for each chunk.
void fetch_plainly(const Context& context, Mistake mistake, CollectingSink& sink) {
  const std::int64_t now = shape.chunk_of(context.clock.wall());
  std::set<std::string> keys;
  for (std::int64_t chunk = now - shape.chunks - 1; chunk <= now + 1; ++chunk)
    keys.insert(slot_of(chunk, mistake));
  for (const std::string& key : keys) {
    const Reply reply = expect(context.cluster, context.cluster.execute(Request::get(key)));
    std::string_view lines = reply.value;
    while (!lines.empty()) {
      if (const auto event = parse_event_line(take_line(lines))) sink.event(*event);
    }
  }
}

// Runs one client's operations, as letters: p puts an event, b puts an event that fills more than half an
// item, f fetches, d delivers with a cursor of its own.
class Party {
 public:
  Party(Context context, ExploredClient& client, History& history, Mistake mistake)
      : context_(std::move(context)),
        client_(client),
        history_(history),
        mistake_(mistake),
        log_(context_, "x", shape) {}

  void act(char letter) {
    if (letter == 'p' || letter == 'b') return put(letter == 'b' ? 200 : 0);
    Read read{0, {}, 0, letter == 'd', {}};
    CollectingSink sink;
    const bool done = client_.operation(read.delivers ? "deliver" : "fetch", [&] {
      read.delivers ? deliver(sink) : fetch(sink);
      return std::to_string(sink.events.size()) + " events, " + std::to_string(sink.gaps.size()) + " gaps";
    });
    read.begun = client_.begun();
    read.reader = client_.index();
    read.at = client_.wall();
    read.texts = sink.texts();
    read.gaps = sink.gaps.size();
    read.after_loss = client_.run().lost_data();
    if (done) history_.reads.push_back(read);
  }

 private:
  void fetch(CollectingSink& sink) {
    if (plain_ring(mistake_)) return fetch_plainly(context_, mistake_, sink);
    log_.fetch({}, sink);
  }

  void deliver(CollectingSink& sink) {
    if (mistake_ == Mistake::cursor_by_time) {
      LogRange range;
      range.after = last_;
      log_.fetch(range, sink);
      if (!sink.events.empty()) last_ = sink.events.back().id;
      return;
    }
    if (mistake_ == Mistake::cursor_without_incarnation) believe_every_part();
    log_.deliver(cursor_, sink);
    if (mistake_ == Mistake::cursor_without_incarnation) sink.gaps.clear();
  }

  void believe_every_part() {
    for (auto& [name, consumed] : cursor_.parts) {
      const Reply reply =
          expect(context_.cluster, context_.cluster.execute(Request::get(log_.keys().part(name))));
      const auto header = parse_part_header(reply.value, name);
      if (header && consumed.bytes <= reply.value.size()) consumed.incarnation = header->incarnation;
    }
  }

  void put(std::size_t padding) {
    const std::string text =
        std::to_string(client_.index()) + '.' + std::to_string(next_++) + std::string(padding, '.');
    history_.puts[text].at = client_.wall();
    const bool done = client_.operation("put", [&] {
      if (plain_ring(mistake_))
        put_plainly(text);
      else if (mistake_ == Mistake::blind_repetition || mistake_ == Mistake::article)
        append(text);
      else
        log_.put(text, EventData::text);
      return text.substr(0, 3);
    });
    if (done) history_.puts[text].ended = client_.ended();
  }

  void put_plainly(const std::string& text) {
    const WallTime now = client_.wall();
    const std::int64_t chunk = shape.chunk_of(now);
    const Exptime exptime = mistake_ == Mistake::exptime_from_creation
                                ? Exptime::after(shape.kept(), now)
                                : Exptime::at(shape.expiry_of(chunk), now);
    std::string line;
    append_event_line(line, EventIdSource(context_.random).next(now), text, EventData::text);
    expect(context_.cluster,
           context_.cluster.execute(Request::append_or_create(slot_of(chunk, mistake_), "", line, exptime)));
  }

  // Appends, and repeats as a new event each time the reply is lost.
  void append(const std::string& text) {
    const std::int64_t chunk = shape.chunk_of(client_.wall());
    for (int attempt = 0; attempt < 2; ++attempt) {
      std::string line;
      append_event_line(line, EventIdSource(context_.random).next(client_.wall()), text, EventData::text);
      const Reply reply = context_.cluster.execute(Request::append_or_create(
          log_.keys().part({chunk, 0}), part_header({chunk, 0}, context_.random.token()), line,
          Exptime::at(shape.expiry_of(chunk), client_.wall())));
      if (reply.outcome == Outcome::stored) return;
      if (!reply.unknown() || mistake_ == Mistake::article)
        throw NotApplied(ErrorCode::unavailable, "not stored");
    }
    throw UnknownOutcome("no reply");
  }

  Context context_;
  ExploredClient& client_;
  History& history_;
  Mistake mistake_;
  EventLog log_;
  CursorState cursor_;
  std::optional<EventId> last_;  // instead of a cursor
  int next_ = 0;
};

enum class Loss {
  none,
  of_items,       // reported by the last read
  told_at_once,   // reported by every read
  of_everything,  // only a cursor that had read something before can detect it
};

std::optional<std::string> violation(const History& history, Loss loss) {
  std::map<std::string, int> delivered;
  std::set<std::size_t> readers;  // readers that had received events before the loss
  for (const Read& read : history.reads) {
    // A missing part counts as lost if its name is older than the grace period.
    const bool last = read.reader == exhaustive::never;
    const bool knows = loss == Loss::none || loss == Loss::told_at_once || (loss == Loss::of_items && last) ||
                       (loss == Loss::of_everything && read.delivers && readers.contains(read.reader));
    if (!read.texts.empty() && !read.after_loss) readers.insert(read.reader);
    std::map<std::string, int> times;
    for (const auto& text : read.texts) ++times[text];
    for (const auto& [text, count] : times) {
      if (count > 1) return text.substr(0, 3) + " comes twice in one read";
      if (read.delivers) delivered[text] += count;
    }
    if (read.gaps != 0 && loss == Loss::none) return "a gap although nothing was lost";
    for (const auto& [text, put] : history.puts) {
      const bool seen = read.delivers ? delivered.contains(text) : times.contains(text);
      if (put.ended < read.begun && put.at >= read.at - shape.kept() && !seen && read.gaps == 0 && knows)
        return text.substr(0, 3) + " is missing, and no gap told";
    }
  }
  for (const auto& [text, count] : delivered) {
    if (count > 1) return text.substr(0, 3) + " was delivered twice";
  }
  return std::nullopt;
}

struct Setting {
  Mistake mistake = Mistake::none;
  Loss loss = Loss::of_items;  // if there is a loss
};

Scenario parties(std::vector<std::string> incarnations, Setting setting = {}) {
  return [=](Exploration& run) {
    auto history = std::make_shared<History>();
    for (const std::string& incarnation : incarnations) {
      run.client([&incarnation, history, &setting](Context& context, ExploredClient& client) {
        Party party(context, client, *history, setting.mistake);
        for (const char letter : incarnation) party.act(letter);
      });
    }
    run.check([history, &run, &setting](Context& observer) -> std::optional<std::string> {
      CollectingSink sink;
      const bool waited = run.time().elapsed() >= EventLog::grace;
      if (run.lost_data()) run.time().advance(EventLog::grace + std::chrono::seconds(shape.chunk_s) / 2 + 1s);
      if (plain_ring(setting.mistake))
        fetch_plainly(observer, setting.mistake, sink);
      else
        EventLog(observer, "x", shape).fetch({}, sink);
      history->reads.push_back(
          {exhaustive::never, sink.texts(), sink.gaps.size(), false, observer.clock.wall()});
      // A log without a directory looks like one that lost it, a part named long before it exists like a lost
      // one.
      const bool lost = run.lost_data() || waited;
      if (setting.mistake != Mistake::none) return violation(*history, Loss::told_at_once);
      return violation(*history, lost ? setting.loss : Loss::none);
    });
  };
}

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
