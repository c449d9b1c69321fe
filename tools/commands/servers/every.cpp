// Implements mcds servers --every: repeats the rates of all servers and the pool, as a screen or as lines.
#include <unistd.h>

#include "common/operations/doctor/checks.hpp"
#include "common/operations/doctor/gather.hpp"
#include "tools/commands/item/hot.hpp"
#include "tools/commands/servers/condition.hpp"
#include "tools/commands/servers/rates.hpp"

namespace mcds {

namespace {

constexpr auto min_interval = std::chrono::milliseconds(100);
constexpr std::size_t hottest_shown = 5, findings_shown = 5;

// Returns true on a terminal, unless the user wants lines there too.
bool wants_screen(Session& session) {
  const bool chosen = session.settings().value("output").source != Origin::builtin;
  if (isatty(STDOUT_FILENO) == 0 || session.options().quiet) return false;
  return session.output().mode() == OutputMode::text || !chosen;
}

// The events of a key or a prefix in an interval.
struct HotLine {
  std::string key;  // or a prefix
  bool is_prefix = false;
  std::uint64_t events = 0;
  double per_s = 0;
  std::string server;  // the server of a key
};

constexpr std::string_view prefix_ends = ":/.|";

std::string_view prefix_of(std::string_view key) {
  const std::size_t end = key.find_first_of(prefix_ends);
  return end == std::string_view::npos ? std::string_view() : key.substr(0, end + 1);
}

// Watches all servers for `longest`, or until `goes_on` returns false. Returns keys, then prefixes, each with
// the hottest first. A prefix ends with the first of : / . | in a key. `servers` gets how each was watched.
std::vector<HotLine> watch_hottest(Session& session, Duration longest, std::size_t count,
                                   const std::function<bool()>& goes_on,
                                   std::vector<WatchedServer>& servers) {
  auto reading = LineStreamOptions::of(session.connect_options());
  reading.longest = longest;
  const Pool& pool = session.placement()->pool();
  HotKeys keys, prefixes;
  const SteadyTime began = session.clock().steady();
  servers = watch_keys(
      pool, reading, session.clock(),
      [&](const KeyEvent& event) {
        if (!event.key.starts_with(session.key_prefix())) return;
        const std::string_view name = event.key.substr(session.key_prefix().size());
        keys.add(event, name);
        KeyEvent anywhere = event;
        anywhere.server = 0;
        if (const std::string_view prefix = prefix_of(name); !prefix.empty()) prefixes.add(anywhere, prefix);
      },
      goes_on);
  // A watch that breaks off is not projected to the whole time.
  const double seconds =
      std::chrono::duration<double>(std::max(session.clock().steady() - began, longest)).count();
  std::vector<HotLine> lines;
  const auto take = [&](const HotKeys& from, bool is_prefix) {
    for (const HotKey& hot : from.hottest(KeyMetric::events, count)) {
      const std::uint64_t events = hot.counts.events();
      lines.push_back({hot.key, is_prefix, events, static_cast<double>(events) / seconds,
                       is_prefix ? std::string() : visible(pool[hot.server].label())});
    }
  };
  take(keys, false);
  take(prefixes, true);
  return lines;
}

// The screen has one row per server, and as many columns as fit, the most important first.

struct ServerRow {
  std::string name;  // never cut
  JsonObject line;   // as in `servers --every`
};

struct Column {
  const char* title;
  const char* field;
  enum class Form { number, bytes, share, time, used } form;
};

// The columns, the most important first.
constexpr std::array columns_of_the_screen{
    Column{"get/s", "gets_per_s", Column::Form::number},
    Column{"hit", "hit_ratio", Column::Form::share},
    Column{"set/s", "sets_per_s", Column::Form::number},
    Column{"evict/s", "evictions_per_s", Column::Form::number},
    Column{"used", "used_bytes", Column::Form::used},
    Column{"rtt", "rtt_us", Column::Form::time},
    Column{"conns", "connections", Column::Form::number},
    Column{"refused", "out_of_memory", Column::Form::number},
    Column{"in/s", "received_bytes_per_s", Column::Form::bytes},
    Column{"out/s", "sent_bytes_per_s", Column::Form::bytes},
    Column{"items", "items", Column::Form::number},
    Column{"limit", "limit_bytes", Column::Form::bytes},
    Column{"expired/s", "expired_unfetched_per_s", Column::Form::number},
    Column{"of conns", "max_connections", Column::Form::number},
    Column{"no conns", "listen_disabled", Column::Form::number},
};
constexpr std::size_t between = 2, indent_below = 4, min_columns = 3, used_bar = 8, bars_from = 80;

std::string right(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, shown_width(text)), ' ') + text;
}

