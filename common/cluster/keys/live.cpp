#include "common/cluster/keys/live.hpp"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "common/base/bytes.hpp"
#include "common/cluster/wire/socket.hpp"

namespace mcds {

namespace {

using meta::Socket;
using Kind = ReplyFailure::Kind;

// By the hash table where the server can (1.6.9 and later): a walk along the LRUs misses keys that are moved from one to
// another by being used, some percent of them under load.
constexpr std::string_view by_table = "lru_crawler metadump hash\r\n";
constexpr std::string_view by_lru = "lru_crawler metadump all\r\n";
// 1.4.31 to 1.4.39 send no END. A server answers nothing else while it dumps, so after a silence the answer to this is
// the end.
constexpr std::string_view end_question = "version\r\n";
constexpr std::size_t longest_line = 4096;  // a key of 250 bytes, percent-encoded, and its figures
constexpr std::size_t slowest_keys = 64;
constexpr std::size_t slowest_bytes = 64 * 1024;
constexpr Duration before_retry = std::chrono::milliseconds(50);

// The text after `name` up to the next space; the fields come in a fixed order, later versions add some.
std::optional<std::string_view> take_field(std::string_view& line, std::string_view name) {
  const std::size_t at = line.find(name);
  if (at == std::string_view::npos) return std::nullopt;
  line.remove_prefix(at + name.size());
  const std::string_view text = line.substr(0, line.find(' '));
  line.remove_prefix(text.size());
  return text;
}

std::optional<std::int64_t> integer(const std::optional<std::string_view>& text) {
  return text ? parse_i64(*text) : std::nullopt;
}

class Dump {
 public:
  Dump(const Server& server, std::size_t index, const LiveKeysOptions& options, const tls::Context* tls,
       const TakeLiveKey& take)
      : index_(index), options_(options), take_(take), socket_(server, tls) {}

  void start(SteadyTime now) {
    deadline_ = now + options_.connect_timeout;
    if (!socket_.start(options_.connect_timeout)) return fail(Kind::unreachable, socket_.complaint());
    if (socket_.state() == Socket::State::open) ask(now);
  }

  bool busy() const { return busy_; }
  int descriptor() const { return retry_at_ ? -1 : socket_.descriptor(); }
  short events() const {
    if (socket_.state() == Socket::State::connecting) return socket_.connecting_events();
    return unsent_.empty() ? POLLIN : POLLOUT;
  }
  // A server that drips is given up: in one timeout it must do so much at least.
  void expect_more(SteadyTime now) {
    const auto earned = 1 + result_.keys / slowest_keys + received_ / slowest_bytes;
    deadline_ =
        std::min(now + options_.timeout, asked_at_ + options_.timeout * static_cast<std::int64_t>(earned));
  }

  SteadyTime wakes_at() const {
    return std::min(deadline_, retry_at_.value_or(ends_at_.value_or(deadline_)));
  }
  const LiveKeysOfServer& result() const { return result_; }

  void proceed(short happened, SteadyTime now) {
    if (now >= deadline_) return fail_late();
    if (retry_at_ && now >= *retry_at_) return ask_again(now);
    if (!retry_at_ && ends_at_ && now >= *ends_at_) return ask_for_end();
    if (happened == 0) return;
    if (socket_.state() == Socket::State::connecting) return finish_connecting(now);
    if (!unsent_.empty()) return send();
    read(now);
  }

  void fail(Kind kind, std::string message) {
    result_.failure = std::make_shared<ReplyFailure>(ReplyFailure{kind, std::move(message)});
    finish();
  }

 private:
  void finish() {
    socket_.close();
    busy_ = false;
  }

  void ask(SteadyTime now) {
    deadline_ = now + options_.timeout;
    asked_at_ = now;
    // The dump must not be pipelined behind anything.
    if (options_.login) {
      awaits_login_ = true;
      unsent_ = login_request(*options_.login);
      return send();
    }
    ask_for_keys(now);
  }

