#include "tools/commands/ring/labels.hpp"

#include <algorithm>
#include <map>
#include <string_view>

namespace mcds {

namespace {

// Of texts of one byte for each character.
std::string without_the_middle(const std::string& text, std::size_t most) {
  if (text.size() <= most || !std::ranges::all_of(text, [](char c) { return c > 0; })) return text;
  return text.substr(0, most / 2 - 1) + "…" + text.substr(text.size() - most / 2);
}

// How many characters all of these have in common at their ends, up to where a part of the name begins.
struct CommonEnds {
  std::size_t head = 0, tail = 0;

  explicit CommonEnds(const std::vector<const std::string*>& labels) {
    const std::string& first = *labels.front();
    head = tail = first.size();
    for (const std::string* label : labels) {
      const auto [a, b] = std::mismatch(first.begin(), first.end(), label->begin(), label->end());
      head = std::min(head, static_cast<std::size_t>(a - first.begin()));
      const auto [c, d] = std::mismatch(first.rbegin(), first.rend(), label->rbegin(), label->rend());
      tail = std::min(tail, static_cast<std::size_t>(c - first.rbegin()));
    }
    const auto divides = [](char c) { return std::string_view(".:-_/").find(c) != std::string_view::npos; };
    while (head > 0 && !divides(first[head - 1])) --head;
    while (tail > 0 && !divides(first[first.size() - tail])) --tail;
  }
};

std::string short_label(const std::string& label, const CommonEnds& common, std::size_t most) {
  if (label.size() <= most) return label;
  const std::string front = label.substr(0, label.size() - common.tail);
  if (common.tail > 0 && front.size() < most) return front + "…";
  if (common.head >= front.size()) return without_the_middle(label, most);
  const std::string telling = front.substr(common.head);
  return (common.head > 0 ? "…" : "") + without_the_middle(telling, most - 2) + (common.tail > 0 ? "…" : "");
}

}  // namespace

// First what all share is left out; then, of those that still read alike, what these share.
std::vector<std::string> short_labels(const std::vector<std::string>& labels, std::size_t most) {
  std::vector<const std::string*> all;
  for (const std::string& label : labels) all.push_back(&label);
  std::map<std::string, std::vector<std::size_t>> alike;
  std::vector<std::string> names;
  if (all.empty()) return names;
  const CommonEnds common(all);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    names.push_back(short_label(labels[i], common, most));
    alike[names.back()].push_back(i);
  }
  for (const auto& [name, group] : alike) {
    if (group.size() == 1) continue;
    std::vector<const std::string*> these;
    for (const std::size_t i : group) these.push_back(&labels[i]);
    const CommonEnds of_these(these);
    for (const std::size_t i : group) names[i] = short_label(labels[i], of_these, most);
  }
  return names;
}

}  // namespace mcds
