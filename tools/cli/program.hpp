// Describes the command line once, as data. Parsing (CLI11, in parse.cpp only), --help, --schema,
// completions, __describe and the man page test all read this description.
//
//     auto options = std::make_shared<IncrOptions>();
//     counter.verb("incr", "add to a counter, creating it if it is missing", incr, options)
//         .argument("NAME", "the counter", &options->name)
//         .option("--ttl", "D", "ttl of a counter that is created", &options->ttl)
//         .answer("counter value delta created server @copies");
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "common/base/clock.hpp"
#include "tools/cli/exit_status.hpp"

namespace mcds {

class Session;

// The target of a parsed word. Its type decides how the word is read (Duration: `1m30s`, std::uint64_t:
// decimal) and rejected. Text is stored unchanged; the verb resolves `-` and `@FILE` (see input.hpp).
using Target =
    std::variant<bool*, std::string*, std::optional<std::string>*, std::vector<std::string>*, std::uint64_t*,
                 std::optional<std::uint64_t>*, Duration*, std::optional<Duration>*>;

// A target that may accept `-` for standard input or output. Any other target rejects `-`.
struct WordTarget {
  template <typename Pointer>
  WordTarget(Pointer target, bool dash = false) : target(target), takes_dash(dash) {}
  Target target;
  bool takes_dash;
};
inline WordTarget dash(Target target) {
  return {target, true};
}

// Returns the value that a target has been given, `on` for a flag; nullopt if it has none or is not optional.
std::optional<std::string> given_value(const Target& target);

// Text of a declaration. Literals are not copied, because every start of the program declares all of them;
// composed text is kept until the program ends.
class RequestFormat : public std::string_view {
 public:
  RequestFormat(const char* literal) : std::string_view(literal) {}
  RequestFormat(const std::string& composed);
};

struct OptionSpec {
  std::string_view names;  // "--ttl" or "-w,--wait"
  std::string_view value;  // "D", "N", "FILE"; empty: a flag
  std::string_view help;
  Target target;
  bool chosen = false;  // `value` is "FIRST|SECOND|…", the only words allowed
  bool takes_dash = false;

  std::vector<std::string> choices() const;  // empty: any word
  bool is_called(std::string_view word) const;
  std::string long_name() const { return std::string(names.substr(names.rfind(',') + 1)); }
};

struct ArgumentSpec {
  std::string_view name;
  std::string_view help;
  Target target;  // a std::vector<std::string>* takes the remaining words
  bool takes_dash;
  bool required;
};

using Action = std::function<ExitStatus(Session&)>;

class Verb {
 public:
  // Declares a verb. Unless `whole` is true, only the name and the summary are kept.
  Verb(std::string name, RequestFormat summary, bool whole = true)
      : name_(std::move(name)), summary_(summary), whole_(whole) {}

  // Adds an example. The help of a verb shows all of them; that of a command, the first of up to three verbs.
  Verb& example(RequestFormat line) {
    if (whole_) examples_.push_back(line);
    return *this;
  }
  Verb& argument(RequestFormat name, RequestFormat help, const WordTarget& target, bool required = true);
  Verb& optional_argument(RequestFormat name, RequestFormat help, const WordTarget& target) {
    return argument(name, help, target, false);
  }
  Verb& option(RequestFormat names, RequestFormat value, RequestFormat help, const WordTarget& target);
  // Adds an option with a fixed set of values; `choices` is "FIRST|SECOND|…".
  Verb& choice(RequestFormat names, RequestFormat choices, RequestFormat help, Target target) {
    if (whole_) options_.push_back({names, choices, help, target, true});
    return *this;
  }
  Verb& flag(RequestFormat names, RequestFormat help, bool& target) {
    if (whole_) options_.push_back({names, "", help, &target});
    return *this;
  }
  // Accepts a child command after `--`. If `required` is true, the verb rejects a command line without it.
  Verb& child(std::vector<std::string>& target, bool required);
  // Declares that the verb supports -o openmetrics.
  Verb& metrics() {
    metrics_ = whole_;
    return *this;
  }
  // Declares the fields of one kind of answer line, as fields.hpp describes. May be called several times.
  Verb& answer(RequestFormat fields) {
    if (whole_) answers_.push_back(fields);
    return *this;
  }
  // Declares the meaning of a field in this verb if it differs from the dictionary: NAME KIND MEANING.
  Verb& field(RequestFormat meaning) {
    if (whole_) own_fields_.push_back(meaning);
    return *this;
  }
  // Applies a declaration that several verbs share.
  template <typename... Arguments>
  Verb& with(void (*declare)(Verb&, Arguments...), std::type_identity_t<Arguments>... arguments) {
    if (whole_) declare(*this, std::forward<Arguments>(arguments)...);
    return *this;
  }
  Verb& action(Action action) {
    if (whole_) action_ = std::move(action);
    return *this;
  }
  template <typename Options>
  Verb& action(ExitStatus (*run)(Session&, const Options&), const std::shared_ptr<Options>& options) {
    if (!whole_) return *this;
    return action([run, options](Session& session) { return run(session, *options); });
  }