std::string red(const std::string& text) {
  return red_begins + text + red_ends;
}

std::optional<double> figure_in(const std::string& line, std::string_view field) {
  const auto json = json_field(line, field);
  return json ? parse_double(*json) : std::nullopt;
}

constexpr std::array trouble{"evictions_per_s", "out_of_memory", "listen_disabled"};

std::string cell_of(const JsonObject& line, const Column& column, bool bars) {
  const std::string text = line.text();
  const auto value = figure_in(text, column.field);
  if (!value) return "-";
  const auto whole = static_cast<std::uint64_t>(*value + 0.5);
  const auto bytes = [&] { return cell_text("used_bytes", std::to_string(whole), {}); };
  switch (column.form) {
    case Column::Form::number: {
      const bool small = *value < 10 && *value != static_cast<double>(whole);
      const std::string number = small ? format_fixed(*value, 1) : grouped(whole);
      return *value > 0 && std::ranges::count(trouble, std::string_view(column.field)) > 0 ? red(number)
                                                                                           : number;
    }
    case Column::Form::bytes: return bytes();
    case Column::Form::time: return cell_text(column.field, std::to_string(whole), {});
    case Column::Form::share: return format_fixed(*value * 100, 1) + '%';
    case Column::Form::used: break;
  }
  const auto limit = figure_in(text, "limit_bytes");
  if (!limit || *limit <= 0) return bytes();
  std::string share = right(format_fixed(*value / *limit * 100, 0) + '%', 4);
  if (!bars) return share;
  const std::string drawn = bar(*value / *limit, used_bar);
  return drawn + std::string(used_bar - shown_width(drawn), ' ') + ' ' + share;
}

// The fields by which servers can be sorted, highest first. Servers that are down precede all others.
struct Order {
  const char* title;
  const char* field;
};
constexpr std::array orders{Order{"trouble", ""}, Order{"get/s", "gets_per_s"}, Order{"set/s", "sets_per_s"},
                            Order{"used", "used_bytes"}, Order{"rtt", "rtt_us"}};

std::pair<bool, double> rank_of(const ServerRow& row, const Order& order) {
  const std::string line = row.line.text();
  double value = figure_in(line, order.field).value_or(0);
  if (*order.field == '\0') {
    for (const char* field : trouble) value += figure_in(line, field).value_or(0);
  }
  return {json_field(line, "up") == "false", value};
}

// Returns the reason why a server has no values.
std::string state_of(const JsonObject& line) {
  const std::string text = line.text();
  const auto error = json_field(text, "error");
  if (error)
    return red((json_field(text, "up") == "false" ? "down: " : "") +
               visible(json_unquote(*error).value_or("")));
  return json_field(text, "restarted") ? red("restarted") : "";
}

struct Cells {
  std::vector<std::vector<std::string>> rows;  // per server, by column
  std::vector<std::size_t> widths;

  Cells(const std::vector<ServerRow>& servers, bool bars) {
    for (const Column& column : columns_of_the_screen) widths.push_back(shown_width(column.title));
    for (const ServerRow& server : servers) {
      auto& row = rows.emplace_back();
      for (std::size_t i = 0; i < columns_of_the_screen.size(); ++i) {
        row.push_back(cell_of(server.line, columns_of_the_screen[i], bars));
        // A column is wide enough for later values, so that columns do not move.
        widths[i] = std::max({widths[i], shown_width(row.back()), std::size_t{5}});
      }
    }
  }
  // Returns how many columns fit after the position `from`.
  std::size_t fitting(std::size_t from, std::size_t width) const {
    std::size_t count = 0;
    for (; count < widths.size() && from + between + widths[count] <= width; ++count)
      from += between + widths[count];
    return count;
  }
};

