// Arrays whose journals have copies: their union, and making lost copies whole.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "common/base/errors.hpp"
#include "common/structures/array.hpp"

namespace mcds {

namespace {

// An append may have reached one copy and be on its way to another.
constexpr auto second_look = std::chrono::milliseconds(50);

bool has_all(const std::vector<JournalLine>& lines, const std::vector<JournalLine>& wanted) {
  std::unordered_set<std::string_view> ids;
  for (const JournalLine& line : lines) ids.insert(line.id);
  for (const JournalLine& line : wanted) {
    if (!ids.contains(line.id)) return false;
  }
  return true;
}

}  // namespace

std::vector<JournalLine> unite(const std::vector<JournalLine>& first, const std::vector<JournalLine>& second) {
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < first.size(); ++i) places.emplace(first[i].id, i);
  std::vector<std::vector<const JournalLine*>> behind(first.size() + 1);
  std::size_t anchor = 0;
  for (const JournalLine& line : second) {
    const auto place = places.find(line.id);
    if (place != places.end()) {
      anchor = place->second + 1;
    } else {
      behind[anchor].push_back(&line);
    }
  }
  std::vector<JournalLine> united;
  for (std::size_t i = 0; i <= first.size(); ++i) {
    if (i != 0) united.push_back(first[i - 1]);
    for (const JournalLine* line : behind[i]) united.push_back(*line);
  }
  return united;
}

struct Array::Union {
  bool found = false;
  bool complete = false;  // a copy has lost nothing
  std::vector<JournalLine> lines;
  std::vector<bool> lacking;  // which copies, of those that answer, are not whole
  std::vector<bool> missing;  // and have no journal
  std::optional<Failure> failure;
  std::size_t server = 0;

  bool any_lacking() const { return std::find(lacking.begin(), lacking.end(), true) != lacking.end(); }
};

Array::Union Array::read_copies() const {
  std::vector<JournalContents> contents(copies_.size());
  const auto failures = copies_.run([&](std::size_t copy) { contents[copy] = journal(copy).read(); });
  Union all;
  all.server = context_.cluster.placement().server_of(key_);
  for (std::size_t i = 0; i < contents.size(); ++i) {
    if (failures[i]) all.failure = failures[i];
    if (failures[i] || !contents[i].found) continue;
    all.found = true;
    all.complete = all.complete || (contents[i].lost_segments == 0 && contents[i].foreign == 0);
    all.lines = unite(all.lines, contents[i].lines);
  }
  for (std::size_t i = 0; i < contents.size(); ++i) {
    const bool whole = failures[i] || (contents[i].found && contents[i].lost_segments == 0 && has_all(contents[i].lines, all.lines));
    all.lacking.push_back(!whole);
    all.missing.push_back(!failures[i] && !contents[i].found);
  }
  return all;
}

// Reads, and makes whole what a second look finds lacking too. Best effort: a later read tries again.
Array::Union Array::heal() const {
  Union all = read_copies();
  if (!all.found || !all.any_lacking()) return all;
  context_.clock.sleep_for(second_look);
  all = read_copies();
  if (!all.found || !all.any_lacking() || all.lines.empty()) return all;
  static_cast<void>(copies_.run([&](std::size_t copy) {
    if (!all.lacking[copy]) return;
    Journal lacking = journal(copy);
    // Created with its first line; the rewriting puts the others behind it.
    if (all.missing[copy]) lacking.append(std::span(all.lines).first(1));
    lacking.compact([&](const std::vector<JournalLine>& lines) { return unite(all.lines, lines); }, true);
  }));
  return all;
}

Array::Contents Array::fetch_copies() const {
  const Union all = heal();
  if (!all.found && all.failure) throw Failure(*all.failure);
  Contents contents;
  contents.found = all.found;
  contents.complete = all.complete || !all.found;
  contents.elements = replay(all.lines);
  contents.lines = all.lines.size();
  contents.server = all.server;
  return contents;
}

// One order for all copies: what one of them drops none may keep.
std::optional<Array::Compacted> Array::compact_copies() {
  const Union all = heal();
  if (all.failure) throw Failure(*all.failure);
  if (!all.found || !all.complete) return std::nullopt;
  Compacted result{all.lines.size(), without_removed(all.lines).size()};
  const auto failures = copies_.run([&](std::size_t copy) {
    journal(copy).compact([&](const std::vector<JournalLine>& lines) { return without_removed(unite(all.lines, lines)); });
  });
  for (const auto& failure : failures) {
    if (failure) throw Failure(*failure);
  }
  return result;
}

}  // namespace mcds
