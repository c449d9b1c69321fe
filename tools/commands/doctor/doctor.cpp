// Implements mcds doctor: finds faults of a pool and advises what to do.
#include <unistd.h>

#include "common/base/new_file.hpp"
#include "common/operations/doctor/checks.hpp"
#include "common/operations/doctor/gather.hpp"
#include "tools/cli/metrics.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

namespace {

constexpr auto min_interval_of_doctor = std::chrono::milliseconds(100);

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

constexpr const char* weights_too = ", or weights in its proportion";

using doctor::CheckResult;
using doctor::Severity;

// Returns the text with every `word` replaced.
std::string with(std::string text, const std::string& word, const std::string& value) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + value.size()))
    text.replace(at, word.size(), value);
  return text;
}

// Moves the unit to the end, where it is recognised: `rtt_us_of_the_pool` becomes `rtt_of_the_pool_us`.
std::string unit_last(const std::string& name) {
  const std::size_t at = name.find("_us_");
  return at == std::string::npos ? name : name.substr(0, at) + name.substr(at + 3) + "_us";
}

std::string spaced(std::string name) {
  std::ranges::replace(name, '_', ' ');
  return name;
}

// Formats the evidence as `idle 12s; evicted/s 300`; objects keep their form.
std::string words_of(const JsonObject& evidence) {
  std::string words;
  for (const JsonMember& member : json_members(evidence.text()).value_or(std::vector<JsonMember>())) {
    const auto nested = member.value.starts_with('{') ? json_members(member.value) : std::nullopt;
    std::string value;
    if (nested) {
      for (const JsonMember& one : *nested)
        value += (value.empty() ? "" : ", ") + one.value + " x " + visible(one.name);
    } else {
      value = cell_text(member.name, member.value, {});
    }
    const bool sentence = member.name == "message" || member.name == "error" || member.name == "fault";
    if (member.name == "meanwhile") continue;  // stands in the advice
    words += (words.empty() ? "" : "; ") +
             (sentence ? value : spaced(column_title(unit_last(member.name))) + ' ' + value);
  }
  return words;
}

// Returns what tells apart several findings of one check about one server: a setting, a remark about the
// list, or a fault of a release. Other evidence may change from run to run.
std::string subject_in(std::string_view evidence) {
  for (const char* name : {"setting", "message", "fault"}) {
    if (const auto subject = json_bytes(evidence, name)) return ' ' + *subject;
  }
  return {};
}

// Returns the identity of each server's finding in a line of the answer; the server is empty if there is
// none. Returns nullopt if it is not such a line.
std::optional<std::map<std::string, std::string>> findings_in(std::string_view line) {
  const auto name = json_bytes(line, "finding");
  const auto text = json_field(line, "servers"), coded = json_field(line, "servers_b64");
  const auto servers = json_elements((text ? text : coded).value_or(""));
  if (!name || !servers) return std::nullopt;
  const std::string first = subject_in(json_field(line, "evidence").value_or(""));
  std::map<std::string, std::string> findings;
  if (servers->empty()) findings[""] = *name + first;
  for (const std::string& server : *servers) {
    const std::string word = json_unquote(server).value_or("");
    const std::string label = text ? word : parse_base64(word).value_or(word);
    findings[label] = *name + '@' + label + first;
  }
  const auto others = json_elements(json_field(line, "others").value_or(""));
  for (const std::string& other : others.value_or(std::vector<std::string>())) {
    const std::string label = json_bytes(other, "server").value_or("");
    findings[label] = *name + '@' + label + subject_in(json_field(other, "evidence").value_or(""));
  }
  return findings;
}

// Returns `check@server`, as the configuration names it.
std::string id_of(const CheckResult& result, const std::string& server) {
  return result.check->name + (server.empty() ? "" : '@' + server);
}

// Returns true if all servers of the result have the same evidence.
bool same_for_all(const CheckResult& result) {
  const std::string first = result.evidence.text();
  return std::ranges::all_of(result.others, [&](const JsonObject& other) { return other.text() == first; });
}

