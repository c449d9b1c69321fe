// The command line described once, as data: parsing (CLI11, in parse.cpp only), --help, --schema,
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

// The target of a parsed word; its type decides how it is read (Duration: `1m30s`, std::uint64_t: decimal, …)
// and refused (one line that names the option). Text is taken as it is; `-` and `@FILE` are resolved by the
// verb (see input.hpp).
using Target =
    std::variant<bool*, std::string*, std::optional<std::string>*, std::vector<std::string>*, std::uint64_t*,
                 std::optional<std::uint64_t>*, Duration*, std::optional<Duration>*>;

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

// Words of a declaration: a literal is used where it is, for every start of the program passes by all of
// them; what is put together is kept until the program ends.
class Wording : public std::string_view {
 public:
  Wording(const char* literal) : std::string_view(literal) {}
  Wording(const std::string& composed);
};

struct OptionSpec {
  std::string_view names;  // "--ttl" or "-w,--wait"
  std::string_view value;  // "D", "N", "FILE"; empty: a flag
  std::string_view help;
  Target target;
  bool chosen = false;  // `value` is "FIRST|SECOND|…": no other word is allowed
  bool takes_dash = false;

  std::vector<std::string> choices() const;  // empty: any word
  bool is_called(std::string_view word) const;
  std::string long_name() const { return std::string(names.substr(names.rfind(',') + 1)); }
};

struct ArgumentSpec {
  std::string_view name;
  std::string_view help;
  Target target;  // std::vector<std::string>*: takes the rest
  bool takes_dash;
  bool required;
};

using Action = std::function<ExitStatus(Session&)>;

class Verb {
 public:
  // Unless it is `whole`, it keeps nothing else that is declared of it.
  Verb(std::string name, Wording summary, bool whole = true)
      : name_(std::move(name)), summary_(summary), whole_(whole) {}

  // Three of them open --help.
  Verb& example(Wording line) {
    if (whole_) examples_.push_back(line);
    return *this;
  }
  Verb& argument(Wording name, Wording help, const WordTarget& target, bool required = true);
  Verb& optional_argument(Wording name, Wording help, const WordTarget& target) {
    return argument(name, help, target, false);
  }
  Verb& option(Wording names, Wording value, Wording help, const WordTarget& target);
  // `choices`: "FIRST|SECOND|…".
  Verb& choice(Wording names, Wording choices, Wording help, Target target) {
    if (whole_) options_.push_back({names, choices, help, target, true});
    return *this;
  }
  Verb& flag(Wording names, Wording help, bool& target) {
    if (whole_) options_.push_back({names, "", help, &target});
    return *this;
  }
  // Everything after `--` is a command to run; `required`: refuse to run without it.
  Verb& child(std::vector<std::string>& target, bool required);
  // It can answer with -o openmetrics.
  Verb& metrics() {
    metrics_ = whole_;
    return *this;
  }
  // The fields of a line of the answer, as fields.hpp describes it; again for another kind of line.
  Verb& answer(Wording fields) {
    if (whole_) answers_.push_back(fields);
    return *this;
  }
  // What a field means in this verb, where the dictionary has another meaning: NAME KIND MEANING.
  Verb& field(Wording meaning) {
    if (whole_) own_fields_.push_back(meaning);
    return *this;
  }
  // What it declares as others do.
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

// A command has verbs (`counter incr`), or is one itself (`where`, `servers`, `sandbox`): then its only verb
// has the empty name, declared by `itself()`. `key`, `where` and `ring` may have both.
class Command {
 public:
  // `only`: of its other verbs, itself() apart, no more is declared than their names.
  Command(std::string name, Wording summary, std::optional<std::string_view> only = {})
      : name_(std::move(name)), summary_(summary), only_(only) {}
  Verb& verb(std::string name, Wording summary);
  // With its action, of options that live as long as the verb.
  template <typename Options>
  Verb& verb(std::string name, Wording summary, ExitStatus (*run)(Session&, const Options&),
             const std::shared_ptr<Options>& options) {
    return verb(std::move(name), summary).action(run, options);
  }
  Verb& itself() { return verb({}, summary_); }
  // Declares how it may end: `CODE` or `CODE MEANING`, separated by `|`, in order. 0, 64 and 74 are added.
  void exits(std::string_view codes) { exits_ = codes; }
  // nullptr: no such verb. The empty name finds itself().
  const Verb* find(std::string_view name) const;

  const std::string& name() const { return name_; }
  Wording summary() const { return summary_; }
  const std::vector<std::unique_ptr<Verb>>& verbs() const { return verbs_; }
  std::string_view exits() const { return exits_; }

 private:
  std::string name_;
  Wording summary_;
  std::string_view exits_;
  std::optional<std::string> only_;
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
