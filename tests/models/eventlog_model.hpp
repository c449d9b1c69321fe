// Event logs: a fetch has every acknowledged event of the promised window once, a cursor delivers each
// exactly once, and a gap is reported only where events were lost.
#pragma once

#include <map>
#include <set>

#include "common/base/bytes.hpp"
#include "tests/models/linearizability.hpp"
#include "tests/support/collecting_sink.hpp"
#include "tests/support/event_log.hpp"

namespace mcds::eventlog_model {

using namespace std::chrono_literals;

struct Put {
  WallTime at{};
  std::size_t begun = models::never;
  std::size_t ended = models::never;  // never: may have been put
};

struct Read {
  std::size_t begun;
  std::size_t ended;
  std::vector<std::string> texts;
  std::vector<LogGap> gaps;
  bool delivers;
  WallTime at;  // when it ended
  std::size_t reader = models::never;
  bool after_loss = false;
  bool last = false;

  // Returns true if it reported a loss at this time.
  bool covers(WallTime time) const {
    return std::ranges::any_of(gaps, [&](const LogGap& gap) { return time >= gap.from && time < gap.to; });
  }
};

struct History {
  std::map<std::string, Put> puts;
  std::vector<Read> reads;
  std::map<std::size_t, CursorState> cursors;  // of the clients that deliver
  std::set<std::int64_t> evicted;              // chunks of which a client evicted a part
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

enum class Loss {
  none,
  of_items,       // reported by the last read
  told_at_once,   // reported by every read
  of_everything,  // only a cursor that had read something before can detect it
  of_anything     // of directories too, and late requests may restore it: nothing is delivered twice without
};

struct Setting {
  Mistake mistake = Mistake::none;
  Loss loss = Loss::of_items;  // if there is a loss
  RingShape shape{10, 2};
  // Several faults: gaps may be reported where nothing was lost, and an event may be put again after its part
  // was reported lost.
  bool faulty = false;
  bool quiet = false;  // faulty, but not so that gaps are reported
};

inline bool plain_ring(Mistake mistake) {
  return mistake == Mistake::slot_modulo_n || mistake == Mistake::exptime_from_creation;
}

inline std::string slot_of(std::int64_t chunk, const Setting& setting) {
  const std::int64_t slots = setting.shape.chunks + 2;
  return "r:" + std::to_string(setting.mistake == Mistake::slot_modulo_n ? chunk % slots : chunk);
}

// Fetches without a directory and without parts: one item for each chunk.
inline void fetch_plainly(const Context& context, const Setting& setting, CollectingSink& sink) {
  const RingShape& shape = setting.shape;
  const std::int64_t now = shape.chunk_of(context.clock.wall());
  std::set<std::string> keys;
  for (std::int64_t chunk = now - shape.chunks - 1; chunk <= now + 1; ++chunk)
    keys.insert(slot_of(chunk, setting));
  for (const std::string& key : keys) {
    const Reply reply = expect(context.cluster, context.cluster.execute(Request::get(key)));
    std::string_view lines = reply.value;
    while (!lines.empty()) {
      if (const auto event = parse_event_line(take_line(lines))) sink.event(*event);
    }
  }
}

// Runs one client's operations, as letters: p puts an event, l puts one of up to 30 seconds ago, b puts an
// event that fills more than half an item, f fetches, d delivers with a cursor of its own, e evicts a part.
class Party {
 public:
  Party(Context context, Actor& client, History& history, const Setting& setting)
      : context_(std::move(context)),
        client_(client),
        history_(history),
        setting_(setting),
        shape_(setting.shape) {
    log_.emplace(context_, "x", shape_);
  }

  void act(char letter) {
    // It is sometimes another process.
    if (setting_.faulty && context_.random.below(2) == 0) log_.emplace(context_, "x", shape_);
    if (letter == 'e') return evict();
    if (letter != 'f' && letter != 'd') return put(letter == 'b' ? 200 : 0, letter == 'l');
    const bool delivers = letter == 'd';
    CollectingSink sink;
    const bool done = client_.operation(delivers ? "deliver" : "fetch", [&] {
      delivers ? deliver(sink) : fetch(sink);
      return std::to_string(sink.events.size()) + " events, " + std::to_string(sink.gaps.size()) + " gaps";
    });
    if (!done) return;
    history_.reads.push_back({client_.begun(), client_.ended(), sink.texts(), sink.gaps, delivers,
                              client_.wall(), client_.index(), client_.run().lost_data()});
  }

 private:
  void fetch(CollectingSink& sink) {
    if (plain_ring(setting_.mistake)) return fetch_plainly(context_, setting_, sink);
    log_->fetch({}, sink);
  }