std::optional<Severity> severity_named(std::string_view word) {
  for (const Severity severity : {Severity::note, Severity::warning, Severity::problem}) {
    if (word == doctor::name_of(severity)) return severity;
  }
  return std::nullopt;
}

// Returns the text in lines that begin with `indent` blanks, as wide as the terminal but at most 80 columns.
std::string doctor_lines(const std::string& text, std::size_t indent) {
  const std::size_t width = terminal_width();
  return std::string(indent, ' ') +
         wrapped(text, indent, indent, width == 0 ? 80 : std::min<std::size_t>(width, 80)) + '\n';
}

class DoctorReport {
 public:
  DoctorReport(Session& session, const doctor::Examination& seen, std::vector<CheckResult> found,
               std::vector<doctor::Unknown> unknown)
      : session_(session), seen_(seen), found_(std::move(found)), unknown_(std::move(unknown)) {}

  // Turns accepted findings into notes. A finding about several servers is split if only some are accepted.
  void accept(const std::string& accepted) {
    std::set<std::string, std::less<>> ids;
    for (std::string_view word : split(accepted, ',')) {
      if (word = trimmed(word); !word.empty()) ids.emplace(word);
    }
    std::vector<CheckResult> all;
    for (const CheckResult& result : found_) {
      const auto is_accepted = [&](const std::string& server) {
        if (ids.contains(id_of(result, "")) || ids.contains(id_of(result, server))) return true;
        // The configuration may omit the usual port, or use the server's name.
        return std::ranges::any_of(seen_.pool(), [&](const Server& one) {
          return one.address() == server &&
                 ((!one.name.empty() && ids.contains(id_of(result, one.name))) ||
                  (one.port == default_port && ids.contains(id_of(result, one.host))));
        });
      };
      for (CheckResult& part :
           part_of(result, [&](const std::string& server) { return !is_accepted(server); }))
        all.push_back(std::move(part));
      for (CheckResult& part : part_of(result, is_accepted)) {
        part.severity = Severity::note;
        part.accepted = true;
        all.push_back(std::move(part));
      }
    }
    std::ranges::stable_sort(all, std::greater{}, &CheckResult::severity);
    found_ = std::move(all);
  }

  // Removes the findings that the file has, if it exists, and writes all current ones to it. Throws Failure.
  void compare_with(const std::string& file) {
    Known known;
    const bool there = access(file.c_str(), F_OK) == 0;
    const std::string text = there ? file_bytes(file) : std::string();
    for (const std::string_view line : split(text, '\n')) {
      if (line.empty()) continue;
      const auto findings = findings_in(line);
      const auto severity = severity_named(json_bytes(line, "severity").value_or(""));
      if (!findings || !severity)
        throw Failure(ErrorCode::bad_data,
                      "--baseline: " + file + " is not a list of findings of mcds doctor");
      for (const auto& [server, finding] : *findings) {
        const auto [at, is_first] = known.emplace(finding, *severity);
        if (!is_first) at->second = std::max(at->second, *severity);
      }
    }
    NewFile now(file);
    std::vector<CheckResult> news;
    for (const CheckResult& result : found_) {
      const std::string line = line_of(result).text();
      now.write(line + '\n');
      const auto findings = findings_in(line).value();
      const auto is_new = [&](const std::string& server) {
        const auto before = known.find(findings.at(server));
        return before == known.end() || before->second < result.severity;
      };
      for (CheckResult& part : part_of(result, is_new)) news.push_back(std::move(part));
    }
    now.keep();
    found_ = std::move(news);
  }

  // Prints the findings. Returns 2 if there is a problem or a warning.
  ExitStatus print() {
    Output& output = session_.output();
    const ExitStatus status =
        count(Severity::problem) + count(Severity::warning) == 0 ? ExitStatus::ok : ExitStatus::problem;
    if (session_.options().quiet) return status;
    if (output.mode() == OutputMode::openmetrics) output.raw(metrics());
    if (output.mode() == OutputMode::text) output.raw(by_servers());
    for (const CheckResult& result : found_) {
      if (output.mode() == OutputMode::json) output.answer(line_of(result), {});
      if (output.mode() != OutputMode::value) continue;
      auto servers = labels_of(seen_.pool(), result.servers);
      if (servers.empty()) servers.emplace_back();
      for (const std::string& server : servers) output.answer({}, id_of(result, server));
    }
    if (output.mode() == OutputMode::text) output.raw(last_paragraph());
    if (output.mode() == OutputMode::json) output.answer(summary(), {});
    return status;
  }

