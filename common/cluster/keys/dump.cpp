#include "common/cluster/keys/dump.hpp"

#include "common/base/bytes.hpp"
#include "common/cluster/statistics.hpp"
#include "common/cluster/transport.hpp"

namespace mcds {

namespace {

// Memcached 1.6.9 and later can list by the hash table. A walk along the LRUs misses keys that are used
// meanwhile and move between LRUs, some percent of them under load.
constexpr std::string_view by_table = "lru_crawler metadump hash\r\n";
constexpr std::string_view by_lru = "lru_crawler metadump all\r\n";
constexpr std::string_view look_question = "stats\r\n";
// A server answers nothing else while it dumps, so after a silence the answer to this marks the end.
constexpr std::string_view end_question = "version\r\n";
constexpr std::size_t min_keys_per_s = 64;
constexpr std::size_t min_bytes_per_s = 64 * 1024;
// A longer reply is endless, and not memcached's.
constexpr std::size_t max_statistics = std::size_t{1} << 20;
// A list may have twice as many keys as the server counts, plus this number: what clients store in a tenth of
// a second, and more than a small server gains between two readings of its count.
constexpr std::uint64_t slack = 100'000;
constexpr std::uint64_t max_uncounted = 8'000'000;  // for a server without a count
constexpr Duration longest_pause = std::chrono::seconds(1);
constexpr std::uint32_t mended = 10619;  // from 1.6.19 on a dump holds no lock while it writes

}  // namespace

DumpState DumpState::of(std::string_view statistics) {
  DumpState state;
  ServerProtocol said;
  said.take_version(std::string(statistic(statistics, "version").value_or("")));
  state.release = said.release;
  const auto items = statistic_number(statistics, "curr_items");
  state.items = items.value_or(0);
  state.max_keys = !items ? max_uncounted : *items < UINT64_MAX / 4 ? *items * 2 + slack : UINT64_MAX;
  const std::uint64_t power = statistic_number(statistics, "hash_power_level").value_or(0);
  if (power > 0 && power < 64) state.table = std::uint64_t{1} << power;
  state.crawling = statistic_number(statistics, "lru_crawler_running").value_or(0) != 0;
  state.growing = statistic_number(statistics, "hash_is_expanding").value_or(0) != 0;
  return state;
}

// A table grows when it holds 1.5 times as many items as it has slots. Below 1.3 times, a dump always has
// time to start. Above that, there must be some room left, and one second must not have used up much of it.
std::string_view DumpState::objection(const std::optional<DumpState>& before) const {
  if (release == 0 || release >= mended) return "";
  if (crawling) return "the server is busy with another dump or crawl";
  if (growing) return "the server's hash table is growing";
  if (table == 0 || items * 10 < table * 13) return "";
  constexpr std::uint64_t min_room = 50, max_growth = 20;  // parts of the table, of the room
  const std::uint64_t limit = table / 2 * 3;
  const bool room = items < limit && (limit - items) * min_room > table;
  const bool steady = before && before->table == table &&
                      (items <= before->items || (items - before->items) * max_growth < limit - items);
  return room && steady
             ? ""
             : "the server's hash table is about to grow, and a dump at that moment can stop the server";
}

namespace {

class Dump final : public LineStream {
 public:
  enum class Phase { looking, dumping, counting };
  // Returns the current DumpState::max_keys of the server with this index.
  using CountAgain = std::function<std::uint64_t(std::size_t index)>;

  // If `first` is counting, no keys are listed; only the server's statistics are read.
  Dump(const Server& server, std::size_t index, const LiveKeysOptions& options, const tls::Context* tls,
       const TakeLiveKey& take, CountAgain count_again, Phase first = Phase::looking)
      : LineStream(server, options, tls),
        index_(index),
        take_(take),
        count_again_(std::move(count_again)),
        patience_(options.patience),
        phase_(first) {}

  void time_is_up() override { fail(Kind::unknown, "not finished" + why_over(" in time; raise --timeout")); }
  LiveKeysOfServer result() const {
    LiveKeysOfServer result = result_;
    result.failure = failure();
    return result;
  }