  void deliver(CollectingSink& sink) {
    if (setting_.mistake == Mistake::cursor_by_time) {
      LogRange range;
      range.after = last_;
      log_->fetch(range, sink);
      if (!sink.events.empty()) last_ = sink.events.back().id;
      return;
    }
    CursorState state = history_.cursors[client_.index()];
    if (setting_.mistake == Mistake::cursor_without_incarnation) believe_every_part(state);
    log_->deliver(state, sink);
    if (setting_.mistake == Mistake::cursor_without_incarnation) sink.gaps.clear();
    // Output and saving the cursor are one step here. The integration tests cover a crash in between.
    history_.cursors[client_.index()] = CursorState::parse(state.text(), "cursor");
  }

  void believe_every_part(CursorState& state) {
    for (auto& [name, consumed] : state.parts) {
      const Reply reply =
          expect(context_.cluster, context_.cluster.execute(Request::get(log_->keys().part(name))));
      const auto header = parse_part_header(reply.value, name);
      if (header && consumed.bytes <= reply.value.size()) consumed.incarnation = header->incarnation;
    }
  }

  void put(std::size_t padding, bool late) {
    const std::string text =
        std::to_string(client_.index()) + '.' + std::to_string(next_++) + std::string(padding, '.');
    Put& one = history_.puts[text];
    one.begun = client_.run().steps();
    const bool done = client_.operation("put", [&] {
      one.at = client_.wall() - std::chrono::milliseconds(late ? context_.random.below(30'000) : 0);
      if (plain_ring(setting_.mistake))
        put_plainly(text, one.at);
      else if (setting_.mistake == Mistake::blind_repetition || setting_.mistake == Mistake::article)
        append(text, one.at);
      else
        log_->put(text, EventData::text, late ? std::optional(one.at) : std::nullopt);
      return text.substr(0, 3);
    });
    one.begun = client_.begun();
    if (done) one.ended = client_.ended();
  }

  void evict() {
    client_.operation("evict", [&] {
      MemoryCluster& servers = client_.run().servers();
      std::vector<std::string> parts;
      for (std::size_t server = 0; server < servers.size(); ++server) {
        for (const auto& [key, item] : servers.server(server).items()) {
          if (key.find(":dir:") == key.npos && key.find(":conf") == key.npos) parts.push_back(key);
        }
      }
      if (parts.empty()) return std::string("nothing");
      const std::string& part = parts[context_.random.below(parts.size())];
      history_.evicted.insert(std::stoll(part.substr(part.rfind(':') + 1)));
      return servers.evict(part), part;
    });
  }

  void put_plainly(const std::string& text, WallTime at) {
    const WallTime now = client_.wall();
    const std::int64_t chunk = shape_.chunk_of(at);
    const Exptime exptime = setting_.mistake == Mistake::exptime_from_creation
                                ? Exptime::after(shape_.kept(), now)
                                : Exptime::at(shape_.expiry_of(chunk), now);
    std::string line;
    append_event_line(line, EventIdSource(context_.random).next(at), text, EventData::text);
    expect(context_.cluster,
           context_.cluster.execute(Request::append_or_create(slot_of(chunk, setting_), "", line, exptime)));
  }

  // Appends, and repeats as a new event each time the reply is lost.
  void append(const std::string& text, WallTime at) {
    const std::int64_t chunk = shape_.chunk_of(at);
    for (int attempt = 0; attempt < 2; ++attempt) {
      std::string line;
      append_event_line(line, EventIdSource(context_.random).next(at), text, EventData::text);
      const Reply reply = context_.cluster.execute(Request::append_or_create(
          log_->keys().part({chunk, 0}), part_header({chunk, 0}, context_.random.token()), line,
          Exptime::at(shape_.expiry_of(chunk), client_.wall())));
      if (reply.outcome == Outcome::stored) return;
      if (!reply.unknown() || setting_.mistake == Mistake::article)
        throw NotApplied(ErrorCode::unavailable, "not stored");
    }
    throw UnknownOutcome("no reply");
  }

  Context context_;
  Actor& client_;
  History& history_;
  const Setting& setting_;
  const RingShape shape_;
  std::optional<EventLog> log_;
  std::optional<EventId> last_;  // instead of a cursor
  int next_ = 0;
};

// Returns true if a read of this reader reported that the event was lost, since it was put or at any time.
inline bool told_lost(const History& history, std::size_t reader, const Put& put, bool since) {
  return std::ranges::any_of(history.reads, [&](const Read& read) {
    return read.reader == reader && read.delivers && (!since || read.ended > put.begun) &&
           read.covers(put.at);
  });
}

inline std::optional<std::string> violation(const History& history, Loss loss, const Setting& setting) {
  std::map<std::size_t, std::map<std::string, int>> delivered;  // by reader
  std::set<std::size_t> readers;  // readers that had received events before the loss
  for (const Read& read : history.reads) {
    // A missing part counts as lost if its name is older than the grace period.
    const bool knows = loss == Loss::none || loss == Loss::told_at_once ||
                       (loss == Loss::of_items && read.last) ||
                       (loss == Loss::of_everything && read.delivers && readers.contains(read.reader));
    if (!read.texts.empty() && !read.after_loss) readers.insert(read.reader);
    std::map<std::string, int> times;
    for (const auto& text : read.texts) ++times[text];
    auto& received = delivered[read.reader];
    for (const auto& [text, count] : times) {
      if (count > 1 && !(setting.faulty && read.delivers))
        return text.substr(0, 3) + " comes twice in one read";
      if (!history.puts.contains(text)) return text + " was never put";
      if (read.delivers) received[text] += count;
    }
    if (!read.gaps.empty() && loss == Loss::none && !setting.faulty) return "a gap although nothing was lost";
    for (const auto& [text, put] : history.puts) {
      const bool due = put.ended < read.begun && put.at >= read.at - setting.shape.kept() && knows;
      if (!due || (read.delivers ? received.contains(text) : times.contains(text))) continue;
      const bool told =
          setting.faulty ? read.delivers && told_lost(history, read.reader, put, true) : !read.gaps.empty();
      if (!told) return text.substr(0, 3) + " is missing, and no gap told";
    }
  }
  for (const auto& [reader, received] : delivered) {
    for (const auto& [text, count] : received) {
      // A writer without a reply that finds its event evicted puts it again.
      const Put& put = history.puts.at(text);
      const bool again = setting.faulty && (loss == Loss::of_anything ||
                                            history.evicted.contains(setting.shape.chunk_of(put.at)) ||
                                            told_lost(history, reader, put, false));
      if (count > 1 && !again) return text.substr(0, 3) + " was delivered twice";
    }
  }
  return std::nullopt;
}

// Returns true if gaps are reported that are none, though no directory may lack room for a withdrawn name, as
// with items of a few hundred bytes.
inline bool false_gaps(Trial& run, const History& history) {
  for (std::size_t server = 0; server < run.servers().size(); ++server) {
    for (const auto& [key, item] : run.servers().server(server).items()) {
      if (key.find(":dir:") != std::string::npos && item.value.size() > 300) return false;
    }
  }
  return std::ranges::any_of(history.reads, [](const Read& read) {
    return std::ranges::any_of(read.gaps, [&](const LogGap& gap) {
      return !read.delivers || gap.reason == LogGap::Reason::evicted;
    });
  });
}

// Reads with each cursor once more, after the time in which a part that is only named may still come.
inline std::optional<std::string> last_violation(Trial& run, History& history, Context& observer,
                                                 const Setting& setting) {
  run.time().advance(EventLog::grace + std::chrono::seconds(setting.shape.chunk_s) / 2 + 3s);
  for (auto& [reader, cursor] : history.cursors) {
    CollectingSink sink;
    EventLog(observer, "x", setting.shape).deliver(cursor, sink);
    history.reads.push_back({run.steps() + 1, run.steps() + 1, sink.texts(), sink.gaps, true,
                             observer.clock.wall(), reader, run.lost_data(), true});
  }
  if (setting.quiet && false_gaps(run, history)) return "a gap although nothing was lost";
  if (run.lost_data()) return violation(history, setting.loss, setting);
  return violation(history, history.evicted.empty() ? Loss::none : Loss::of_items, setting);
}

inline Scenario parties(std::vector<std::string> incarnations, Setting setting = {}) {
  return [=](Trial& run) {
    auto history = std::make_shared<History>();
    for (const std::string& incarnation : incarnations) {
      run.client([&incarnation, history, &setting](Context& context, Actor& client) {
        Party party(context, client, *history, setting);
        for (const char letter : incarnation) party.act(letter);
      });
    }
    run.check([history, &run, &setting](Context& observer) -> std::optional<std::string> {
      const RingShape& shape = setting.shape;
      if (setting.faulty && !plain_ring(setting.mistake))
        return last_violation(run, *history, observer, setting);
      CollectingSink sink;
      const bool waited = run.time().elapsed() >= EventLog::grace;
      if (run.lost_data()) run.time().advance(EventLog::grace + std::chrono::seconds(shape.chunk_s) / 2 + 1s);
      if (plain_ring(setting.mistake))
        fetch_plainly(observer, setting, sink);
      else
        EventLog(observer, "x", shape).fetch({}, sink);
      history->reads.push_back({models::never, models::never, sink.texts(), sink.gaps, false,
                                observer.clock.wall(), models::never, run.lost_data(), true});
      // A log without a directory looks like one that lost it, a part named long before it exists like a lost
      // one.
      const bool lost = run.lost_data() || waited;
      if (setting.mistake != Mistake::none) return violation(*history, Loss::told_at_once, setting);
      return violation(*history, lost ? setting.loss : Loss::none, setting);
    });
  };
}

}  // namespace mcds::eventlog_model