 private:
  using Known = std::map<std::string, Severity>;

  std::string label(std::size_t server) const { return seen_.pool()[server].address(); }

  // A piece of a check's advice: words, followed by a command.
  struct Advice {
    std::string words, command;
  };
  std::vector<Advice> advice(const CheckResult& result) const {
    constexpr std::array<std::string_view, 6> programs{"mcds ", "printf ",     "openssl ",
                                                       "ss -",  "timedatectl", "--servers-from dns:"};
    std::string text = result.check->advice;
    if (restarts(text) && must_not_evict(result))
      text +=
          "; it must not evict, and a restart empties it: item keep loads what it held: mcds item keep "
          "--help";
    const std::string evidence = result.evidence.text();
    text = with(text, "INSTEAD", json_bytes(evidence, "meanwhile").value_or(""));
    text = with(text, "WEIGHTS", seen_.ignores_weights ? "" : weights_too);
    const std::string prefix = seen_.live ? seen_.live->divergent_prefix : std::string();
    text = with(text, " --prefix PREFIX", prefix.empty() ? "" : printed_option("--prefix", prefix));
    const auto names =
        json_elements(json_field(evidence, "names").value_or("")).value_or(std::vector<std::string>());
    if (!names.empty()) text = with_structure(text, json_unquote(names.front()).value_or(""));
    std::vector<Advice> pieces;
    for (std::string_view rest = text; !rest.empty();) {
      const std::size_t end = std::min(rest.find("; "), rest.size());
      const std::string_view piece = rest.substr(0, end);
      std::size_t at = piece.size();
      for (const std::string_view program : programs) at = std::min(at, piece.find(program));
      pieces.push_back(
          allowed({std::string(piece.substr(0, at)), command(piece.substr(at), result)}, result));
      rest.remove_prefix(std::min(end + 2, rest.size()));
    }
    return pieces;
  }

  // Replaces a command that the first server would refuse.
  Advice allowed(Advice piece, const CheckResult& result) const {
    if (result.servers.empty()) return piece;
    const std::size_t server = result.servers.front();
    constexpr std::string_view sends = "printf '";
    if (piece.command.starts_with(sends) && credentials_of(seen_.pool()[server]).login) {
      const std::string sent = piece.command.substr(sends.size());
      return {piece.words + "log in there, then send " + sent.substr(0, sent.find('\\')), {}};
    }
    if (piece.command.find(" item hot ") == std::string::npos) return piece;
    if (!seen_.snapshots[server].before.stats.number("pid"))
      return {piece.words + "give a proxy's servers to see their busiest keys (item hot)", {}};
    if (seen_.live && std::ranges::find(seen_.live->unwatched, server) != seen_.live->unwatched.end())
      return {piece.words + "start it without -W to see its busiest keys (item hot)", {}};
    return piece;
  }

  static bool restarts(const std::string& text) {
    return text.starts_with("start it with") || text.starts_with("more memory") ||
           text.starts_with("raise -c");
  }
  bool must_not_evict(const CheckResult& result) const {
    return std::ranges::any_of(result.servers, [&](std::size_t server) {
      return seen_.snapshots[server].before.settings.word("evictions") == "off";
    });
  }

  // Fills in the commands that show the rest of a structure such as `table blocked`, and its key.
  std::string with_structure(std::string text, const std::string& structure) const {
    const std::size_t blank = structure.find(' ');
    const std::string kind = structure.substr(0, blank), name = structure.substr(blank + 1);
    const std::string word = (name.starts_with('-') ? "-- " : "") + shell_word(name);
    const auto seen = std::ranges::find_if(seen_.live->structures, [&](const doctor::StructureSeen& one) {
      return one.structure == "lock" && kind == "lock" && one.name == name && one.copies != session_.copies();
    });
    if (seen != seen_.live->structures.end())
      text = with(text, "mcds lock", "mcds --copies " + std::to_string(seen->copies) + " lock");
    if (text.find("CHECK") == std::string::npos) return with(std::move(text), "NAME", word);
    const bool indexed = kind == "table" || kind == "hash";
    return with(std::move(text), "CHECK",
                kind +
                    (indexed              ? " check "
                     : kind == "eventlog" ? " info "
                                          : " fetch ") +
                    word);
  }

