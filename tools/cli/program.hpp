// The command line described once, as data: parsing (CLI11, in parse.cpp only), --help, --schema,
// completions, __describe and the man page test all read this description.
//
//     auto options = std::make_shared<IncrOptions>();
//     counter.verb("incr", "add to a counter, creating it if it is missing")
//         .argument("NAME", "the counter", &options->name)
//         .option("--ttl", "D", "ttl of a counter that is created", &options->ttl)
//         .answer("counter value delta created server @copies")
//         .action(incr, options);
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/clock.hpp"
#include "tools/cli/exit_status.hpp"

namespace mcds {

class Session;

// The target of a parsed word; its type decides how it is read (Duration: `1m30s`, std::uint64_t: decimal, …)
// and refused (one line that names the option). Text is taken as it is; `-` and `@FILE` are resolved by the
// verb (see input.hpp).
using Target =
    std::variant<bool*, std::string*, std::optional<std::string>*, std::vector<std::string>*, std::uint64_t*,
                 std::optional<std::uint64_t>*, Duration*, std::optional<Duration>*, double*,
                 std::optional<double>*, int*, std::optional<int>*>;

// A target in which `-` stands for standard input, or output; elsewhere it is refused.
struct WordTarget {
  template <typename Pointer>
  WordTarget(Pointer target, bool dash = false) : target(target), takes_dash(dash) {}
  Target target;
  bool takes_dash;
};
inline WordTarget dash(Target target) {
  return {target, true};
}

struct OptionSpec {
  std::string names;  // "--ttl" or "-w,--wait"
  std::string value;  // "D", "N", "FILE"; empty: a flag
  std::string help;
  std::vector<std::string> choices{};  // allowed words, also completed; empty: any
  Target target;
  bool takes_dash = false;
};

struct ArgumentSpec {
  std::string name;
  std::string help;
  Target target;  // std::vector<std::string>*: takes the rest
  bool takes_dash;
  bool required;
};

using Action = std::function<ExitStatus(Session&)>;

class Verb {
 public:
  Verb(std::string name, std::string summary) : name_(std::move(name)), summary_(std::move(summary)) {}

  Verb& example(std::string line);  // three of them open --help
  Verb& argument(std::string name, std::string help, const WordTarget& target);
  Verb& optional_argument(std::string name, std::string help, const WordTarget& target);
  Verb& option(std::string names, std::string value, std::string help, const WordTarget& target);
  Verb& choice(std::string names, std::vector<std::string> choices, std::string help, Target target);
  Verb& flag(std::string names, std::string help, bool& target);
  // Everything after `--` is a command to run; `required`: refuse to run without it.
  Verb& child(std::vector<std::string>& target, bool required);
  // It can answer with -o openmetrics.
  Verb& metrics();
  // The fields of a line of the answer, as fields.hpp describes it; again for another kind of line.
  Verb& answer(std::string fields);
  // What a field means in this verb, where the dictionary has another meaning: NAME KIND MEANING.
  Verb& field(std::string meaning);
  // What it declares as others do.
  template <typename... Arguments>
  Verb& with(void (*declare)(Verb&, Arguments...), std::type_identity_t<Arguments>... arguments) {
    declare(*this, std::forward<Arguments>(arguments)...);
    return *this;
  }
  Verb& action(Action action);
  // Of options that live as long as the verb.
  template <typename Options>
  Verb& action(ExitStatus (*run)(Session&, const Options&), std::shared_ptr<Options> options) {
    return action([run, options](Session& session) { return run(session, *options); });
  }

  const std::string& name() const { return name_; }
  const std::string& summary() const { return summary_; }
  const std::vector<std::string>& examples() const { return examples_; }
  const std::vector<OptionSpec>& options() const { return options_; }
  const std::vector<ArgumentSpec>& arguments() const { return arguments_; }
  std::vector<std::string>* child_target() const { return child_; }
  bool child_required() const { return child_required_; }
  bool gives_metrics() const { return metrics_; }
  const std::vector<std::string>& answers() const { return answers_; }
  const std::vector<std::string>& own_fields() const { return own_fields_; }
  const Action& run() const { return action_; }

 private:
  std::string name_;
  std::string summary_;
  std::vector<std::string> examples_;
  std::vector<OptionSpec> options_;
  std::vector<ArgumentSpec> arguments_;
  std::vector<std::string>* child_ = nullptr;
  bool child_required_ = false;
  bool metrics_ = false;
  std::vector<std::string> answers_, own_fields_;
  Action action_;
};

// A command has verbs (`counter incr`), or is one itself (`where`, `servers`, `sandbox`): then its only verb
// has the empty name, declared by `itself()`. `key`, `where` and `ring` may have both.
class Command {
 public:
  Command(std::string name, std::string summary) : name_(std::move(name)), summary_(std::move(summary)) {}
  Verb& verb(std::string name, std::string summary);
  Verb& itself();
  // nullptr: no such verb. The empty name finds itself().
  const Verb* find(std::string_view name) const;

  const std::string& name() const { return name_; }
  const std::string& summary() const { return summary_; }
  const std::vector<std::unique_ptr<Verb>>& verbs() const { return verbs_; }

 private:
  std::string name_;
  std::string summary_;
  std::vector<std::unique_ptr<Verb>> verbs_;
};

// One line of tools/commands/commands.cpp; the order is that of --help.
struct CommandEntry {
  const char* name;
  const char* summary;
  void (*declare)(Command&);
  const char* heading = nullptr;  // of the group that begins here
};
std::span<const CommandEntry> all_commands();

}  // namespace mcds
