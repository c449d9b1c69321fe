// mcds doctor: what is wrong with a pool, and what to do about it.
#include <unistd.h>

#include <map>
#include <set>

#include "common/base/new_file.hpp"
#include "common/operations/doctor/checks.hpp"
#include "common/operations/doctor/gather.hpp"
#include "tools/cli/cell_words.hpp"
#include "tools/cli/config.hpp"
#include "tools/cli/metrics.hpp"
#include "tools/cli/printed_command.hpp"
#include "tools/cli/progress.hpp"
#include "tools/cli/text_table.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

namespace {

constexpr auto shortest_interval_of_doctor = std::chrono::milliseconds(100);

struct DoctorOptions {
  Duration interval = std::chrono::seconds(10);
  std::optional<std::string> only, skip, baseline;
  bool live = false, connections = false, checks = false;
};

std::set<std::string, std::less<>> names_in(const std::optional<std::string>& list, const char* option) {
  std::set<std::string, std::less<>> names;
  if (!list) return names;
  for (const std::string_view word : split(*list, ',')) {
    if (const std::string wrong = doctor::no_check(word); !wrong.empty())
      throw InvalidInput(std::string(option) + ": " + wrong);
    names.emplace(word);
  }
  return names;
}

using doctor::Severity;
using doctor::Symptom;

// `word` wherever it stands in `text`, replaced.
std::string with(std::string text, const std::string& word, const std::string& value) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + value.size()))
    text.replace(at, word.size(), value);
  return text;
}

// `rtt_of_the_pool_us` of `rtt_us_of_the_pool`: with its unit at the end, by which it is read.
std::string unit_last(const std::string& name) {
  const std::size_t at = name.find("_us_");
  return at == std::string::npos ? name : name.substr(0, at) + name.substr(at + 3) + "_us";
}

