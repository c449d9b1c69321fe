#include "tools/cli/describe.hpp"

#include <array>

#include "common/base/bytes.hpp"
#include "common/base/json.hpp"
#include "tools/cli/complete.hpp"
#include "tools/cli/fields.hpp"
#include "tools/cli/parse.hpp"
#include "tools/cli/version.hpp"

namespace mcds {

namespace {

struct CodeMeaning {
  ExitStatus status;
  const char* meaning;
};

constexpr std::array exit_codes{
    CodeMeaning{ExitStatus::ok, "done, yes, found, acquired"},
    CodeMeaning{ExitStatus::no, "the answer is no"},
    CodeMeaning{ExitStatus::problem, "a problem was found"},
    CodeMeaning{ExitStatus::usage, "usage"},
    CodeMeaning{ExitStatus::bad_data, "bad input or bad stored data"},
    CodeMeaning{ExitStatus::cannot_read, "a local file cannot be read"},
    CodeMeaning{ExitStatus::unavailable, "no usable server, or no majority"},
    CodeMeaning{ExitStatus::internal, "a bug in mcds"},
    CodeMeaning{ExitStatus::system, "operating system error"},
    CodeMeaning{ExitStatus::cannot_write, "a local file cannot be written"},
    CodeMeaning{ExitStatus::output_failed, "writing to standard output failed"},
    CodeMeaning{ExitStatus::try_again, "try again"},
    CodeMeaning{ExitStatus::refused, "the server refused or sent an invalid reply"},
    CodeMeaning{ExitStatus::access_denied,
                "the server requires a login or rejects it, or its certificate cannot be verified"},
    CodeMeaning{ExitStatus::configuration, "configuration"},
    CodeMeaning{ExitStatus::lock_lost, "the lock was lost while the command ran"},
    CodeMeaning{ExitStatus::unknown_outcome, "outcome unknown"},
    CodeMeaning{ExitStatus::max_run, "--max-run was exceeded"},
    CodeMeaning{ExitStatus::not_executable, "the child command cannot be executed"},
    CodeMeaning{ExitStatus::not_found, "the child command was not found"},
};

JsonObject describe(const OptionSpec& option) {
  JsonObject object;
  object.bytes("names", option.names)
      .bytes("value", option.value)
      .bytes("help", option.help)
      .strings("choices", option.choices());
  return object;
}

JsonObject describe(const ArgumentSpec& argument) {
  JsonObject object;
  object.bytes("name", argument.name).bytes("help", argument.help).boolean("required", argument.required);
  object.boolean("many", std::holds_alternative<std::vector<std::string>*>(argument.target));
  return object;
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
  JsonObject object;
  object.bytes("name", verb.name())
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
        JsonObject().bytes("name", entry.name).bytes("summary", entry.summary).objects("verbs", verbs));
  }
  std::vector<JsonObject> codes;
  for (const CodeMeaning& code : exit_codes) {
    codes.push_back(
        JsonObject().number("code", static_cast<std::uint64_t>(code.status)).bytes("meaning", code.meaning));
  }
  return JsonObject()
      .bytes("version", program_version)
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
