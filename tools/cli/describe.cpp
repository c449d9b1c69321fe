#include "common/base/bytes.hpp"
#include "common/base/text.hpp"
#include "tools/cli/fields.hpp"
#include "tools/cli/parse.hpp"

namespace mcds {

namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

// Returns the exit codes of a command and their meanings, with those of a child if `with_child` is set.
Rows exits_of(const Command& command, bool with_child) {
  const std::string all = "0|64|74|" + std::string(command.exits());
  Rows rows;
  for (const ExitCode& code : all_exit_codes()) {
    const std::string number = std::to_string(static_cast<int>(code.status));
    if (!with_child && code.status >= ExitStatus::max_run) break;
    for (const std::string_view line : split(all, '|')) {
      if (line.substr(0, line.find(' ')) != number) continue;
      rows.emplace_back(number, line == number ? code.meaning : line.substr(number.size() + 1));
    }
  }
  return rows;
}

JsonObject describe(const OptionSpec& option) {
  JsonObject object("names", option.names);
  object.bytes("value", option.value).bytes("help", option.help);
  return object.strings("choices", option.choices());
}

JsonObject describe(const ArgumentSpec& argument) {
  JsonObject object =
      JsonObject("name", argument.name).bytes("help", argument.help).boolean("required", argument.required);
  return object.boolean("many", std::holds_alternative<std::vector<std::string>*>(argument.target));
}

JsonObject describe(const Field& field) {
  JsonObject object;
  return object.bytes("name", field.name).bytes("meaning", field.meaning).boolean("shared", field.shared);
}

template <typename Spec>
std::vector<JsonObject> describe_all(const std::vector<Spec>& specs) {
  std::vector<JsonObject> objects;
  for (const Spec& spec : specs) objects.push_back(describe(spec));
  return objects;
}

JsonObject describe(const Command& command, const Verb& verb) {
  JsonObject object = JsonObject("name", verb.name())
                          .bytes("summary", verb.summary())
                          .strings("examples", {verb.examples().begin(), verb.examples().end()});
  object.objects("arguments", describe_all(verb.arguments()))
      .objects("options", describe_all(verb.options()));
  object.boolean("child", verb.child_target() != nullptr).boolean("child_required", verb.child_required());
  return object.objects("fields", describe_all(fields_of(verb))).object("schema", schema_of(command, verb));
}

}  // namespace

std::string description() {
  GlobalOptions unused;
  std::vector<JsonObject> commands;
  for (const CommandEntry& entry : all_commands()) {
    const auto command = declared(entry.name);
    JsonObject exits;
    for (const auto& [code, meaning] : exits_of(*command, true)) exits.bytes(code, meaning);
    std::vector<JsonObject> verbs;
    for (const auto& verb : command->verbs()) verbs.push_back(describe(*command, *verb));
    commands.push_back(JsonObject("name", entry.name)
                           .bytes("summary", entry.summary)
                           .object("exits", exits)
                           .objects("verbs", verbs));
  }
  std::vector<JsonObject> codes;
  for (const ExitCode& code : all_exit_codes()) {
    codes.push_back(
        JsonObject().number("code", static_cast<std::uint64_t>(code.status)).bytes("meaning", code.meaning));
  }
  return JsonObject("version", program_version)
      .objects("global_options", describe_all(global_options(unused)))
      .objects("commands", commands)
      .objects("exit_codes", codes)
      .text();
}

int run_hidden(const std::vector<std::string>& arguments) {
  Output output(OutputMode::json);
  if (arguments.front() == "__describe") {
    output.raw(description() + '\n');
  } else if (arguments.front() == "__complete") {
    std::string lines;
    for (const std::string& line : completions({arguments.begin() + 1, arguments.end()}))
      lines += line + '\n';
    output.raw(lines);
  } else {
    throw InvalidInput("no command " + in_quotes(is_utf8(arguments.front()) ? arguments.front() : "?") +
                       "; mcds --help lists them");
  }
  return 0;
}