  void ask_for_keys(SteadyTime now) {
    ends_at_ = now + options_.timeout / 2;
    unsent_ = command_;
    send();
  }

  void ask_for_end() {
    ends_at_.reset();
    unsent_ = end_question;
    send();
  }

  // The deadline stays: a server that is busy with other dumps is as good as silent.
  void ask_again(SteadyTime) {
    retry_at_.reset();
    unsent_ = command_;
    send();
  }

  void send() {
    const std::ptrdiff_t size = socket_.send(unsent_.data(), unsent_.size());
    if (size < 0) return fail(Kind::unreachable, socket_.complaint());
    unsent_.erase(0, static_cast<std::size_t>(size));
  }

  void finish_connecting(SteadyTime now) {
    const auto state = socket_.finish_connecting();
    if (state == Socket::State::open) return ask(now);
    if (state == Socket::State::closed) fail_connecting();
  }

  void fail_connecting() { fail(socket_.denied() ? Kind::denied : Kind::unreachable, socket_.complaint()); }

  void read(SteadyTime now) {
    const std::ptrdiff_t size = socket_.receive(input_);
    if (size < 0) return fail_closed();
    if (size == 0) return;
    received_ += static_cast<std::size_t>(size);
    if (ends_at_) ends_at_ = now + options_.timeout / 2;
    read_lines(now);
    expect_more(now);
  }

  void read_lines(SteadyTime now) {
    std::size_t position = 0;
    while (busy_ && !retry_at_) {
      const std::size_t end = input_.find('\n', position);
      if (end == std::string::npos) break;
      std::string_view line(input_.data() + position, end - position);
      position = end + 1;
      if (line.ends_with('\r')) line.remove_suffix(1);
      read_line(line, now);
    }
    input_.erase(0, position);
    if (busy_ && input_.size() > longest_line)
      fail(Kind::unknown, "the dump has a line that is not a key; is this a memcached server?");
  }

  void read_line(std::string_view line, SteadyTime now) {
    if (std::exchange(awaits_login_, false)) {
      const LoginAnswer answer = read_login_answer(line);
      return answer.accepted ? ask_for_keys(now) : fail(answer.kind, answer.complaint);
    }
    if (auto key = parse_metadump_line(line, buffer_)) {
      key->server = index_;
      ++result_.keys;
      if (!take_(*key)) finish();
    } else if (line == "END" || (!ends_at_ && line.starts_with("VERSION "))) {
      result_.complete = true;
      result_.by_table = command_ == by_table;
      finish();
    } else if (line == "OK" && result_.keys == 0) {
      return;  // what 1.6.43 and later begin with
    } else if (line.starts_with("BUSY") && result_.keys == 0) {
      retry_at_ = now + before_retry;
    } else if (result_.keys == 0 && command_ == by_table && line.starts_with("BADCLASS")) {
      command_ = by_lru;
      ask_for_keys(now);
    } else {
      refuse(line);
    }
  }

  void refuse(std::string_view line) {
    if (wants_login(line)) {
      fail(Kind::denied, login_wanted);
    } else if (line.starts_with("CLIENT_ERROR lru crawler disabled")) {
      fail(Kind::refused,
           "the LRU crawler is off; start it with -o lru_crawler, or send "
           "`lru_crawler enable`");
    } else if (line.starts_with("ERROR Too many")) {
      fail(Kind::unreachable, "the server is at its connection limit; raise its -c or try again");
    } else if (result_.keys == 0) {
      fail(Kind::refused,
           "the server does not support `lru_crawler metadump` (memcached 1.4.31 and later); give a file of "
           "keys instead");
    } else {
      fail(Kind::unknown, "the dump has a line that is not a key; is this a memcached server?");
    }
  }

