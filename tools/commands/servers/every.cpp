// mcds servers --every: rates of all servers and of the pool, again and again: one screen on a terminal,
// lines elsewhere.
#include <unistd.h>

#include <array>

#include "common/operations/doctor/checks.hpp"
#include "common/operations/doctor/gather.hpp"
#include "tools/cli/cell_words.hpp"
#include "tools/cli/config.hpp"
#include "tools/cli/text_table.hpp"
#include "tools/commands/item/hot.hpp"
#include "tools/commands/servers/condition.hpp"
#include "tools/commands/servers/rates.hpp"

namespace mcds {

namespace {

constexpr auto shortest_interval = std::chrono::milliseconds(100);
constexpr std::size_t hottest_shown = 5, findings_shown = 5;

// On a terminal, unless the user wants lines there, too.
bool wants_screen(Session& session) {
  const bool chosen = session.options().output || environment("MCDS_OUTPUT") || session.config().output;
  if (isatty(STDOUT_FILENO) == 0 || session.options().quiet) return false;
  return session.output().mode() == OutputMode::text || !chosen;
}

// The hottest keys and prefixes of an interval.
struct HotLine {
  std::string key;  // or a prefix
  bool is_prefix = false;
  std::uint64_t events = 0;
  double per_s = 0;
  std::string server;  // of a key
};

constexpr std::string_view prefix_ends = ":/.|";

std::string_view prefix_of(std::string_view key) {
  const std::size_t end = key.find_first_of(prefix_ends);
  return end == std::string_view::npos ? std::string_view() : key.substr(0, end + 1);
}

// Watches all servers for so long, or until `goes_on` says false; keys first, then prefixes, the hottest
// first. A prefix ends with the first of : / . | in a key. Servers that cannot be watched are left out.
std::vector<HotLine> watch_hottest(Session& session, Duration longest, std::size_t count,
                                   const std::function<bool()>& goes_on) {
  auto reading = LineStreamOptions::of(session.connect_options());
  reading.longest = longest;
  const Pool& pool = session.placement()->pool();
  HotKeys keys, prefixes;
  const SteadyTime began = session.clock().steady();
  watch_keys(
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
  const double seconds = std::chrono::duration<double>(session.clock().steady() - began).count();
  std::vector<HotLine> lines;
  const auto take = [&](const HotKeys& from, bool is_prefix) {
    for (const HotKey& hot : from.hottest(KeyFigure::events, count)) {
      const std::uint64_t events = hot.counts.events();
      lines.push_back({hot.key, is_prefix, events, seconds > 0 ? static_cast<double>(events) / seconds : 0,
                       is_prefix ? std::string() : visible(pool[hot.server].label())});
    }
  };
  take(keys, false);
  take(prefixes, true);
  return lines;
}

// One screen: servers as rows, columns by importance as far as the width goes.

struct ServerRow {
  std::string name;  // never cut
  JsonObject line;   // as `servers --every` has it
};

struct Column {
  const char* title;
  const char* field;
  enum class Form { number, bytes, share, time, used } form;
};

// The most important first.
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
constexpr std::size_t between = 2, indent_below = 4, least_columns = 3;

// 3 or 4 digits and a letter: 950, 12.3k, 1.20M.
std::string short_number(double value, double step) {
  static constexpr std::array letters{"", "k", "M", "G", "T"};
  std::size_t letter = 0;
  for (; value >= step && letter + 1 < letters.size(); ++letter) value /= step;
  const int digits =
      letter == 0   ? (value < 10 && value != static_cast<double>(static_cast<std::uint64_t>(value)) ? 1 : 0)
      : value < 10  ? 2
      : value < 100 ? 1
                    : 0;
  return format_fixed(value, digits) + letters[letter];
}

std::string cell_of(const JsonObject& line, const Column& column) {
  const std::string text = line.text();
  const auto number = [&](const char* field) -> std::optional<double> {
    const auto json = json_field(text, field);
    return json ? parse_double(*json) : std::nullopt;
  };
  const auto value = number(column.field);
  if (!value) return "-";
  switch (column.form) {
    case Column::Form::number: return short_number(*value, 1000);
    case Column::Form::bytes: return short_number(*value, 1024);
    case Column::Form::time:
      return cell_words(column.field, std::to_string(static_cast<std::uint64_t>(*value)), {});
    case Column::Form::share: return format_fixed(*value * 100, 1) + '%';
    case Column::Form::used: break;
  }
  const auto limit = number("limit_bytes");
  return limit && *limit > 0 ? format_fixed(*value / *limit * 100, 0) + '%' : short_number(*value, 1024);
}

std::string right(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, shown_width(text)), ' ') + text;
}

// Why there are no figures.
std::string state_of(const JsonObject& line) {
  const std::string text = line.text();
  const auto error = json_field(text, "error");
  if (error) return (json_field(text, "up") == "false" ? "down: " : "") + json_unquote(*error).value_or("");
  return json_field(text, "restarted") ? "restarted" : "";
}

struct Cells {
  std::vector<std::vector<std::string>> rows;  // of each server, by column
  std::vector<std::size_t> widths;