// Returns the header and a row for each server. No line is wider than `width`, except for a long name; if a
// name leaves no room for values, they are printed below it. At most `height` lines are returned: the last
// one counts the rows that do not fit.
std::vector<std::string> server_lines(const std::vector<ServerRow>& rows, std::size_t width,
                                      std::size_t height) {
  const Cells cells(rows, width >= bars_from);
  std::size_t names = shown_width("server");
  for (const ServerRow& row : rows) names = std::max(names, shown_width(row.name));
  std::size_t start = names, count = cells.fitting(names, width);
  const bool below = count < min_columns;
  if (below) start = indent_below, count = cells.fitting(indent_below, width);
  const auto metrics = [&](auto text_of) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i)
      text += std::string(between, ' ') + right(text_of(i), cells.widths[i]);
    return text;
  };
  const auto padded = [&](const std::string& name) {
    return name + std::string(start - std::min(start, shown_width(name)), ' ');
  };
  std::vector<std::string> lines{padded("server") +
                                 metrics([](std::size_t i) { return columns_of_the_screen[i].title; })};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t needed = below ? 2 : 1;
    if (i + 1 < rows.size() && lines.size() + needed + 1 > height) {
      lines.push_back("and " + std::to_string(rows.size() - i) + " more; a taller window shows them");
      break;
    }
    const std::string state = state_of(rows[i].line);
    const std::string rest = state.empty() ? metrics([&](std::size_t at) { return cells.rows[i][at]; })
                                           : std::string(between, ' ') + state;
    if (below) lines.push_back(rows[i].name);
    lines.push_back((below ? std::string(start, ' ') : padded(rows[i].name)) + rest);
  }
  return lines;
}

class Observer {
 public:
  Observer(Session& session, const ServersOptions& options)
      : session_(session), options_(options), pool_(session.placement()->pool()), before_(pool_.size()) {
    if (wants_screen(session)) screen_.emplace();
    pause_.watch_keys(screen_ ? screen_->keys() : -1, [this](char key) { return on_key(key); });
  }

  // Waits until `next`, watching keys and checking for faults if requested. Returns false if it is time to
  // end.
  bool wait(SteadyTime next) {
    const auto left = [&] { return std::max<Duration>(next - session_.clock().steady(), Duration::zero()); };
    bool goes_on = true;
    // On a busy machine nothing may be left of the interval, so at least half an interval is watched.
    if (options_.hot) {
      hottest_ = watch_hottest(
          session_, std::max<Duration>(left(), *options_.every / 2),
          screen_ ? screen_size().height : hottest_shown,
          [&] { return goes_on = pause_.wait(Duration::zero()); }, watched_);
    }
    if (options_.find && goes_on) {
      ConnectOptions connecting = session_.connect_options();
      connecting.trace = nullptr;
      seen_ = doctor::gather(session_.placement(), session_.pool().pool, session_.clock(),
                             {.connecting = connecting,
                              .placing = session_.placement_options(),
                              .interval = options_.hot ? *options_.every / 2 : left(),
                              .wait = [&](Duration time) { return goes_on = pause_.wait(time); }});
    }
    goes_on = goes_on && pause_.wait(left());
    while (goes_on && paused_) goes_on = pause_.wait(*options_.every);
    return goes_on;
  }

  // Reads all servers and prints them if `print` is true. Returns the worst status of a server.
  ExitStatus look(bool print) {
    const std::vector<Condition> conditions = ask_servers(session_, session_.cluster(), {"", "items"});
    const SteadyTime at = session_.clock().steady();
    Rates all;
    std::size_t up = 0;
    std::vector<ServerRow> rows;
    for (std::size_t i = 0; i < pool_.size(); ++i) {
      const Condition& condition = conditions[i];
      std::optional<Sample> now;
      if (condition.up && !condition.refused) now = Sample::of(at, condition.stats[0], condition.stats[1]);
      up += condition.up ? 1 : 0;
      if (print) rows.push_back(row_of(i, condition, now, all));
      before_[i] = now;
    }
    if (print) rows.push_back(row_of_pool(up, all));
    if (print && !screen_) print_lines(rows, conditions);
    if (print && screen_) {
      rows_ = std::move(rows);
      title_ = format_time(session_.clock().wall()).substr(0, 19) + "Z  " + std::to_string(up) + " of " +
               std::to_string(pool_.size()) + " up, every " + format_duration(*options_.every);
      title_[10] = ' ';
      show();
    }
    return status_of_statistics(conditions);
  }