  // Returns the complete command. If an mcds command begins with `-s SERVER`, that is the first server.
  std::string command(std::string_view words, const CheckResult& result) const {
    constexpr std::string_view ours = "mcds ", one = "-s SERVER ", as = "--as PROFILE ";
    if (!words.starts_with(ours)) return with_server(std::string(words), result);
    words.remove_prefix(ours.size());
    if (words.starts_with(as)) {
      const bool by_list = !session_.pool().profile.empty() || session_.pool().routes != nullptr;
      return printed_command(session_, words.substr(as.size()), by_list ? "" : session_.profile_name());
    }
    if (!words.starts_with(one)) return printed_command(session_, words);
    words.remove_prefix(one.size());
    if (result.servers.empty()) return printed_command(session_, words);
    return printed_command_on(session_, seen_.pool()[result.servers.front()], words);
  }

  std::string with_server(std::string words, const CheckResult& result) const {
    if (result.servers.empty()) return words;
    const Server& server = seen_.pool()[result.servers.front()];
    const std::string address = shell_word(server.address()), port = std::to_string(server.port);
    const std::string netcat = server.is_unix() ? "nc -U " + shell_word(server.socket_path)
                               : server.tls     ? "openssl s_client -quiet -connect " + address
                                                : "nc " + shell_word(server.host) + ' ' + port;
    words = with(std::move(words), "NETCAT", netcat);
    words = with(std::move(words), "ss -SOCKETS", server.is_unix() ? "ss -xp" : "ss -tnp sport = :" + port);
    words = with(std::move(words), "dns:", server.tls ? "dns:tls://" : "dns:");
    return with(std::move(words), "SERVER", address);
  }

  std::string advice_line(const CheckResult& result) const {
    std::string line;
    for (const Advice& piece : advice(result))
      line += (line.empty() ? "" : "; ") + piece.words + piece.command;
    return line;
  }

  JsonObject line_of(const CheckResult& result) const {
    JsonObject line =
        JsonObject("finding", result.check->name).bytes("severity", doctor::name_of(result.severity));
    line.strings("servers", labels_of(seen_.pool(), result.servers)).object("evidence", result.evidence);
    if (!same_for_all(result)) {
      std::vector<JsonObject> others;
      for (std::size_t i = 0; i < result.others.size(); ++i)
        others.push_back(
            JsonObject("server", label(result.servers[i + 1])).object("evidence", result.others[i]));
      line.objects("others", others);
    }
    if (result.accepted) line.boolean("accepted", true);
    if (is_of_profile(result)) line.bytes("judged_as", seen_.placement->profile());
    return line.bytes("message", result.check->sentence).bytes("advice", advice_line(result));
  }

  // Returns true if another profile could lead to another finding.
  static bool is_of_profile(const CheckResult& result) {
    const std::string_view name = result.check->name;
    return std::string_view(result.check->about) == "placement" || name == "load_uneven" ||
           name == "weights_against_memory";
  }