  explicit Cells(const std::vector<ServerRow>& servers) {
    for (const Column& column : columns_of_the_screen) widths.push_back(shown_width(column.title));
    for (const ServerRow& server : servers) {
      auto& row = rows.emplace_back();
      for (std::size_t i = 0; i < columns_of_the_screen.size(); ++i) {
        row.push_back(cell_of(server.line, columns_of_the_screen[i]));
        // Wide enough for what comes at the next look, so that columns stay where they are.
        widths[i] = std::max({widths[i], shown_width(row.back()), std::size_t{5}});
      }
    }
  }
  // How many columns fit behind so many places.
  std::size_t fitting(std::size_t from, std::size_t width) const {
    std::size_t count = 0;
    for (; count < widths.size() && from + between + widths[count] <= width; ++count)
      from += between + widths[count];
    return count;
  }
};

// The head and a row for each server, no line wider than `width` unless a name is; where a name leaves no
// room for figures, they stand below it. At most `height` lines: the rows that do not fit are counted in the
// last one.
std::vector<std::string> server_lines(const std::vector<ServerRow>& rows, std::size_t width,
                                      std::size_t height) {
  const Cells cells(rows);
  std::size_t names = shown_width("server");
  for (const ServerRow& row : rows) names = std::max(names, shown_width(row.name));
  std::size_t start = names, count = cells.fitting(names, width);
  const bool below = count < least_columns;
  if (below) start = indent_below, count = cells.fitting(indent_below, width);
  const auto figures = [&](auto text_of) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i)
      text += std::string(between, ' ') + right(text_of(i), cells.widths[i]);
    return text;
  };
  const auto padded = [&](const std::string& name) {
    return name + std::string(start - std::min(start, shown_width(name)), ' ');
  };
  std::vector<std::string> lines{padded("server") +
                                 figures([](std::size_t i) { return columns_of_the_screen[i].title; })};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t needed = below ? 2 : 1;
    if (i + 1 < rows.size() && lines.size() + needed + 1 > height) {
      lines.push_back("and " + std::to_string(rows.size() - i) + " more; a taller window shows them");
      break;
    }
    const std::string state = state_of(rows[i].line);
    const std::string rest = state.empty() ? figures([&](std::size_t at) { return cells.rows[i][at]; })
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
    pause_.watch_keys(screen_ ? screen_->keys() : -1);
  }

  // Whether to look again; waits until then, and looks at keys and for faults meanwhile if that is wanted.
  bool wait(SteadyTime next) {
    const auto left = [&] { return std::max<Duration>(next - session_.clock().steady(), Duration::zero()); };
    bool goes_on = true;
    // On a busy machine nothing may be left of the interval: what is watched is half of it at least.
    if (options_.hot) {
      hottest_ = watch_hottest(session_, std::max<Duration>(left(), *options_.every / 2), hottest_shown,
                               [&] { return goes_on = pause_.wait(Duration::zero()); });
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
    return goes_on && pause_.wait(left());
  }

  // The worst that a server is in now.
  ExitStatus look(bool print) {
    std::vector<Condition> conditions = ask_servers(session_.cluster(), {"", "items"}, conditions_);
    const SteadyTime at = session_.clock().steady();
    Rates all;
    std::size_t up = 0;
    std::vector<ServerRow> rows;
    ExitStatus status = status_of(conditions);
    for (std::size_t i = 0; i < pool_.size(); ++i) {
      const Condition& condition = conditions[i];
      std::optional<Sample> now;
      if (condition.up && !condition.refused) now = Sample::of(at, condition.stats[0], condition.stats[1]);
      up += condition.up ? 1 : 0;
      if (condition.refused) status = worse(status, ExitStatus::refused);
      if (print) rows.push_back(row_of(i, condition, now, all));
      before_[i] = now;
    }
    if (print) rows.push_back(row_of_pool(up, all));
    if (print && screen_) show(rows, up);
    if (print && !screen_) print_lines(rows, conditions);
    conditions_ = std::move(conditions);
    return status;
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
    for (const HotLine& hot : hottest_) {
      JsonObject line(hot.is_prefix ? "prefix" : "key", hot.key);
      line.raw("events_per_s", format_fixed(hot.per_s, 1));
      if (!hot.is_prefix) line.bytes("server", hot.server);
      session_.output().detail(line);
    }
    for (const doctor::Symptom& symptom : findings()) {
      JsonObject line("finding", symptom.check->name);
      line.bytes("severity", doctor::name_of(symptom.severity));
      session_.output().detail(line.strings("servers", labels_of(pool_, symptom.servers)));
    }
    session_.output().next_table();
  }

  void show(const std::vector<ServerRow>& rows, std::size_t up) {
    const ScreenSize size = screen_size();
    std::string time = format_time(session_.clock().wall());
    time[10] = ' ';
    std::vector<std::string> below;
    for (const HotLine& hot : hottest_)
      below.push_back(format_fixed(hot.per_s, 0) + "/s  " + visible(hot.key) +
                      (hot.is_prefix ? "*" : "  on " + hot.server));
    if (!hottest_.empty()) below.insert(below.begin(), {"", "hottest keys, and prefixes*"});
    const std::vector<doctor::Symptom> found = findings();
    if (options_.find)
      below.insert(below.end(), {"", !seen_ ? "looking …" : found.empty() ? "found: nothing" : "found"});
    for (const doctor::Symptom& symptom : found) {
      std::string servers;
      for (const std::string& name : labels_of(pool_, symptom.servers, true)) servers += ' ' + name;
      below.push_back(std::string(doctor::name_of(symptom.severity)) + ": " + symptom.check->name + servers);
    }
    std::vector<std::string> lines{time.substr(0, 19) + "Z  " + std::to_string(up) + " of " +
                                   std::to_string(pool_.size()) + " up, every " +
                                   format_duration(*options_.every) + "  (q ends it)"};
    const std::size_t room =
        size.height > below.size() + 4 ? size.height - below.size() - 1 : size.height - 1;
    for (std::string& line : server_lines(rows, size.width, room)) lines.push_back(std::move(line));
    lines.insert(lines.end(), below.begin(), below.end());
    screen_->show(lines);
  }

  // Only what is worse than a note.
  std::vector<doctor::Symptom> findings() const {
    if (!seen_) return {};
    auto all = doctor::diagnose(*seen_, [](const doctor::Check&) { return true; });
    std::erase_if(all,
                  [](const doctor::Symptom& symptom) { return symptom.severity == doctor::Severity::note; });
    if (all.size() > findings_shown) all.resize(findings_shown);
    return all;
  }

  Session& session_;
  const ServersOptions& options_;
  const Pool& pool_;
  Pause pause_{session_.deadline()};
  std::optional<Screen> screen_;
  std::vector<Condition> conditions_;  // at the last look
  std::vector<std::optional<Sample>> before_;
  std::vector<HotLine> hottest_;
  std::optional<doctor::Examination> seen_;
};

}  // namespace

ExitStatus servers_every(Session& session, const ServersOptions& options) {
  if (*options.every < shortest_interval) throw InvalidInput("--every must be at least 100ms");
  if (options.count == 0) throw InvalidInput("-n must be at least 1");
  session.try_always();
  Observer observer(session, options);
  ExitStatus status = observer.look(false);
  SteadyTime next = session.clock().steady();
  for (std::uint64_t looks = 0; !options.count || looks < *options.count; ++looks) {
    // A look that takes longer than an interval is followed by the next whole one.
    next = std::max(next + *options.every, session.clock().steady());
    if (!observer.wait(next)) break;
    status = observer.look(true);
  }
  return status;
}

}  // namespace mcds