 private:
  ServerRow row_of(std::size_t index, const Condition& condition, const std::optional<Sample>& now,
                   Rates& all) {
    JsonObject line("server", pool_[index].address());
    line.boolean("up", condition.up).time("at", session_.clock().wall());
    if (now && before_[index]) {
      const Rates rates(*before_[index], *now);
      line.raw("interval_s",
               format_fixed(std::chrono::duration<double>(now->at - before_[index]->at).count(), 3));
      if (rates.restarted()) line.boolean("restarted", true);
      rates.describe(line);
      all.add(rates);
    }
    if (condition.round_trip)
      line.number("rtt_us", static_cast<std::uint64_t>(condition.round_trip->count()));
    if (!condition.error.empty()) line.bytes("error", condition.error);
    return {visible(pool_[index].label()), line};
  }

  ServerRow row_of_pool(std::size_t up, const Rates& all) {
    JsonObject line = JsonObject("server", "*").boolean("up", up > 0).time("at", session_.clock().wall());
    all.describe(line);
    line.number("servers", pool_.size()).number("servers_up", up);
    return {"all", line};
  }

  void print_lines(const std::vector<ServerRow>& rows, const std::vector<Condition>& conditions) {
    for (std::size_t i = 0; i < conditions.size(); ++i)
      session_.output().answer(rows[i].line, conditions[i].up ? "up" : "down");
    session_.output().detail(rows.back().line);
    for (std::size_t i = 0; i < watched_.size(); ++i) {
      if (conditions[i].up && watched_[i].failure)
        session_.output().error(unwatched(watched_[i], pool_[i].address()));
    }
    for (const HotLine& hot : hottest_) {
      JsonObject line(hot.is_prefix ? "prefix" : "key", hot.key);
      line.raw("events_per_s", format_fixed(hot.per_s, 1));
      if (!hot.is_prefix) line.bytes("server", hot.server);
      session_.output().detail(line);
    }
    for (const doctor::CheckResult& result : findings()) {
      JsonObject line("finding", result.check->name);
      line.bytes("severity", doctor::name_of(result.severity));
      session_.output().detail(line.strings("servers", labels_of(pool_, result.servers)));
    }
    session_.output().next_table();
  }

  // Returns the sum of all servers, followed by the servers that the filter accepts.
  std::vector<ServerRow> arranged() const {
    std::vector<ServerRow> rows{rows_.back()};
    std::copy_if(rows_.begin(), rows_.end() - 1, std::back_inserter(rows),
                 [&](const ServerRow& row) { return row.name.find(filter_) != std::string::npos; });
    std::stable_sort(rows.begin() + 1, rows.end(), [&](const ServerRow& one, const ServerRow& other) {
      return rank_of(one, orders[order_]) > rank_of(other, orders[order_]);
    });
    return rows;
  }

  // Returns at most `most` lines: as many keys as fit above the hottest prefixes.
  std::vector<std::string> hot_lines(std::size_t most) const {
    std::vector<HotLine> chosen, prefixes;
    for (const HotLine& hot : hottest_) {
      if ((hot.key + ' ' + hot.server).find(filter_) == std::string::npos) continue;
      (hot.is_prefix ? prefixes : chosen).push_back(hot);
    }
    prefixes.resize(std::min({prefixes.size(), hottest_shown, most / 2}));
    chosen.resize(std::min(chosen.size(), most - prefixes.size()));
    chosen.insert(chosen.end(), prefixes.begin(), prefixes.end());
    const auto rate = [](const HotLine& hot) { return grouped(static_cast<std::uint64_t>(hot.per_s + 0.5)); };
    std::size_t widest = 0;
    for (const HotLine& hot : chosen) widest = std::max(widest, rate(hot).size());
    std::vector<std::string> lines;
    for (const HotLine& hot : chosen)
      lines.push_back(right(rate(hot), widest) + "/s  " + visible(hot.key) +
                      (hot.is_prefix ? "*" : "  on " + hot.server));
    return lines;
  }