// The texts of --help.
namespace {

constexpr std::size_t left_width = 26;

std::string table(const Rows& rows) {
  std::size_t width = 0;
  for (const auto& row : rows) {
    if (shown_width(row.first) <= left_width) width = std::max(width, shown_width(row.first));
  }
  const std::size_t indent = width + 4;
  std::string text;
  for (const auto& [left, right] : rows) {
    text += "  " + wrapped(left, 2, 6);
    const std::size_t used = shown_width(left) + 2;
    text += used + 2 > indent ? '\n' + std::string(indent, ' ') : std::string(indent - used, ' ');
    text += wrapped(right, indent, indent) + '\n';
  }
  return text;
}

std::string option_table(const std::vector<OptionSpec>& options) {
  Rows rows;
  for (const OptionSpec& option : options) {
    const std::string value = option.value.empty() ? std::string() : ' ' + std::string(option.value);
    rows.emplace_back(joined(split(option.names, ','), ", ") + value, option.help);
  }
  return table(rows);
}

std::string field_table(const Verb& verb) {
  Rows rows;
  for (const Field& field : fields_of(verb)) rows.emplace_back(field.name, field.meaning);
  return table(rows);
}

std::string exit_table(const Command& command, bool with_child) {
  return "\nExit codes of mcds " + command.name() + ":\n" + table(exits_of(command, with_child));
}

std::string words_of(const Verb& verb) {
  std::string line;
  for (const ArgumentSpec& argument : verb.arguments()) {
    const bool many = std::holds_alternative<std::vector<std::string>*>(argument.target);
    const std::string word = std::string(argument.name) + (many ? "…" : "");
    line += argument.required ? " " + word : " [" + word + "]";
  }
  if (verb.child_target() != nullptr) line += verb.child_required() ? " -- CMD…" : " [-- CMD…]";
  return line;
}

std::string usage(const Command& command, const Verb& verb) {
  return "mcds " + command.name() + (verb.name().empty() ? "" : " " + verb.name()) +
         (verb.options().empty() ? "" : " [OPTIONS]") + words_of(verb);
}

std::string examples(const std::vector<std::string_view>& lines) {
  std::string text;
  for (const std::string_view line : lines) text.append("  $ ").append(line) += '\n';
  return text;
}

}  // namespace

std::string program_help() {
  GlobalOptions unused;
  std::string commands;
  Rows rows;
  const auto end_group = [&] { commands += table(std::exchange(rows, {})); };
  for (const CommandEntry& entry : all_commands()) {
    if (entry.heading != nullptr) {
      end_group();
      commands += '\n' + std::string(entry.heading) + ":\n";
    }
    rows.emplace_back(entry.name, entry.summary);
  }
  end_group();
  return "mcds: data structures on any memcached cluster\n\nExamples:\n" +
         examples({"mcds sandbox -N 3                      # a shell with three servers",
                   "mcds lock run nightly -- ./backup.sh   # one at a time in the whole cluster",
                   "mcds counter incr hits                 # {\"counter\":\"hits\",\"value\":1,…}"}) +
         commands +
         "\nSee mcds COMMAND --help, and man mcds.\n"
         "\nGlobal options, before or after the command:\n" +
         option_table(global_options(unused)) + "  -h, --help, -V, --version, --schema\n";
}

std::string command_help(const Command& command) {
  if (command.verbs().size() == 1) return verb_help(command, *command.verbs().front());
  Rows rows;
  std::vector<std::string_view> lines;
  for (const auto& verb : command.verbs()) {
    rows.emplace_back((verb->name().empty() ? "mcds " + command.name() : verb->name()) + words_of(*verb),
                      verb->summary());
    if (!verb->examples().empty() && lines.size() < 3) lines.push_back(verb->examples().front());
  }
  const Verb* itself = command.find("");
  const bool has_own = itself != nullptr && !itself->options().empty();
  const std::string own = has_own ? "\nOptions without a verb:\n" + option_table(itself->options()) : "";
  return wrapped("mcds " + command.name() + ": " + std::string(command.summary()), 0, 2) + "\n\nExamples:\n" +
         examples(lines) + "\nVerbs:\n" + table(rows) + own + exit_table(command, true) + "\nSee also mcds " +
         command.name() + " VERB --help and man mcds-" + command.name() + ".\n";
}

std::string command_schema(const Command& command) {
  std::string text;
  for (const auto& verb : command.verbs()) text += schema_of(command, *verb).text() + '\n';
  return text;
}

std::string verb_help(const Command& command, const Verb& verb) {
  Rows arguments;
  for (const ArgumentSpec& argument : verb.arguments()) arguments.emplace_back(argument.name, argument.help);
  std::string text = wrapped(usage(command, verb), 0, 6) + "\n  " + wrapped(verb.summary(), 2, 2) +
                     "\n\nExamples:\n" + examples(verb.examples());
  if (!arguments.empty()) text += "\nArguments:\n" + table(arguments);
  if (!verb.options().empty()) text += "\nOptions:\n" + option_table(verb.options());
  if (!verb.answers().empty()) text += "\nFields of the answer:\n" + field_table(verb);
  text += exit_table(command, verb.child_target() != nullptr);
  return text + "\nGlobal options: mcds --help. See also man mcds-" + command.name() + ".\n";
}

}  // namespace mcds