  // Proxies close on a command they do not know.
  void fail_closed() {
    if (socket_.denied()) return fail_connecting();
    if (result_.keys > 0)
      return fail(Kind::unknown, "the server closed the connection in the middle of the dump");
    fail(Kind::refused,
         "the server closed the connection on `lru_crawler metadump`; if it is a proxy, give the servers "
         "behind it");
  }

  void fail_late() {
    if (socket_.state() == Socket::State::connecting) {
      return fail(Kind::unreachable, socket_.complaint(true));
    }
    if (retry_at_ || result_.keys == 0) {
      return fail(Kind::unreachable,
                  "no dump within the timeout: the server is stopped or busy with another dump; raise "
                  "--timeout or try again");
    }
    fail(Kind::unknown, "the dump stopped: no more keys within the timeout; raise --timeout");
  }

  std::size_t index_;
  const LiveKeysOptions& options_;
  const TakeLiveKey& take_;
  Socket socket_;
  bool busy_ = true;
  bool awaits_login_ = false;
  std::string_view command_ = by_table;
  std::string unsent_;
  SteadyTime deadline_{};
  SteadyTime asked_at_{};
  std::size_t received_ = 0;
  std::optional<SteadyTime> retry_at_;
  std::optional<SteadyTime> ends_at_;  // when the end is asked for, unless something comes; unset: it was
  std::string input_, buffer_;
  LiveKeysOfServer result_;
};

// Waits for any of the dumps, but no longer than until `end`.
void proceed_with(const std::vector<Dump*>& busy, const Clock& clock, SteadyTime end) {
  std::vector<pollfd> waiting;
  SteadyTime soonest = end;
  for (const Dump* dump : busy) {
    waiting.push_back({dump->descriptor(), dump->events(), 0});
    soonest = std::min(soonest, dump->wakes_at());
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(soonest - clock.steady()).count();
  const int ready =
      poll(waiting.data(), waiting.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, 60000)));
  const SteadyTime now = clock.steady();
  for (std::size_t i = 0; i < busy.size(); ++i) {
    if (now >= end) {
      busy[i]->fail(Kind::unknown, "not all keys were listed in time");
    } else {
      busy[i]->proceed(ready > 0 ? waiting[i].revents : short{0}, now);
    }
  }
}

}  // namespace

std::optional<LiveKey> parse_metadump_line(std::string_view line, std::string& buffer) {
  if (!line.starts_with("key=")) return std::nullopt;
  LiveKey result;
  result.key = *take_field(line, "key=");
  const auto exptime = integer(take_field(line, " exp="));
  const auto accessed = integer(take_field(line, " la="));
  if (result.key.empty() || !exptime || !accessed) return std::nullopt;
  result.expires_at = *exptime;
  result.last_accessed_at = *accessed;
  if (const auto cas = take_field(line, " cas=")) result.cas = parse_u64(*cas).value_or(0);
  if (const auto size = take_field(line, " size=")) result.size_bytes = parse_u64(*size).value_or(0);
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
  std::optional<tls::Context> tls;
  if (std::any_of(pool.begin(), pool.end(), [](const Server& server) { return server.tls; }))
    tls.emplace(options.tls);
  std::vector<std::unique_ptr<Dump>> dumps;
  for (std::size_t i = 0; i < pool.size(); ++i)
    dumps.push_back(std::make_unique<Dump>(pool[i], i, options, pool[i].tls ? &*tls : nullptr, take));
  const SteadyTime end = options.longest ? clock.steady() + *options.longest : SteadyTime::max();
  for (const auto& dump : dumps) dump->start(clock.steady());
  for (;;) {
    std::vector<Dump*> busy;
    for (const auto& dump : dumps) {
      if (dump->busy()) busy.push_back(dump.get());
    }
    if (busy.empty()) break;
    proceed_with(busy, clock, end);
  }
  std::vector<LiveKeysOfServer> results;
  for (const auto& dump : dumps) results.push_back(dump->result());
  return results;
}

}  // namespace mcds