  std::vector<std::string> found_lines() const {
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < watched_.size(); ++i) {
      if (watched_[i].failure)
        lines.push_back(visible(pool_[i].label()) + ": " + unwatched(watched_[i], "").what());
    }
    if (!options_.find) return lines;
    const std::vector<doctor::CheckResult> found = findings();
    lines.insert(lines.end(), {"", !seen_ ? "looking …" : found.empty() ? "found: nothing" : "found"});
    for (const doctor::CheckResult& result : found) {
      lines.push_back(std::string(doctor::name_of(result.severity)) + ": " + result.check->name);
      for (const std::string& name : labels_of(pool_, result.servers, true)) lines.back() += ' ' + name;
    }
    return lines;
  }

  void show() {
    const ScreenSize size = screen_size();
    std::vector<std::string> lines{title_};
    if (order_ != 0) lines[0] += std::string(", by ") + orders[order_].title;
    if (edits_ || !filter_.empty()) lines[0] += "  /" + visible(filter_) + (edits_ ? "_" : "");
    lines[0] += paused_ ? "  paused" : "  h: help, q: quit";
    const std::vector<std::string> below =
        helps_ ? std::vector<
                     std::string>{"",
                                  "s  sort by trouble, get/s, set/s, used, rtt in turn",
                                  "/  show servers and keys with this text; Enter ends it, Esc clears it",
                                  "p  pause, and go on",
                                  "h  this help",
                                  "q  quit"}
               : found_lines();
    const std::size_t hot = helps_ ? 0 : hot_lines(hottest_shown + 2).size();
    const std::size_t taken = below.size() + (hot == 0 ? 0 : hot + 2);
    const std::size_t room = size.height > taken + 4 ? size.height - taken - 1 : size.height - 1;
    for (std::string& line : server_lines(arranged(), size.width, room)) lines.push_back(std::move(line));
    const std::size_t used = lines.size() + below.size() + 2;
    if (hot > 0 && used < size.height) {
      lines.insert(lines.end(), {"", "hottest keys, and prefixes*"});
      for (std::string& line : hot_lines(size.height - used)) lines.push_back(std::move(line));
    }
    lines.insert(lines.end(), below.begin(), below.end());
    screen_->show(lines);
  }

  // Returns false if the key ends the command.
  bool on_key(char key) {
    if (edits_) {
      if (key == '\n' || key == '\033') edits_ = false;
      if (key == '\033') filter_.clear();
      if (key == '\x7f' && !filter_.empty()) filter_.pop_back();
      if (key != '\x7f' && static_cast<unsigned char>(key) >= ' ') filter_ += key;
    } else {
      if (key == 'q' || key == 'Q') return false;
      if (key == 's') order_ = (order_ + 1) % orders.size();
      if (key == 'p') paused_ = !paused_;
      if (key == 'h' || key == '?') helps_ = !helps_;
      if (key == '/') edits_ = true, filter_.clear();
    }
    if (!rows_.empty()) show();
    return true;
  }

  // Returns the findings that are worse than a note.
  std::vector<doctor::CheckResult> findings() const {
    if (!seen_) return {};
    auto all = doctor::diagnose(*seen_, [](const doctor::Check&) { return true; });
    std::erase_if(
        all, [](const doctor::CheckResult& result) { return result.severity == doctor::Severity::note; });
    if (all.size() > findings_shown) all.resize(findings_shown);
    return all;
  }

  Session& session_;
  const ServersOptions& options_;
  const Pool& pool_;
  Pause pause_{session_};
  std::optional<Screen> screen_;
  std::vector<std::optional<Sample>> before_;
  std::vector<HotLine> hottest_;
  std::vector<WatchedServer> watched_;  // how the servers were watched for them
  std::optional<doctor::Examination> seen_;
  // The state of the screen, which keys can change.
  std::vector<ServerRow> rows_;
  std::string title_, filter_;
  std::size_t order_ = 0;
  bool edits_ = false, helps_ = false, paused_ = false;
};

}  // namespace

ExitStatus servers_every(Session& session, const ServersOptions& options) {
  if (*options.every < min_interval) throw InvalidInput("--every must be at least 100ms");
  if (options.count == 0) throw InvalidInput("-n must be at least 1");
  Observer observer(session, options);
  ExitStatus status = observer.look(false);
  SteadyTime next = session.clock().steady();
  for (std::uint64_t looks = 0; !options.count || looks < *options.count; ++looks) {
    // After a reading that took longer than an interval, or a stop, a whole interval begins.
    next += *options.every;
    if (const SteadyTime now = session.clock().steady(); next < now) next = now + *options.every;
    if (!observer.wait(next)) break;
    status = observer.look(true);
  }
  return status;
}

}  // namespace mcds
