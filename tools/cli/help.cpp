#include "tools/cli/help.hpp"

#include <algorithm>

#include "tools/cli/parse.hpp"

namespace mcds {

namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

std::string table(const Rows& rows) {
  std::size_t width = 0;
  for (const auto& row : rows) width = std::max(width, row.first.size());
  width = std::min<std::size_t>(width, 34);
  std::string text;
  for (const auto& [left, right] : rows) {
    text += "  " + left;
    text +=
        left.size() > width ? '\n' + std::string(width + 4, ' ') : std::string(width - left.size() + 2, ' ');
    text += right + '\n';
  }
  return text;
}

std::string spelled(const std::string& names) {
  std::string text;
  for (const char c : names) text += c == ',' ? std::string(", ") : std::string(1, c);
  return text;
}

std::string option_table(const std::vector<OptionSpec>& options) {
  Rows rows;
  for (const OptionSpec& option : options) {
    if (!option.hidden)
      rows.emplace_back(spelled(option.names) + (option.value.empty() ? "" : " " + option.value),
                        option.help);
  }
  return table(rows);
}

std::string usage(const Command& command, const Verb& verb) {
  std::string line = "mcds " + command.name() + (verb.name().empty() ? "" : " " + verb.name());
  if (!verb.options().empty()) line += " [OPTIONS]";
  for (const ArgumentSpec& argument : verb.arguments()) {
    const bool many = std::holds_alternative<std::vector<std::string>*>(argument.target);
    const std::string word = argument.name + (many ? "…" : "");
    line += argument.required ? " " + word : " [" + word + "]";
  }
  if (verb.child_target() != nullptr) line += verb.child_required() ? " -- CMD…" : " [-- CMD…]";
  return line;
}

std::string examples(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "  $ " + line + '\n';
  return text;
}

}  // namespace

std::string program_help() {
  GlobalOptions unused;
  Rows rows;
  for (const CommandEntry& entry : all_commands()) rows.emplace_back(entry.name, entry.summary);
  return "mcds: data structures on any memcached cluster\n\nExamples:\n" +
         examples({"mcds sandbox -N 3                          # a shell with three temporary servers",
                   "mcds lock run nightly -- ./backup.sh       # one at a time in the whole cluster",
                   "mcds counter incr hits                     # {\"counter\":\"hits\",\"value\":1,…}"}) +
         "\nCommands (see mcds COMMAND --help):\n" + table(rows) +
         "\nGlobal options, before or after the command:\n" + option_table(global_options(unused)) +
         "  -h, --help, -V, --version\n";
}

std::string command_help(const Command& command) {
  if (command.verbs().size() == 1) return verb_help(command, *command.verbs().front());
  Rows rows;
  std::vector<std::string> lines;
  for (const auto& verb : command.verbs()) {
    rows.emplace_back(usage(command, *verb), verb->summary());
    if (!verb->examples().empty() && lines.size() < 3) lines.push_back(verb->examples().front());
  }
  const Verb* itself = command.find("");
  const bool has_own = itself != nullptr && !itself->options().empty();
  const std::string own = has_own ? "\nOptions without a verb:\n" + option_table(itself->options()) : "";
  return "mcds " + command.name() + ": " + command.summary() + "\n\nExamples:\n" + examples(lines) +
         "\nVerbs:\n" + table(rows) + own + "\nSee also mcds " + command.name() +
         " VERB --help and man mcds-" + command.name() + ".\n";
}

std::string verb_help(const Command& command, const Verb& verb) {
  GlobalOptions unused;
  Rows arguments;
  for (const ArgumentSpec& argument : verb.arguments()) arguments.emplace_back(argument.name, argument.help);
  std::string text =
      usage(command, verb) + "\n  " + verb.summary() + "\n\nExamples:\n" + examples(verb.examples());
  if (!arguments.empty()) text += "\nArguments:\n" + table(arguments);
  if (!verb.options().empty()) text += "\nOptions:\n" + option_table(verb.options());
  return text + "\nGlobal options:\n" + option_table(without_words_of(verb, global_options(unused))) +
         "\nSee also man mcds-" + command.name() + ".\n";
}

}  // namespace mcds