  std::uint64_t max_keys() const { return state_.max_keys; }

 private:
  void ask(SteadyTime now) override { look(now, phase_); }

  void look(SteadyTime now, Phase phase) {
    phase_ = phase;
    statistics_.clear();
    asked_at_ = now;
    set_deadline(now + options().timeout);
    send(look_question);
  }

  void ask_for_keys(SteadyTime now) {
    if (command_.empty()) command_ = by_table;
    phase_ = Phase::dumping;
    asked_at_ = now;
    set_deadline(now + options().timeout);
    await_end(now);
    send(command_);
  }

  // On servers without END, sends end_question unless something arrives by then.
  void await_end(SteadyTime now) {
    if (!may_lack_end()) return;
    ends_at_ = now + options().timeout / 2;
    act_at(*ends_at_);
  }

  void act(SteadyTime now) override {
    if (std::exchange(retries_, false)) return look(now, Phase::looking);
    ends_at_.reset();
    send(end_question);
  }

  void received(SteadyTime now) override {
    if (retries_) return;
    if (ends_at_) await_end(now);
    // A server that trickles bytes times out: more time must be earned by progress.
    const auto earned = 1 + result_.keys / min_keys_per_s + received_bytes() / min_bytes_per_s;
    set_deadline(
        std::min(now + options().timeout, asked_at_ + options().timeout * static_cast<std::int64_t>(earned)));
  }

  // Tries again from the beginning after a pause, which doubles up to a second: most dumps take milliseconds.
  void wait(SteadyTime now, std::string_view why) {
    if (!busy_until_) busy_until_ = now + patience_;
    if (now + pause_ > *busy_until_) {
      result_.busy = true;
      return fail(Kind::unreachable, "no dump was started: " + std::string(why) + "; try again");
    }
    retries_ = true;
    // The answer to an end_question that was sent belongs to this attempt, not to the next dump.
    refused_ends_ += may_lack_end() && phase_ == Phase::dumping && !ends_at_ ? 1 : 0;
    ends_at_.reset();
    set_deadline(SteadyTime::max());
    pause_until(now + pause_);
    pause_ = std::min(2 * pause_, longest_pause);
  }

  void take_line(std::string_view line, SteadyTime now) override {
    phase_ == Phase::dumping ? take_key_line(line, now) : take_statistic(line, now);
  }

  void take_statistic(std::string_view line, SteadyTime now) {
    if (line.starts_with("VERSION ") && refused_ends_ > 0) {
      --refused_ends_;
    } else if (line.starts_with("STAT ")) {
      append_all(statistics_, {line.substr(5), "\n"});
      if (statistics_.size() > max_statistics)
        fail(Kind::refused, "the answer to 'stats' does not end; is this a memcached server?");
    } else if (line == "END") {
      looked(now);
    } else if (phase_ == Phase::counting) {
      finish();
    } else if (line.starts_with("ERROR") || line.starts_with("CLIENT_ERROR") ||
               line.starts_with("SERVER_ERROR")) {
      ask_for_keys(now);  // the server has no statistics
    } else {
      fail(Kind::refused, "the answer to 'stats' is not memcached's; is this a memcached server?");
    }
  }

  void looked(SteadyTime now) {
    state_ = DumpState::of(statistics_);
    if (phase_ == Phase::counting) {
      result_.items_after = state_.items;
      return finish();
    }
    const std::string_view objection = state_.objection(std::exchange(before_, state_));
    if (!objection.empty()) return wait(now, objection);
    result_.items_before = state_.items;
    ask_for_keys(now);
  }