// Without blanks at its end.
std::string trimmed(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::string spaced(std::string name) {
  std::ranges::replace(name, '_', ' ');
  return name;
}

// `idle 12s; evicted/s 300`, objects as they are.
std::string words_of(const JsonObject& evidence) {
  std::string words;
  for (const JsonMember& member : json_members(evidence.text()).value_or(std::vector<JsonMember>())) {
    const auto nested = member.value.starts_with('{') ? json_members(member.value) : std::nullopt;
    std::string value;
    if (nested) {
      for (const JsonMember& one : *nested)
        value += (value.empty() ? "" : ", ") + one.value + " x " + visible(one.name);
    } else {
      value = cell_words(member.name, member.value, {});
    }
    const bool sentence = member.name == "message" || member.name == "error" || member.name == "fault";
    if (member.name == "meanwhile") continue;  // stands in the advice
    words += (words.empty() ? "" : "; ") +
             (sentence ? value : spaced(column_title(unit_last(member.name))) + ' ' + value);
  }
  return words;
}

// `check@server`, as the configuration and --baseline name it.
std::string id_of(const Symptom& symptom, const std::string& server) {
  return symptom.check->name + (server.empty() ? "" : '@' + server);
}

// What was found of the first holds for the others too.
bool same_for_all(const Symptom& symptom) {
  const std::string first = symptom.evidence.text();
  return std::ranges::all_of(symptom.others, [&](const JsonObject& other) { return other.text() == first; });
}

std::optional<Severity> severity_named(std::string_view word) {
  for (const Severity severity : {Severity::note, Severity::warning, Severity::problem}) {
    if (word == doctor::name_of(severity)) return severity;
  }
  return std::nullopt;
}

// Text in lines of at most 80 columns that begin with `indent` blanks.
std::string doctor_lines(const std::string& text, std::size_t indent) {
  return std::string(indent, ' ') + wrapped(text, indent, indent) + '\n';
}

class DoctorReport {
 public:
  DoctorReport(Session& session, const doctor::Examination& seen, std::vector<Symptom> found,
               std::vector<doctor::Unknown> unknown)
      : session_(session), seen_(seen), found_(std::move(found)), unknown_(std::move(unknown)) {}

  // What the configuration accepts is a note: of a finding of several servers those that it names.
  void accept(const std::string& accepted) {
    std::set<std::string, std::less<>> ids;
    for (std::string_view word : split(accepted, ',')) {
      while (word.starts_with(' ')) word.remove_prefix(1);
      while (word.ends_with(' ')) word.remove_suffix(1);
      if (!word.empty()) ids.emplace(word);
    }
    std::vector<Symptom> all;
    for (const Symptom& symptom : found_) {
      const auto is_accepted = [&](const std::string& server) {
        if (ids.contains(id_of(symptom, "")) || ids.contains(id_of(symptom, server))) return true;
        // As the list has it: without the usual port, or by its name.
        return std::ranges::any_of(seen_.pool(), [&](const Server& one) {
          return one.address() == server &&
                 ((!one.name.empty() && ids.contains(id_of(symptom, one.name))) ||
                  (one.port == default_port && ids.contains(id_of(symptom, one.host))));
        });
      };
      for (Symptom& part : part_of(symptom, [&](const std::string& server) { return !is_accepted(server); }))
        all.push_back(std::move(part));
      for (Symptom& part : part_of(symptom, is_accepted)) {
        part.severity = Severity::note;
        part.accepted = true;
        all.push_back(std::move(part));
      }
    }
    std::ranges::stable_sort(all, std::greater{}, &Symptom::severity);
    found_ = std::move(all);
  }

  // Leaves what is not in this file, and writes all into it; a file that is not there yet has nothing in it.
  // Throws Failure.
  void compare_with(const std::string& file) {
    Known known;
    const bool there = access(file.c_str(), F_OK) == 0;
    const std::string text = there ? file_bytes(file) : std::string();
    for (const std::string_view line : split(text, '\n')) {
      if (line.empty()) continue;
      const auto name = json_bytes(line, "finding");
      const auto severity = severity_named(json_bytes(line, "severity").value_or(""));
      const auto servers = json_elements(json_field(line, "servers").value_or(""));
      if (!name || !severity || !servers)
        throw Failure(ErrorCode::bad_data,
                      "--baseline: " + file + " is not a list of findings of mcds doctor");
      if (servers->empty()) known[*name] = *severity;
      for (const std::string& server : *servers)
        known[*name + '@' + json_unquote(server).value_or("")] = *severity;
    }
    NewFile now(file);
    std::vector<Symptom> news;
    for (const Symptom& symptom : found_) {
      now.write(line_of(symptom).text() + '\n');
      const auto is_new = [&](const std::string& server) {
        const auto before = known.find(id_of(symptom, server));
        return before == known.end() || before->second < symptom.severity;
      };
      for (Symptom& part : part_of(symptom, is_new)) news.push_back(std::move(part));
    }
    now.keep();
    found_ = std::move(news);
  }

  // Prints it; 2 with a problem or a warning.
  ExitStatus print() {
    Output& output = session_.output();
    const ExitStatus status =
        count(Severity::problem) + count(Severity::warning) == 0 ? ExitStatus::ok : ExitStatus::problem;
    if (session_.options().quiet) return status;
    if (output.mode() == OutputMode::openmetrics) output.raw(metrics());
    if (output.mode() == OutputMode::text) output.raw(by_servers());
    for (const Symptom& symptom : found_) {
      if (output.mode() == OutputMode::json) output.answer(line_of(symptom), {});
      if (output.mode() != OutputMode::value) continue;
      auto servers = labels_of(seen_.pool(), symptom.servers);
      if (servers.empty()) servers.emplace_back();
      for (const std::string& server : servers) output.answer({}, id_of(symptom, server));
    }
    if (output.mode() == OutputMode::text) output.raw(last_paragraph());
    if (output.mode() == OutputMode::json) output.answer(summary(), {});
    return status;
  }

 private:
  using Known = std::map<std::string, Severity>;

  std::string label(std::size_t server) const { return seen_.pool()[server].address(); }

  // What the check advises, in pieces: words, and a command behind them.
  struct Advice {
    std::string words, command;
  };
  std::vector<Advice> advice(const Symptom& symptom) const {
    constexpr std::array<std::string_view, 5> programs{"mcds ", "printf ", "openssl ", "ss -", "timedatectl"};
    std::string text = symptom.check->advice;
    if (restarts(text) && must_not_evict(symptom))
      text +=
          "; it must not evict, and a restart empties it: item keep loads what it held: mcds item keep "
          "--help";
    const std::string evidence = symptom.evidence.text();
    text = with(text, "INSTEAD", json_bytes(evidence, "meanwhile").value_or(""));
    const std::string prefix = seen_.live ? seen_.live->divergent_prefix : std::string();
    text = with(text, " --prefix PREFIX", prefix.empty() ? "" : " --prefix " + shell_word(prefix));
    const auto names =
        json_elements(json_field(evidence, "names").value_or("")).value_or(std::vector<std::string>());
    if (!names.empty()) text = with_structure(text, json_unquote(names.front()).value_or(""));
    std::vector<Advice> pieces;
    for (std::string_view rest = text; !rest.empty();) {
      const std::size_t end = std::min(rest.find("; "), rest.size());
      const std::string_view piece = rest.substr(0, end);
      std::size_t at = piece.size();
      for (const std::string_view program : programs) at = std::min(at, piece.find(program));
      pieces.push_back({std::string(piece.substr(0, at)), command(piece.substr(at), symptom)});
      rest.remove_prefix(std::min(end + 2, rest.size()));
    }
    return pieces;
  }

  static bool restarts(const std::string& text) {
    return text.starts_with("start it with") || text.starts_with("more memory") ||
           text.starts_with("raise -c");
  }
  bool must_not_evict(const Symptom& symptom) const {
    return std::ranges::any_of(symptom.servers, [&](std::size_t server) {
      return seen_.patients[server].first.settings.word("evictions") == "off";
    });
  }

  // The commands that show what is left of a structure, `table blocked`, and what holds it.
  static std::string with_structure(std::string text, const std::string& structure) {
    const std::size_t blank = structure.find(' ');
    const std::string kind = structure.substr(0, blank), name = structure.substr(blank + 1);
    const std::string word = (name.starts_with('-') ? "-- " : "") + shell_word(name);
    if (text.find("CHECK") == std::string::npos) return with(std::move(text), "NAME", word);
    const bool indexed = kind == "table" || kind == "hash";
    return with(std::move(text), "CHECK",
                kind +
                    (indexed              ? " check "
                     : kind == "eventlog" ? " info "
                                          : " fetch ") +
                    word);
  }

  // Ours, to the finding's first server if it begins with `-s SERVER`; or another program's.
  std::string command(std::string_view words, const Symptom& symptom) const {
    constexpr std::string_view ours = "mcds ", one = "-s SERVER ", as = "--as PROFILE ";
    if (!words.starts_with(ours)) return with_server(std::string(words), symptom);
    words.remove_prefix(ours.size());
    if (words.starts_with(as)) {
      const bool by_list = !session_.pool().profile.empty() || session_.pool().routes != nullptr;
      return printed_command(session_, words.substr(as.size()), by_list ? "" : session_.profile_name());
    }
    if (!words.starts_with(one)) return printed_command(session_, words);
    words.remove_prefix(one.size());
    if (symptom.servers.empty()) return printed_command(session_, words);
    return printed_command_on(session_, seen_.pool()[symptom.servers.front()], words);
  }

  std::string with_server(std::string words, const Symptom& symptom) const {
    if (symptom.servers.empty()) return words;
    const Server& server = seen_.pool()[symptom.servers.front()];
    const std::string address = shell_word(server.address()), port = std::to_string(server.port);
    const std::string netcat = server.is_unix() ? "nc -U " + shell_word(server.socket_path)
                               : server.tls     ? "openssl s_client -quiet -connect " + address
                                                : "nc " + shell_word(server.host) + ' ' + port;
    words = with(std::move(words), "NETCAT", netcat);
    words = with(std::move(words), "ss -SOCKETS", server.is_unix() ? "ss -xp" : "ss -tnp sport = :" + port);
    return with(std::move(words), "SERVER", address);
  }

  std::string advice_line(const Symptom& symptom) const {
    std::string line;
    for (const Advice& piece : advice(symptom))
      line += (line.empty() ? "" : "; ") + piece.words + piece.command;
    return line;
  }

  JsonObject line_of(const Symptom& symptom) const {
    JsonObject line =
        JsonObject("finding", symptom.check->name).bytes("severity", doctor::name_of(symptom.severity));
    line.strings("servers", labels_of(seen_.pool(), symptom.servers)).object("evidence", symptom.evidence);
    if (!same_for_all(symptom)) {
      std::vector<JsonObject> others;
      for (std::size_t i = 0; i < symptom.others.size(); ++i)
        others.push_back(
            JsonObject("server", label(symptom.servers[i + 1])).object("evidence", symptom.others[i]));
      line.objects("others", others);
    }
    if (symptom.accepted) line.boolean("accepted", true);
    if (is_of_profile(symptom)) line.bytes("judged_as", seen_.placement->profile());
    return line.bytes("message", symptom.check->sentence).bytes("advice", advice_line(symptom));
  }

  // Another profile would find something else.
  static bool is_of_profile(const Symptom& symptom) {
    const std::string_view name = symptom.check->name;
    return std::string_view(symptom.check->about) == "placement" || name == "load_uneven" ||
           name == "weights_against_memory";
  }

  JsonObject summary() const {
    JsonObject line;
    const std::uint64_t problems = count(Severity::problem), warnings = count(Severity::warning);
    line.boolean("ok", problems + warnings == 0).number("problems", problems).number("warnings", warnings);
    line.number("notes", count(Severity::note)).number("servers", seen_.size());
    line.raw("for_s", format_fixed(std::chrono::duration<double>(seen_.interval).count(), 1));
    unsigned trips = 0;
    for (const doctor::Patient& patient : seen_.patients) trips = std::max(trips, patient.trips);
    line.number("trips", trips);
    std::vector<JsonObject> unknown;
    for (const doctor::Unknown& one : unknown_) {
      const auto servers = labels_of(seen_.pool(), one.servers);
      unknown.push_back(JsonObject("lacks", doctor::name_of(one.lacks))
                            .strings("servers", servers)
                            .strings("checks", one.checks));
    }
    return line.objects("unknown", unknown);
  }

  // The servers that a finding is about, in the order of the list; the pool as a whole if it names none.
  std::string heading(const Symptom& symptom) const {
    constexpr std::size_t shown = 8;
    std::vector<std::size_t> servers = symptom.servers;
    std::ranges::sort(servers);
    const auto names = labels_of(seen_.pool(), servers, true);
    if (names.empty() || (names.size() > 1 && names.size() == seen_.size())) return "the whole pool";
    std::string text;
    for (std::size_t i = 0; i < names.size() && i < shown; ++i) text += (i == 0 ? "" : ", ") + names[i];
    return names.size() > shown ? text + " and " + std::to_string(names.size() - shown) + " more" : text;
  }

  // For people: the servers with the worst findings first, and below them all that was found there.
  std::string by_servers() const {
    std::vector<std::pair<std::string, std::string>> groups;
    for (const Symptom& symptom : found_) {
      const std::string name = heading(symptom);
      const auto group = std::ranges::find(groups, name, &std::pair<std::string, std::string>::first);
      auto& text = group == groups.end() ? groups.emplace_back(name, "").second : group->second;
      text += paragraph(symptom);
    }
    std::string text;
    for (const auto& [name, findings] : groups) text += doctor_lines(name, 0) + findings + '\n';
    return text;
  }

  std::string paragraph(const Symptom& symptom) const {
    const std::string severity = doctor::name_of(symptom.severity);
    const char* const colour = symptom.severity == Severity::problem ? "31" : "33";
    const bool painted = symptom.severity != Severity::note && terminal_has_colours();
    std::string text =
        "  " + (painted ? std::string("\033[") + colour + 'm' + severity + "\033[0m" : severity);
    text += ": " + std::string(symptom.check->name) + (symptom.accepted ? " (accepted)\n" : "\n");
    text += doctor_lines(symptom.check->sentence, 4);
    std::string evidence = words_of(symptom.evidence);
    if (!same_for_all(symptom) && !evidence.empty())
      evidence = label(symptom.servers.front()) + ": " + evidence;
    if (!evidence.empty()) text += doctor_lines('(' + evidence + ')', 4);
    // A command stands on a line of its own, whole: it is copied.
    for (const Advice& piece : advice(symptom)) {
      if (!piece.words.empty()) text += doctor_lines("-> " + trimmed(piece.words), 4);
      if (!piece.command.empty())
        text += (piece.words.empty() ? "    -> " : "       ") + piece.command + '\n';
    }
    return text;
  }

  std::string last_paragraph() const {
    const auto times = [](std::uint64_t count, const char* what) {
      return std::to_string(count) + ' ' + what + (count == 1 ? "" : "s");
    };
    std::string text = times(count(Severity::problem), "problem") + ", " +
                       times(count(Severity::warning), "warning") + ", " +
                       times(count(Severity::note), "note") + " on " + times(seen_.size(), "server") + '.';
    std::string lines;
    for (const doctor::Unknown& one : unknown_) {
      const std::string names = joined(labels_of(seen_.pool(), one.servers, true), ", ");
      lines += doctor_lines("Unknown: " + names + " without `" + doctor::name_of(one.lacks) +
                                "`: " + std::to_string(one.checks.size()) + " checks were not made there.",
                            0);
    }
    lines += doctor_lines(text, 0);
    if (found_.empty() || found_.front().severity == Severity::note) return lines;
    const Symptom& first = found_.front();
    std::string words = trimmed(advice(first).front().words);
    if (words.ends_with(':')) words.pop_back();
    return lines + doctor_lines("Begin with " + std::string(first.check->name) + " on " + heading(first) +
                                    ": " + (words.empty() ? "the command stands with it" : words) + '.',
                                0);
  }

  std::string metrics() const {
    Metrics metrics;
    for (const Symptom& symptom : found_) {
      auto servers = labels_of(seen_.pool(), symptom.servers);
      if (servers.empty()) servers.emplace_back();
      for (const std::string& server : servers) {
        metrics.add("mcds_doctor_finding", "1 for each finding of mcds doctor.",
                    {{"finding", symptom.check->name},
                     {"severity", doctor::name_of(symptom.severity)},
                     {"server", server}},
                    "1");
      }
    }
    for (const Severity severity : {Severity::problem, Severity::warning, Severity::note})
      metrics.add("mcds_doctor_findings", "Findings of mcds doctor by severity.",
                  {{"severity", doctor::name_of(severity)}}, std::to_string(count(severity)));
    metrics.add("mcds_doctor_servers", "Servers that mcds doctor looked at.", {},
                std::to_string(seen_.size()));
    return metrics.text();
  }

  std::uint64_t count(Severity severity) const {
    return static_cast<std::uint64_t>(std::ranges::count(found_, severity, &Symptom::severity));
  }

  // The servers of `symptom` for which `leaves` holds, and what was found of them; nothing: none.
  template <typename Leaves>
  std::vector<Symptom> part_of(const Symptom& symptom, const Leaves& leaves) const {
    if (symptom.servers.empty()) return leaves(std::string()) ? std::vector{symptom} : std::vector<Symptom>();
    Symptom part = symptom;
    part.servers.clear(), part.others.clear();
    for (std::size_t i = 0; i < symptom.servers.size(); ++i) {
      if (!leaves(label(symptom.servers[i]))) continue;
      const bool each = !symptom.others.empty() && i > 0;
      if (each && part.servers.empty()) part.evidence = symptom.others[i - 1];
      if (each && !part.servers.empty()) part.others.push_back(symptom.others[i - 1]);
      part.servers.push_back(symptom.servers[i]);
    }
    return part.servers.empty() ? std::vector<Symptom>() : std::vector{part};
  }

  Session& session_;
  const doctor::Examination& seen_;
  std::vector<Symptom> found_;
  std::vector<doctor::Unknown> unknown_;
};

ExitStatus print_checks(Session& session) {
  for (const doctor::Check& check : doctor::all_checks()) {
    JsonObject line = JsonObject("check", check.name)
                          .bytes("severity", doctor::name_of(check.severity))
                          .bytes("about", check.about);
    line.bytes("needs", doctor::name_of(check.needs)).bytes("message", check.sentence);
    std::string advice = check.advice;
    for (const auto& [word, meaning] : {std::pair{"NETCAT", "nc HOST PORT"},
                                        {"ss -SOCKETS", "ss -tnp sport = :PORT"},
                                        {"CHECK", "table check NAME"},
                                        {"INSTEAD", "as the finding says"}})
      advice = with(advice, word, meaning);
    session.output().answer(line.bytes("advice", advice), check.name);
  }
  return ExitStatus::ok;
}

ExitStatus run_doctor(Session& session, const DoctorOptions& options) {
  if (options.checks) return print_checks(session);
  if (options.interval < shortest_interval_of_doctor) throw InvalidInput("--for must be at least 100ms");
  if (session.clock().steady() + options.interval > session.deadline())
    throw InvalidInput("--for must be shorter than --deadline");
  const auto only = names_in(options.only, "--only"), skip = names_in(options.skip, "--skip");
  const auto wanted = [&](const doctor::Check& check) {
    return (only.empty() || only.contains(check.name)) && !skip.contains(check.name);
  };
  static_cast<void>(session.config());  // a mistake in it shows before the looks
  PlacementOptions placing = session.placement_options();
  placing.any_pool = true;
  const Pool& listed = session.pool().pool;
  const auto placement = make_placement(session.profile_name(), listed, placing);
  session.try_always();
  Pause pause;
  Countdown countdown(session.clock(), options.interval);
  const auto wait = [&](Duration left) { return pause.wait(left); };
  doctor::Examination seen =
      doctor::gather(placement, listed, session.clock(),
                     {.connecting = session.connect_options(),
                      .placing = placing,
                      .interval = options.interval,
                      .connections = options.connections,
                      .wait = [&](Duration left) { return countdown.wait(left, wait); }});
  if (options.live)
    seen.live = doctor::look_at_keys(*session.connect_to(placement), session.clock(),
                                     {.reading = LiveKeysOptions::of(session.connect_options()),
                                      .placing = placing,
                                      .key_prefix = session.key_prefix()});
  DoctorReport report(session, seen, doctor::diagnose(seen, wanted), doctor::unknowns(seen, wanted));
  report.accept(session.config().doctor_accept.value_or(""));
  if (options.baseline) report.compare_with(*options.baseline);
  return report.print();
}

}  // namespace

