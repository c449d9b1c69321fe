#include "tools/cli/program.hpp"

#include <forward_list>

#include "common/base/bytes.hpp"
#include "common/base/units.hpp"

namespace mcds {

namespace {

constexpr std::size_t usual_options = 24;

}  // namespace

std::optional<std::string> given_value(const Target& target) {
  using Text = std::optional<std::string>;
  if (bool* const* flag = std::get_if<bool*>(&target)) return **flag ? Text("on") : std::nullopt;
  if (const auto* text = std::get_if<Text*>(&target)) return **text;
  if (const auto* number = std::get_if<std::optional<std::uint64_t>*>(&target))
    return **number ? Text(std::to_string(***number)) : std::nullopt;
  const auto* duration = std::get_if<std::optional<Duration>*>(&target);
  return duration != nullptr && **duration ? Text(format_duration(***duration)) : std::nullopt;
}

RequestFormat::RequestFormat(const std::string& composed) {
  static std::forward_list<std::string> kept;
  static_cast<std::string_view&>(*this) = kept.emplace_front(composed);
}

std::vector<std::string> OptionSpec::choices() const {
  if (!chosen) return {};
  const auto words = split(value, '|');
  return {words.begin(), words.end()};
}

bool OptionSpec::is_called(std::string_view word) const {
  for (std::string_view left = names; !left.empty();) {
    const std::size_t comma = std::min(left.find(','), left.size());
    if (left.substr(0, comma) == word) return true;
    left.remove_prefix(std::min(comma + 1, left.size()));
  }
  return false;
}

Verb& Verb::argument(RequestFormat name, RequestFormat help, const WordTarget& target, bool required) {
  if (whole_) arguments_.push_back({name, help, target.target, target.takes_dash, required});
  return *this;
}

Verb& Verb::option(RequestFormat names, RequestFormat value, RequestFormat help, const WordTarget& target) {
  if (!whole_) return *this;
  if (options_.empty()) options_.reserve(usual_options);
  options_.push_back({names, value, help, target.target, false, target.takes_dash});
  return *this;
}

Verb& Verb::child(std::vector<std::string>& target, bool required) {
  if (!whole_) return *this;
  child_ = &target;
  child_required_ = required;
  return *this;
}

Verb& Command::verb(std::string name, RequestFormat summary) {
  const bool whole = !only_ || name.empty() || name == *only_;
  return *verbs_.emplace_back(std::make_unique<Verb>(std::move(name), summary, whole));
}

const Verb* Command::find(std::string_view name) const {
  for (const auto& verb : verbs_) {
    if (verb->name() == name) return verb.get();
  }
  return nullptr;
}

}  // namespace mcds