  void take_key_line(std::string_view line, SteadyTime now) {
    if (auto key = parse_metadump_line(line, buffer_)) {
      key->server = index_;
      key->of_items = result_.items_before;
      ++result_.keys;
      if (result_.keys > state_.max_keys && !has_grown())
        fail(Kind::unknown, "the list was cut off at " + std::to_string(result_.keys) +
                                " keys because the server counts only " + std::to_string(state_.items) +
                                " items; check what answers at this address");
      else if (!take_(*key))
        finish();
    } else if (line.starts_with("VERSION ") && refused_ends_ > 0) {
      --refused_ends_;
    } else if (line == "END" || (may_lack_end() && !ends_at_ && line.starts_with("VERSION "))) {
      take_end(now);
    } else if (line == "OK" && result_.keys == 0) {
      return;  // the first line of 1.6.43 and later
    } else if (line.starts_with("BUSY") && result_.keys == 0) {
      wait(now, "the server is busy with another dump or crawl");
    } else if (line.starts_with("ERROR locked") && result_.keys == 0) {
      wait(now, "the server's hash table is growing");
    } else if (result_.keys == 0 && command_ == by_table && line.starts_with("BADCLASS")) {
      command_ = by_lru;
      ask_for_keys(now);
    } else {
      refuse(line);
    }
  }

  // Reads the count again, since the server may be growing, over another connection: this one carries only
  // keys.
  bool has_grown() {
    state_.max_keys = std::max(state_.max_keys, count_again_(index_));
    return result_.keys <= state_.max_keys;
  }

  void take_end(SteadyTime now) {
    result_.complete = true;
    result_.by_table = command_ == by_table;
    ends_at_.reset();
    act_at(SteadyTime::max());
    result_.items_before > 0 ? look(now, Phase::counting) : finish();
  }

  void refuse(std::string_view line) {
    if (line.starts_with("CLIENT_ERROR lru crawler disabled")) {
      fail(Kind::refused,
           "the LRU crawler is off; start it with -o lru_crawler, or send "
           "'lru_crawler enable'");
    } else if (line.ends_with("metadump not allowed")) {
      fail(Kind::refused, "listing keys is switched off; start the server without -X");
    } else if (result_.keys == 0) {
      fail(Kind::refused,
           "the server does not support 'lru_crawler metadump', as memcached 1.4.31 and later does");
    } else {
      fail(Kind::unknown, "the dump has a line that is not a key; is this a memcached server?");
    }
  }

  // Proxies close on an unknown command.
  void take_close() override {
    if (result_.complete) return finish();
    if (result_.keys > 0)
      return fail(Kind::unknown, "the server closed the connection in the middle of the dump");
    fail(Kind::refused,
         "the server closed the connection on 'lru_crawler metadump'; if it is a proxy, give that proxy's "
         "servers");
  }

  void take_late() override {
    if (result_.complete) return finish();
    if (result_.keys == 0) {
      return fail(Kind::unreachable,
                  "no dump within the timeout: the server is stopped or busy; raise --timeout or try again");
    }
    fail(Kind::unknown, "the dump stopped: no more keys within the timeout; raise --timeout");
  }

  // Returns true for 1.4.31 to 1.4.39, which do not send END.
  bool may_lack_end() const { return state_.release < 10440; }

  std::size_t index_;
  const TakeLiveKey& take_;
  CountAgain count_again_;
  Duration patience_;
  Phase phase_;
  std::string statistics_;
  DumpState state_;
  std::optional<DumpState> before_;
  std::string_view command_;
  SteadyTime asked_at_{};
  std::optional<SteadyTime> busy_until_;
  Duration pause_ = std::chrono::milliseconds(30);  // before the next attempt
  bool retries_ = false;
  int refused_ends_ = 0;               // replies to end_question that do not end a dump
  std::optional<SteadyTime> ends_at_;  // when to send end_question; unset once it was sent
  std::string buffer_;
  LiveKeysOfServer result_;
};

}  // namespace

std::vector<LiveKeysOfServer> read_dumps(const Pool& pool, const LiveKeysOptions& options, tls::Contexts& tls,
                                         const Clock& clock, const TakeLiveKey& take,
                                         const std::function<bool()>& goes_on) {
  const auto count_again = [&](std::size_t index) {
    Dump dump(pool[index], index, options, tls.of(pool[index]), take, {}, Dump::Phase::counting);
    LineStream* const only = &dump;
    run_streams({&only, 1}, options, clock);
    return dump.max_keys();
  };
  return run_on_all<Dump>(pool, options, clock, goes_on, [&](const Server& server, std::size_t index) {
    return std::make_unique<Dump>(server, index, options, tls.of(server), take, count_again);
  });
}

}  // namespace mcds