void declare_doctor(Command& command) {
  command.exits("2 there are problems or warnings|65|66|73|78");
  const auto options = std::make_shared<DoctorOptions>();
  command.itself()
      .answer("finding severity servers evidence others? accepted? judged_as? message advice")
      .answer("ok problems warnings notes servers:integer for_s trips unknown")
      .answer("check severity about:string needs message advice")
      .field("unknown {lacks servers checks}[] checks that could not be made, and why")
      .example("mcds doctor -o text")
      .example("mcds doctor --for 1s --live -o text")
      .example("mcds doctor --for 2s --only down,connections_full,evicts_young")
      .example("mcds doctor --for 1s --baseline doctor.last")
      .option("--for", "D", "the time between the two looks; default 10s", &options->interval)
      .flag("--live", "also list a part of the keys: misplaced ones, and structures", options->live)
      .flag("--connections", "also look for idle connections, which costs with their number",
            options->connections)
      .option("--only", "CHECK,...", "only these checks", &options->only)
      .option("--skip", "CHECK,...", "all checks but these", &options->skip)
      .option("--baseline", "FILE", "print what is new since the run that wrote FILE, and write it anew",
              &options->baseline)
      .flag("--checks", "print what is looked for, and ask no server", options->checks)
      .metrics()
      .action(run_doctor, options);
}

}  // namespace mcds