  JsonObject summary() const {
    JsonObject line;
    const std::uint64_t problems = count(Severity::problem), warnings = count(Severity::warning);
    line.boolean("ok", problems + warnings == 0).number("problems", problems).number("warnings", warnings);
    line.number("notes", count(Severity::note)).number("servers", seen_.size());
    line.raw("for_s", format_fixed(std::chrono::duration<double>(seen_.interval).count(), 1));
    unsigned trips = 0;
    for (const doctor::ServerSnapshot& snapshot : seen_.snapshots) trips = std::max(trips, snapshot.trips);
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

  // Returns the servers of a finding in the order of the list, or the whole pool if it names none.
  std::string heading(const CheckResult& result) const {
    constexpr std::size_t shown = 8;
    std::vector<std::size_t> servers = result.servers;
    std::ranges::sort(servers);
    const auto names = labels_of(seen_.pool(), servers, true);
    if (names.empty() || (names.size() > 1 && names.size() == seen_.size())) return "the whole pool";
    std::string text;
    for (std::size_t i = 0; i < names.size() && i < shown; ++i) text += (i == 0 ? "" : ", ") + names[i];
    return names.size() > shown ? text + " and " + std::to_string(names.size() - shown) + " more" : text;
  }

  // Returns the findings for people: the servers with the worst findings first, each with its findings.
  std::string by_servers() const {
    std::vector<std::pair<std::string, std::string>> groups;
    for (const CheckResult& result : found_) {
      const std::string name = heading(result);
      const auto group = std::ranges::find(groups, name, &std::pair<std::string, std::string>::first);
      auto& text = group == groups.end() ? groups.emplace_back(name, "").second : group->second;
      text += paragraph(result);
    }
    std::string text;
    for (const auto& [name, findings] : groups) text += doctor_lines(name, 0) + findings + '\n';
    return text;
  }

  std::string paragraph(const CheckResult& result) const {
    const std::string severity = doctor::name_of(result.severity);
    const char* const colour = result.severity == Severity::problem ? "31" : "33";
    const bool painted = result.severity != Severity::note && terminal_has_colours();
    std::string text =
        "  " + (painted ? std::string("\033[") + colour + 'm' + severity + "\033[0m" : severity);
    text += ": " + std::string(result.check->name) + (result.accepted ? " (accepted)\n" : "\n");
    text += doctor_lines(result.check->sentence, 4);
    std::string evidence = words_of(result.evidence);
    if (!same_for_all(result) && !evidence.empty())
      evidence = label(result.servers.front()) + ": " + evidence;
    if (!evidence.empty()) text += doctor_lines('(' + evidence + ')', 4);
    // A command stands on a line of its own, unbroken, so that it can be copied.
    for (const Advice& piece : advice(result)) {
      if (!piece.words.empty()) text += doctor_lines("-> " + std::string(trimmed(piece.words)), 4);
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
    const CheckResult& first = found_.front();
    std::string words(trimmed(advice(first).front().words));
    if (words.ends_with(':')) words.pop_back();
    return lines + doctor_lines("Begin with " + std::string(first.check->name) + " on " + heading(first) +
                                    ": " + (words.empty() ? "the command stands with it" : words) + '.',
                                0);
  }

  std::string metrics() const {
    Metrics metrics;
    for (const CheckResult& result : found_) {
      auto servers = labels_of(seen_.pool(), result.servers);
      if (servers.empty()) servers.emplace_back();
      for (const std::string& server : servers) {
        metrics.add("mcds_doctor_finding", "1 for each finding of mcds doctor.",
                    {{"finding", result.check->name},
                     {"severity", doctor::name_of(result.severity)},
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
    return static_cast<std::uint64_t>(std::ranges::count(found_, severity, &CheckResult::severity));
  }

  // Returns the part of `result` for the servers that `leaves` accepts, with their evidence; may be
  // empty.
  template <typename Leaves>
  std::vector<CheckResult> part_of(const CheckResult& result, const Leaves& leaves) const {
    if (result.servers.empty())
      return leaves(std::string()) ? std::vector{result} : std::vector<CheckResult>();
    CheckResult part = result;
    part.servers.clear(), part.others.clear();
    for (std::size_t i = 0; i < result.servers.size(); ++i) {
      if (!leaves(label(result.servers[i]))) continue;
      const bool each = !result.others.empty() && i > 0;
      if (each && part.servers.empty()) part.evidence = result.others[i - 1];
      if (each && !part.servers.empty()) part.others.push_back(result.others[i - 1]);
      part.servers.push_back(result.servers[i]);
    }
    return part.servers.empty() ? std::vector<CheckResult>() : std::vector{part};
  }

  Session& session_;
  const doctor::Examination& seen_;
  std::vector<CheckResult> found_;
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
                                        {"WEIGHTS", weights_too},
                                        {"CHECK", "table check NAME"},
                                        {"INSTEAD", "as the finding says"}})
      advice = with(advice, word, meaning);
    session.output().answer(line.bytes("advice", advice), check.name);
  }
  return ExitStatus::ok;
}

ExitStatus run_doctor(Session& session, const DoctorOptions& options) {
  if (options.checks) return print_checks(session);
  if (options.interval < min_interval_of_doctor) throw InvalidInput("--for must be at least 100ms");
  if (session.clock().steady() + options.interval > session.deadline())
    throw InvalidInput("--for must be shorter than --deadline");
  const auto only = names_in(options.only, "--only"), skip = names_in(options.skip, "--skip");
  const auto wanted = [&](const doctor::Check& check) {
    return (only.empty() || only.contains(check.name)) && !skip.contains(check.name);
  };
  static_cast<void>(session.config());  // reports a mistake in it before the servers are queried
  PlacementOptions placing = session.placement_options();
  placing.any_pool = true;
  const Pool& listed = session.pool().pool;
  const auto placement = make_placement(session.profile_name(), listed, placing);
  session.try_always();
  Countdown countdown(session, options.interval, Pause::Signals::end_program);
  doctor::Examination seen = doctor::gather(placement, listed, session.clock(),
                                            {.connecting = session.connect_options(),
                                             .placing = placing,
                                             .interval = options.interval,
                                             .connections = options.connections,
                                             .wait = [&](Duration left) { return countdown.wait(left); }});
  if (options.live) {
    // Keys are compared in many trips, and a silent server must not delay each of them.
    session.skip_unhealthy();
    Progress progress(session.clock(), "keys");
    seen.live = doctor::read_keys(*session.connect_to(placement), session.clock(),
                                  {.reading = LiveKeysOptions::of(session.connect_options()),
                                   .placing = placing,
                                   .key_prefix = session.key_prefix(),
                                   .listed = [&] { progress.advance(); }});
  }
  DoctorReport report(session, seen, doctor::diagnose(seen, wanted), doctor::unknowns(seen, wanted));
  report.accept(session.config().text("doctor", "accept").value_or(""));
  if (options.baseline) report.compare_with(*options.baseline);
  return report.print();
}

}  // namespace

void declare_doctor(Command& command) {
  command.exits(
      "2 there are problems or warnings|65 --baseline: the file is something else|66 --baseline: the file "
      "cannot be read|73 --baseline: the file cannot be written|78");
  const auto options = std::make_shared<DoctorOptions>();
  command.itself()
      .answer("finding severity servers evidence others? accepted? judged_as? message advice")
      .answer("ok problems warnings notes servers:integer for_s trips unknown")
      .answer("check severity about:string needs message advice")
      .field("severity string problem, warning or note; of a check, its worst")
      .field("message string what it means")
      .field("ok boolean whether there is neither a problem nor a warning")
      .field(
          "unknown {lacks servers checks}[] checks that could not be made, the servers, and the request that "
          "they do not answer")
      .example("mcds doctor -o text")
      .example("mcds doctor --for 1s --live -o text")
      .example("mcds doctor --for 2s --only down,connections_full,evicts_young")
      .example("mcds doctor --for 1s --baseline doctor.last")
      .option("--for", "D", "time between the two reads of the statistics; default 10s, at least 100ms",
              &options->interval)
      .flag("--live",
            "also list up to 20,000 keys of every server, and check the structures among them and where keys "
            "of the namespace are",
            options->live)
      .flag("--connections",
            "also count connections that were idle for an hour, which costs the more the more there are",
            options->connections)
      .option("--only", "CHECK,...", "only these checks", &options->only)
      .option("--skip", "CHECK,...", "all checks but these", &options->skip)
      .option("--baseline", "FILE",
              "print only what is new or worse since the run that wrote FILE, and write all findings to it",
              &options->baseline)
      .flag("--checks", "print all checks, one line each, without contacting a server", options->checks)
      .metrics()
      .action(run_doctor, options);
}

}  // namespace mcds
