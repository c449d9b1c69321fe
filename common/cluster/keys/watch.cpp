#include "common/cluster/keys/watch.hpp"

#include "common/base/bytes.hpp"

namespace mcds {

namespace {

// A version that lacks one of these event types answers an error and watches nothing.
constexpr std::string_view with_deletions = "watch fetchers mutations evictions deletions\r\n";
constexpr std::string_view without_deletions = "watch fetchers mutations evictions\r\n";

std::optional<std::string_view> field(std::string_view line, std::string_view name) {
  const std::size_t at = line.find(name);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(at + name.size());
  return rest.substr(0, rest.find(' '));
}

std::optional<KeyEvent::What> what_of(std::string_view type, std::string_view line) {
  using What = KeyEvent::What;
  if (type == "item_get") return field(line, " status=") == "found" ? What::found : What::missed;
  if (type == "item_store") {
    const auto status = field(line, " status=");
    if (status == "too_large") return What::too_large;
    return status == "no_memory" ? What::no_memory : What::stored;
  }
  if (type == "deleted") return What::deleted;
  if (type == "eviction") return What::evicted;
  return std::nullopt;
}

class Watch final : public LineStream {
 public:
  Watch(const Server& server, std::size_t index, const LineStreamOptions& options, const tls::Context* tls,
        const Clock& clock, const std::function<void(const KeyEvent&)>& take)
      : LineStream(server, options, tls), index_(index), clock_(clock), take_(take) {}

  void time_is_up() override {
    if (!began_)
      return fail(Kind::unreachable, "no answer to 'watch'" + why_over("; the server is stopped or busy"));
    end_watch();
    finish();
  }
  WatchedServer result() const {
    WatchedServer result = result_;
    result.failure = failure();
    return result;
  }

 private:
  // The server's log thread sleeps for up to a second before it answers if there are other watchers and no
  // events.
  void ask(SteadyTime now) override {
    set_deadline(now + options().timeout + std::chrono::seconds(1));
    send(command_);
  }

  void take_line(std::string_view line, SteadyTime now) override {
    if (began_) return take_event(line);
    if (line == "OK") {
      began_ = now;
      result_.deletions = command_ == with_deletions;
      if (options().longest) act_at(now + *options().longest);
      return set_deadline(SteadyTime::max());  // without events the server writes nothing
    }
    if (line.starts_with("ERROR") && command_ == with_deletions) {
      command_ = without_deletions;
      return send(command_);
    }
    if (line.starts_with("CLIENT_ERROR watch commands not allowed"))
      return fail(Kind::refused, "watching is switched off; start the server without -W");
    if (line.starts_with("WATCHER_TOO_MANY"))
      return fail(Kind::unreachable,
                  "the server has its maximum number of watchers; end others or try again");
    fail(Kind::refused, "the server does not support 'watch' (memcached 1.4.26 and later)");
  }

  void act(SteadyTime) override { time_is_up(); }

  void take_event(std::string_view line) {
    if (line.starts_with("skipped=")) {
      result_.skipped += parse_u64(line.substr(8)).value_or(0);
      return;
    }
    auto event = parse_watch_line(line, buffer_);
    if (!event) return;
    event->server = index_;
    ++result_.events;
    using What = KeyEvent::What;
    if (event->what == What::evicted) return take_(*event);  // may come between a fetch and its store
    if (event->what != What::found && event->what != What::missed && looked_up_ &&
        looked_up_->key == event->key)
      looked_up_.reset();
    release();
    const bool is_lookup = event->what == What::found || event->what == What::missed;
    // After a refused set, the server fetches the old value to remove it.
    const bool is_refused = event->what == What::too_large || event->what == What::no_memory;
    const std::string refused = std::exchange(refused_key_, is_refused ? std::string(event->key) : "");
    if (!is_lookup) return take_(*event);
    if (event->key == refused) return;
    looked_up_key_ = event->key;
    looked_up_ = *event;
    looked_up_->key = looked_up_key_;
  }

  // Reports the held fetch. The next event shows whether it belonged to a store: both are written together.
  void release() {
    if (const auto event = std::exchange(looked_up_, std::nullopt)) take_(*event);
  }

  void end_watch() {
    release();
    result_.watched = clock_.steady() - *began_;
  }

  void take_close() override {
    if (!began_) {
      return fail(Kind::refused,
                  "the server closed the connection on 'watch'; if it is a proxy, give that proxy's servers");
    }
    end_watch();
    fail(Kind::unknown, "the server closed the connection during the watch; try again");
  }
  void take_late() override { time_is_up(); }

  std::size_t index_;
  const Clock& clock_;
  const std::function<void(const KeyEvent&)>& take_;
  std::string_view command_ = with_deletions;
  std::optional<SteadyTime> began_;
  std::string buffer_;
  std::optional<KeyEvent> looked_up_;
  std::string looked_up_key_;
  std::string refused_key_;  // of the previous store, if it was refused
  WatchedServer result_;
};

}  // namespace

// A line is: ts=1795254618.123456 gid=7 type=item_get key=price%3A44 status=found clsid=1 cfd=26 size=3
std::optional<KeyEvent> parse_watch_line(std::string_view line, std::string& buffer) {
  if (!line.starts_with("ts=")) return std::nullopt;
  const auto type = field(line, " type=");
  const auto key = field(line, " key=");
  if (!type || !key || key->empty()) return std::nullopt;
  const std::string_view rest = line.substr(static_cast<std::size_t>(key->end() - line.begin()));
  const auto what = what_of(*type, rest);
  if (!what) return std::nullopt;
  KeyEvent event{*key, 0, *what};
  if (const auto size = field(rest, " size=")) event.size_bytes = parse_u64(*size);
  if (const auto ttl = field(rest, " ttl=")) event.ttl_s = parse_u64(*ttl);
  if (!decode_key(event.key, buffer)) return std::nullopt;
  return event;
}

std::vector<WatchedServer> watch_keys(const Pool& pool, const LineStreamOptions& options, const Clock& clock,
                                      const std::function<void(const KeyEvent&)>& take,
                                      const std::function<bool()>& goes_on) {
  tls::Contexts tls;
  LineStreamOptions whole = options;
  whole.longest.reset();  // the time counts from each server's first answer
  return run_on_all<Watch>(pool, whole, clock, goes_on, [&](const Server& server, std::size_t index) {
    return std::make_unique<Watch>(server, index, options, tls.of(server), clock, take);
  });
}

}  // namespace mcds
