#include "tools/cli/describe.hpp"

#include "common/base/bytes.hpp"
#include "common/base/json.hpp"
#include "tools/cli/fields.hpp"
#include "tools/cli/parse.hpp"
#include "tools/cli/version.hpp"

namespace mcds {

namespace {

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
  object.boolean("child", verb.child_target() != nullptr);
  return object.objects("fields", describe_all(fields_of(verb))).object("schema", schema_of(command, verb));
}

}  // namespace

std::string description() {
  GlobalOptions unused;
  std::vector<JsonObject> commands;
  for (const CommandEntry& entry : all_commands()) {
    const auto command = declared(entry.name);
    std::vector<JsonObject> verbs;
    for (const auto& verb : command->verbs()) verbs.push_back(describe(*command, *verb));
    commands.push_back(
        JsonObject("name", entry.name).bytes("summary", entry.summary).objects("verbs", verbs));
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
    throw InvalidInput("no command " + json_quote(is_utf8(arguments.front()) ? arguments.front() : "?") +
                       "; mcds --help lists them");
  }
  return 0;
}

}  // namespace mcds
