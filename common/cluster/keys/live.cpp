#include "common/cluster/keys/live.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "common/base/bytes.hpp"

namespace mcds {

namespace {

// By the hash table where the server can (1.6.9 and later): a walk along the LRUs misses keys that are moved from one to
// another by being used, some percent of them under load.
constexpr std::string_view by_table = "lru_crawler metadump hash\r\n";
constexpr std::string_view by_lru = "lru_crawler metadump all\r\n";
// 1.4.31 to 1.4.39 send no END. A server answers nothing else while it dumps, so after a silence the answer to this is
// the end.
constexpr std::string_view end_question = "version\r\n";
constexpr std::size_t slowest_keys = 64;
constexpr std::size_t slowest_bytes = 64 * 1024;
constexpr Duration before_retry = std::chrono::milliseconds(50);

// The next word: `name=value`. The fields come in a fixed order, later versions add some.
std::string_view take_word(std::string_view& line) {
  while (line.starts_with(' ')) line.remove_prefix(1);
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

template <typename Number>
bool take_number(std::string_view word, std::string_view name, Number& number) {
  if (!word.starts_with(name)) return false;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data() + name.size(), end, number);
  return error == std::errc{} && stop == end;
}

class Dump final : public LineStream {
 public:
  Dump(const Server& server, std::size_t index, const LiveKeysOptions& options, const tls::Context* tls,
       const TakeLiveKey& take)
      : LineStream(server, options, tls), index_(index), take_(take) {}

  void time_is_up() override { fail(Kind::unknown, "not all keys were listed in time"); }
  LiveKeysOfServer result() const {
    LiveKeysOfServer result = result_;
    result.failure = failure();
    return result;
  }

 private:
  void ask(SteadyTime now) override {
    asked_at_ = now;
    ask_for_keys(now);
  }

  void ask_for_keys(SteadyTime now) {
    await_end(now);
    send(command_);
  }

  // The end is asked for then, unless something comes.
  void await_end(SteadyTime now) {
    ends_at_ = now + options().timeout / 2;
    act_at(*ends_at_);
  }

  // The deadline of a busy server stays: one that is busy with other dumps is as good as silent.
  void act(SteadyTime now) override {
    if (std::exchange(retries_, false)) {
      return ask_for_keys(now);
    }
    ends_at_.reset();
    send(end_question);
  }

  void received(SteadyTime now) override {
    if (ends_at_ && !retries_) await_end(now);
    // A server that drips is given up: in one timeout it must do so much at least.
    const auto earned = 1 + result_.keys / slowest_keys + received_bytes() / slowest_bytes;
    set_deadline(
        std::min(now + options().timeout, asked_at_ + options().timeout * static_cast<std::int64_t>(earned)));
  }

  void take_line(std::string_view line, SteadyTime now) override {
    if (auto key = parse_metadump_line(line, buffer_)) {
      key->server = index_;
      ++result_.keys;
      if (!take_(*key)) finish();
    } else if (line.starts_with("VERSION ") && refused_ends_ > 0) {
      --refused_ends_;
    } else if (line == "END" || (!ends_at_ && line.starts_with("VERSION "))) {
      result_.complete = true;
      result_.by_table = command_ == by_table;
      finish();
    } else if (line == "OK" && result_.keys == 0) {
      return;  // what 1.6.43 and later begin with
    } else if (line.starts_with("BUSY") && result_.keys == 0) {
      retries_ = true;
      // An end that was asked for is that of this answer, not of the dump to come.
      refused_ends_ += ends_at_ ? 0 : 1;
      pause_until(now + before_retry);
    } else if (result_.keys == 0 && command_ == by_table && line.starts_with("BADCLASS")) {
      command_ = by_lru;
      ask_for_keys(now);
    } else {
      refuse(line);
    }
  }

  void refuse(std::string_view line) {
    if (line.starts_with("CLIENT_ERROR lru crawler disabled")) {
      fail(Kind::refused,
           "the LRU crawler is off; start it with -o lru_crawler, or send "
           "`lru_crawler enable`");
    } else if (line.ends_with("metadump not allowed")) {
      fail(Kind::refused,
           "listing keys is switched off; start the server without -X, or give a file of keys instead");
    } else if (result_.keys == 0) {
      fail(Kind::refused,
           "the server does not support `lru_crawler metadump` (memcached 1.4.31 and later); give a file of "
           "keys instead");
    } else {
      fail(Kind::unknown, "the dump has a line that is not a key; is this a memcached server?");
    }
  }

  // Proxies close on a command they do not know.
  void take_close() override {
    if (result_.keys > 0)
      return fail(Kind::unknown, "the server closed the connection in the middle of the dump");
    fail(Kind::refused,
         "the server closed the connection on `lru_crawler metadump`; if it is a proxy, give the servers "
         "behind it");
  }

  void take_late() override {
    if (retries_ || result_.keys == 0) {
      return fail(Kind::unreachable,
                  "no dump within the timeout: the server is stopped or busy with another dump; raise "
                  "--timeout or try again");
    }
    fail(Kind::unknown, "the dump stopped: no more keys within the timeout; raise --timeout");
  }

  std::size_t index_;
  const TakeLiveKey& take_;
  std::string_view command_ = by_table;
  SteadyTime asked_at_{};
  bool retries_ = false;
  int refused_ends_ = 0;               // answers to come that end no dump
  std::optional<SteadyTime> ends_at_;  // unset: it was asked for
  std::string buffer_;
  LiveKeysOfServer result_;
};

}  // namespace

std::optional<LiveKey> parse_metadump_line(std::string_view line, std::string& buffer) {
  if (!line.starts_with("key=")) return std::nullopt;
  LiveKey result;
  result.key = take_word(line).substr(4);
  bool expires = false, accessed = false;
  for (auto word = take_word(line); !word.empty(); word = take_word(line)) {
    // What is no number is no time; of the other words nothing is asked.
    if (word[0] == 'e') expires = expires || take_number(word, "exp=", result.expires_at);
    if (word[0] == 'l') accessed = accessed || take_number(word, "la=", result.last_accessed_at);
    if (word[0] == 'c') take_number(word, "cas=", result.cas);
    if (word[0] == 's') take_number(word, "size=", result.size_bytes);
  }
  if (result.key.empty() || !expires || !accessed) return std::nullopt;
  if (result.key.find('%') != std::string_view::npos) {
    auto decoded = percent_decode(result.key);
    if (!decoded) return std::nullopt;
    buffer = std::move(*decoded);
    result.key = buffer;
  }
  return result;
}

std::vector<LiveKeysOfServer> read_live_keys(const Pool& pool, const LiveKeysOptions& options,
                                             const Clock& clock, const TakeLiveKey& take) {
  const auto tls = tls_context_for(pool, options.tls);
  std::vector<std::unique_ptr<Dump>> dumps;
  std::vector<LineStream*> streams;
  for (std::size_t i = 0; i < pool.size(); ++i) {
    dumps.push_back(std::make_unique<Dump>(pool[i], i, options, pool[i].tls ? &*tls : nullptr, take));
    streams.push_back(dumps.back().get());
  }
  run_streams(streams, options.longest, clock);
  std::vector<LiveKeysOfServer> results;
  for (const auto& dump : dumps) results.push_back(dump->result());
  return results;
}

}  // namespace mcds
