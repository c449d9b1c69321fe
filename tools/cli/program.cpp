#include "tools/cli/program.hpp"

namespace mcds {

Verb& Verb::example(std::string line) {
  examples_.push_back(std::move(line));
  return *this;
}

Verb& Verb::argument(std::string name, std::string help, const WordTarget& target) {
  arguments_.push_back({std::move(name), std::move(help), target.target, target.takes_dash, true});
  return *this;
}

Verb& Verb::optional_argument(std::string name, std::string help, const WordTarget& target) {
  arguments_.push_back({std::move(name), std::move(help), target.target, target.takes_dash, false});
  return *this;
}

Verb& Verb::option(std::string names, std::string value, std::string help, const WordTarget& target) {
  options_.push_back(
      {std::move(names), std::move(value), std::move(help), {}, target.target, target.takes_dash});
  return *this;
}

Verb& Verb::choice(std::string names, std::vector<std::string> choices, std::string help, Target target) {
  std::string value;
  for (const std::string& word : choices) value += (value.empty() ? "" : "|") + word;
  options_.push_back({std::move(names), std::move(value), std::move(help), std::move(choices), target});
  return *this;
}

Verb& Verb::flag(std::string names, std::string help, bool& target) {
  options_.push_back({std::move(names), {}, std::move(help), {}, &target});
  return *this;
}

Verb& Verb::child(std::vector<std::string>& target, bool required) {
  child_ = &target;
  child_required_ = required;
  return *this;
}

Verb& Verb::metrics() {
  metrics_ = true;
  return *this;
}

Verb& Verb::answer(std::string fields) {
  answers_.push_back(std::move(fields));
  return *this;
}

Verb& Verb::field(std::string meaning) {
  own_fields_.push_back(std::move(meaning));
  return *this;
}

Verb& Verb::action(Action action) {
  action_ = std::move(action);
  return *this;
}

Verb& Command::verb(std::string name, std::string summary) {
  return *verbs_.emplace_back(std::make_unique<Verb>(std::move(name), std::move(summary)));
}

Verb& Command::itself() {
  return verb({}, summary_);
}

const Verb* Command::find(std::string_view name) const {
  for (const auto& verb : verbs_) {
    if (verb->name() == name) return verb.get();
  }
  return nullptr;
}

}  // namespace mcds