  const std::string& name() const { return name_; }
  std::string_view summary() const { return summary_; }
  const std::vector<std::string_view>& examples() const { return examples_; }
  const std::vector<OptionSpec>& options() const { return options_; }
  const std::vector<ArgumentSpec>& arguments() const { return arguments_; }
  std::vector<std::string>* child_target() const { return child_; }
  bool child_required() const { return child_required_; }
  bool gives_metrics() const { return metrics_; }
  const std::vector<std::string_view>& answers() const { return answers_; }
  const std::vector<std::string_view>& own_fields() const { return own_fields_; }
  const Action& run() const { return action_; }

 private:
  std::string name_;
  std::string_view summary_;
  bool whole_;
  std::vector<std::string_view> examples_;
  std::vector<OptionSpec> options_;
  std::vector<ArgumentSpec> arguments_;
  std::vector<std::string>* child_ = nullptr;
  bool child_required_ = false;
  bool metrics_ = false;
  std::vector<std::string_view> answers_, own_fields_;
  Action action_;
};

// A command. It has verbs (`counter incr`), or is itself a verb (`where`, `servers`, `sandbox`): then its
// only verb has the empty name, declared by `itself()`. `key`, `where` and `ring` may have both.
class Command {
 public:
  // If `only` is set, other verbs are declared by name only, except itself().
  Command(std::string name, RequestFormat summary, std::optional<std::string_view> only = {})
      : name_(std::move(name)), summary_(summary), only_(only) {}
  Verb& verb(std::string name, RequestFormat summary);
  // Declares a verb with its action and its options, which live as long as the verb.
  template <typename Options>
  Verb& verb(std::string name, RequestFormat summary, ExitStatus (*run)(Session&, const Options&),
             const std::shared_ptr<Options>& options) {
    return verb(std::move(name), summary).action(run, options);
  }
  Verb& itself() { return verb({}, summary_); }
  // Declares the exit codes: `CODE` or `CODE MEANING`, separated by `|`, in order. 0, 64 and 74 are added.
  void exits(std::string_view codes) { exits_ = codes; }
  // Returns the verb, or nullptr if there is none. The empty name finds itself().
  const Verb* find(std::string_view name) const;

  const std::string& name() const { return name_; }
  RequestFormat summary() const { return summary_; }
  const std::vector<std::unique_ptr<Verb>>& verbs() const { return verbs_; }
  std::string_view exits() const { return exits_; }

 private:
  std::string name_;
  RequestFormat summary_;
  std::string_view exits_;
  std::optional<std::string> only_;
  std::vector<std::unique_ptr<Verb>> verbs_;
};

// One line of tools/commands/commands.cpp. --help prints the commands in the order of these lines.
struct CommandEntry {
  const char* name;
  const char* summary;
  void (*declare)(Command&);
  const char* heading = nullptr;  // the heading of the group that begins here
};
std::span<const CommandEntry> all_commands();

// The program's version as text, from meson.build's project version.
extern const std::string_view program_version;

// Returns the output of --version on one line: the version, the commit if it is known, and the build.
std::string version_text();

}  // namespace mcds
