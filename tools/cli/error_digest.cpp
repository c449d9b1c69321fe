#include "tools/cli/error_digest.hpp"

#include <algorithm>

namespace mcds {

namespace {

constexpr std::size_t most_groups = 256;
constexpr std::size_t most_news = 3;
constexpr std::size_t most_at_the_end = 6;
constexpr std::size_t shown_of_each = 3;

// The message without what it quotes: the names of the lines it is of.
std::string unquoted(std::string_view message) {
  std::string text;
  char open = '\0';
  for (std::size_t i = 0; i < message.size(); ++i) {
    const char c = message[i];
    if (open == '\0') text += c;
    const bool quotes = c == '\'' || c == '"';
    if (open != '\0' ? c == open : quotes && (i == 0 || message[i - 1] == ' ')) {
      text += open == '\0' ? "…" : std::string(1, c);
      open = open == '\0' ? c : '\0';
    }
  }
  return text;
}

}  // namespace

std::string FailedGroup::whom() const {
  std::string text = lines ? count == 1 ? "line " : "lines " : "";
  for (std::size_t i = 0; i < first.size(); ++i) text += (i == 0 ? "" : ", ") + first[i];
  if (count > first.size()) text += " and " + std::to_string(count - first.size()) + " more";
  return text;
}

FailedGroup& ErrorDigest::group_of(const Failure& failure, bool lines) {
  const std::string cause = unquoted(failure.what());
  const auto is_of = [&](const FailedGroup& group) {
    return group.code == failure.code() && group.lines == lines && group.server == failure.server() &&
           group.cause == cause;
  };
  if (last_ < groups_.size() && is_of(groups_[last_])) return groups_[last_];
  const auto found = std::ranges::find_if(groups_, is_of);
  last_ = static_cast<std::size_t>(found - groups_.begin());
  if (found != groups_.end()) return *found;
  if (groups_.size() == most_groups) return groups_[--last_];
  return groups_.emplace_back(FailedGroup{failure.code(), failure.what(), failure.server(), lines, cause});
}

void ErrorDigest::add_line(const Failure& failure, std::uint64_t line, std::uint64_t count) {
  FailedGroup& group = group_of(failure, true);
  group.count += count;
  if (group.count > 1) group.message = group.cause;
  for (; count > 0 && group.first.size() < shown_of_each; --count)
    group.first.push_back(std::to_string(line++));
}

void ErrorDigest::add_name(const Failure& failure, std::string_view name) {
  FailedGroup& group = group_of(failure, false);
  if (++group.count > 1) group.message = group.cause;
  if (group.first.size() < shown_of_each) group.first.emplace_back(name);
}

bool ErrorDigest::hides_any() const {
  return std::ranges::any_of(groups_,
                             [](const FailedGroup& group) { return group.count > group.first.size(); });
}

std::vector<FailedGroup> ErrorDigest::news() {
  std::vector<FailedGroup> told;
  for (FailedGroup& group : groups_) {
    if (group.told > 0 || news_ == most_news) continue;
    ++news_;
    group.told = group.count;
    told.push_back(group);
  }
  return told;
}

std::vector<FailedGroup> ErrorDigest::rest() {
  std::vector<FailedGroup> told;
  for (const FailedGroup& group : groups_) {
    if (group.count > group.told) told.push_back(group);
  }
  groups_.clear();
  if (told.size() <= most_at_the_end) return told;
  std::ranges::stable_sort(told, std::greater{}, &FailedGroup::count);
  FailedGroup others = told[most_at_the_end - 1];
  others.server.clear();
  for (std::size_t i = most_at_the_end; i < told.size(); ++i) others.count += told[i].count;
  others.message = "other causes, for example: " + others.message;
  told.resize(most_at_the_end - 1);
  told.push_back(std::move(others));
  return told;
}

}  // namespace mcds
