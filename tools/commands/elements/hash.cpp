// Implements mcds hash: parsing and printing. The algorithm is in common/structures/elements/hash.hpp.
#include "common/structures/elements/hash.hpp"

#include "common/structures/elements/hash_watch.hpp"
#include "tools/commands/elements/command.hpp"
#include "tools/commands/run_report.hpp"

namespace mcds {

namespace {

// Parses a line FIELD<TAB>VALUE.
Element of_tab_line(const std::string& line) {
  const auto tab = line.find('\t');
  if (tab == std::string::npos)
    throw Failure(ErrorCode::bad_data,
                  "no tab between field and value; write FIELD<TAB>VALUE, or use --json");
  return checked({line.substr(0, tab), line.substr(tab + 1)});
}

// Returns a member's text. A value that is not a string yields its JSON text.
std::optional<std::string> text_of(const std::string& object, const std::string& name) {
  const auto plain = json_field(object, name);
  return plain && !plain->starts_with('"') ? plain : json_bytes(object, name);
}

// Parses a line as fetch prints it.
Element of_json_line(const std::string& line) {
  auto field = text_of(line, "field");
  auto value = text_of(line, "value");
  if (!field || !value) throw Failure(ErrorCode::bad_data, R"(not of the form {"field":"…","value":"…"})");
  return checked({std::move(*field), std::move(*value)});
}

ExitStatus set(Session& session, const ElementsOptions& options) {
  Hash hash(context_for_setting(session, options), options.name);
  ElementLine line(options);
  auto batch = element_batch(
      session, [&](std::span<const Element> window) { return hash.begin_set(window, options.ttl); },
      [&](const Element& field, const ElementResult& result) {
        answer_setting(session, line.of(field.name).boolean("created", result.yes), options, result);
        return ExitStatus::ok;
      });
  batch.parse = options.json ? of_json_line : of_tab_line;
  if (options.words == std::vector<std::string>{"-"}) return run_words(session, options, batch);
  if (options.json) throw InvalidInput("--json applies to lines of standard input; give - instead of fields");
  if (options.words.size() % 2 != 0)
    throw InvalidInput("each field needs a value; give FIELD VALUE …, or - for standard input");
  std::vector<Element> fields;
  for (std::size_t i = 0; i < options.words.size(); i += 2) {
    if (options.words[i] == "-")
      throw InvalidInput("a field of - is standard input; give @FILE with a file that contains -");
    fields.push_back(checked({value_of(options.words[i]), value_of(options.words[i + 1])}));
  }
  return run_elements(session, batch, std::move(fields));
}

ExitStatus get(Session& session, const ElementsOptions& options) {
  const Hash hash(session.context_with_copies(), options.name);
  const bool alone = options.words.size() == 1 && options.words.front() != "-";
  ElementLine line(options);
  const auto answer_one = [&](const Element& field, const ElementResult& result) {
    Output& output = session.output();
    JsonObject& answer = line.of(field.name);
    if (!result.yes) {
      warn_if_degraded(session);
      return answer_missing(session, answer, {result.server});
    }
    answer.stored_bytes("value", result.value).bytes("server", session.server_address(result.server));
    add_copies(answer, session, {{}, result.copies});
    warn_of_copies(session, result.copies);
    alone ? output.answer_bytes(answer, result.value) : output.answer_value(answer, field.name, result.value);
    return ExitStatus::ok;
  };
  return run_words(
      session, options,
      element_batch(
          session, [&](std::span<const Element> window) { return known(hash.get(names_of(window))); },
          answer_one));
}

void print_change(Session& session, ElementLine& lines, const ElementWatch::Change& change) {
  Output& output = session.output();
  if (output.mode() == OutputMode::value) return output.answer_pair(change.name, change.value);
  JsonObject& line = lines.of(change.name);
  if (change.value)
    line.stored_bytes("value", *change.value);
  else
    line.boolean("removed", true);
  if (change.before) line.stored_bytes("before", *change.before);
  line.bytes("server", session.server_address(change.server));
  output.answer(line, {});
}

// Runs the command with the value as its input. If the command fails, the watch continues; returns the exit
// code of a command that cannot be run. A name with a NUL is reported instead, because the environment would
// truncate it.
ExitStatus run_for(Session& session, const ElementsOptions& options, const ElementWatch::Change& change,
                   const HeldSignals& held) {
  if (change.name.find('\0') != std::string::npos) {
    session.output().error(Failure(ErrorCode::bad_data,
                                   "no command is run for " + in_quotes(change.name) + ", which has a NUL"));
    return ExitStatus::ok;
  }
  ChildOptions child{.command = options.command};
  child.environment = {{"MCDS_HASH", options.name},
                       {"MCDS_FIELD", change.name},
                       {"MCDS_CHANGE", change.value ? "set" : "removed"}};
  child.input = change.value.value_or("");
  const ChildResult result = run_alone(session, child, held);
  report_failure(session.output(), result);
  if (const int signal = result.ending_signal(); signal != 0) throw Interrupted{signal};
  return result.could_run() ? ExitStatus::ok : static_cast<ExitStatus>(result.exit_code());
}

// Prints the current elements, then each change, or runs the command for each, until it is ended.
ExitStatus watch(Session& session, const ElementsOptions& options) {
  if (options.every < std::chrono::milliseconds(10)) throw InvalidInput("--every must be at least 10ms");
  std::vector<std::string> names;
  for (const std::string& word : options.words) {
    const std::string name = bare_element(value_of(word)).name;
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  session.output().buffered(true);
  ElementWatch watched(session.context_with_copies(), options.structure, options.name, std::move(names));
  ElementLine lines(options);
  std::optional<HeldSignals> held;
  if (!options.command.empty()) held.emplace().keep();  // a signal that ends the watch is not a failure
  Pause pause(session);
  OutageReporter reporter;
  do {
    const ElementWatch::Look look = watched.look();
    for (const auto& change : look.changes) {
      if (options.command.empty()) {
        print_change(session, lines, change);
      } else if (const auto status = run_for(session, options, change, *held); status != ExitStatus::ok) {
        return status;
      }
    }
    session.output().flush();
    session.output().report_new_errors();
    reporter.report(session, look.failure ? std::span(&*look.failure, 1) : std::span<const Failure>());
  } while (pause.wait(options.every));
  return ExitStatus::ok;
}

}  // namespace

void declare_hash(Command& command) {
  command.exits(
      "1 a field is missing|2 a part of the index was lost, or the hash was lost or dropped while fields "
      "were set|65 a field or value is too long or, with -o value, not one line; a line is malformed; or a "
      "key holds something else|66 a file cannot be read|69|75 other clients kept changing the hash|76|80 "
      "the change may or may not have been made|126|127");
  const auto options = std::make_shared<ElementsOptions>(ElementsOptions{"hash", "field"});
  declare_verb(command, options, "set", "set fields to values", set)
      .answer("hash field created server ttl_s? lost_or_dropped? @copies")
      .field("ttl_s number the ttl in seconds")
      .field("created boolean true: the field did not exist before")
      .example("mcds hash set cfg color blue size L")
      .example("mcds hash set cfg logo @logo.png")
      .example("mcds hash fetch cfg | mcds hash set copy - --json")
      .example("mcds hash set sessions user7 \"$token\" --ttl 30m")
      .argument("FIELD VALUE", "any bytes; @FILE: a file's contents; - reads FIELD<TAB>VALUE lines",
                dash(&options->words))
      .flag("--json",
            "the lines are JSON objects as printed by fetch; a value that is not a string is stored as its "
            "JSON text",
            options->json)
      .with(declare_ttl, options);
  declare_verb(command, options, "get", "print the values of fields", get)
      .example("mcds hash get cfg color -o value")
      .answer("hash field value server @copies")
      .answer("hash field found server degraded?")
      .field("value bytes the value")
      .example("mcds hash get cfg color size")
      .argument("FIELD", "any bytes; - reads one per line", dash(&options->words));
  declare_fetch(command, options, "fetch", "print all fields with their values, unordered", true)
      .field("value bytes the value")
      .example("mcds hash fetch cfg")
      .example("mcds hash fetch cfg --as-object | jq -r .color")
      .flag(
          "--as-object",
          "print one JSON object, {\"FIELD\":\"VALUE\",...}; bytes that are not UTF-8 are {\"b64\":\"...\"}",
          options->as_object)
      .example("mcds hash fetch cfg -o value | sort");
  declare_fetch(command, options, "fields", "print all fields without their values", false)
      .example("mcds hash fields cfg -o value");
  declare_verb(command, options, "watch",
               "print all fields, or those given, then each change of them, or run a command for each", watch)
      .example("mcds hash watch cfg color -- systemctl reload app")
      .example("mcds hash watch cfg")
      .answer("hash field value before? server")
      .answer("hash field removed before? server")
      .field("removed boolean true: the field was removed")
      .field("value bytes the value")
      .example("mcds hash watch cfg color size --every 5s -o value")
      .optional_argument("FIELD", "the fields to watch; default: all, those too that come later",
                         &options->words)
      .option("--every", "D", "time between two reads, at least 10ms; default 2s", &options->every)
      .child(options->command, false);
  declare_shared_verbs(command, options);
}

}  // namespace mcds
