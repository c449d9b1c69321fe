#include "common/structures/elements/hash_watch.hpp"

#include <algorithm>
#include <utility>

namespace mcds {

namespace {

constexpr std::size_t max_names_at_once = 1024;
constexpr std::size_t max_bytes_at_once = 2 << 20;

bool ends_the_watch(const Failure& failure) {
  return failure.code() == ErrorCode::bad_data || failure.code() == ErrorCode::usage;
}

}  // namespace

ElementWatch::ElementWatch(const Context& context, std::string_view structure, std::string_view name,
                           std::vector<std::string> names)
    : all_(names.empty()),
      names_(std::move(names)),
      elements_(context, structure, name),
      runs_(context, 2),
      index_(runs_.at(0), structure, name),
      values_(runs_.at(1), structure, name) {}

ElementWatch::Look ElementWatch::look() {
  Look look;
  if (!std::exchange(begun_, true)) {
    begin(look);
    return look;
  }
  const auto looked = attempt([&] {
    // Names that the index lists from now on are read in the same call.
    std::size_t from = 0;
    read_past_index(next_names(from), look);
    while (from < names_.size()) {
      const std::vector<std::string> some = next_names(from);
      compare(some, elements_.get_here(some), look);
    }
    confirm_missing(look);
  });
  missing_.clear();
  if (!looked.failure()) return look;
  if (ends_the_watch(*looked.failure())) raise(*looked.failure());
  look.failure = looked.failure();
  return look;
}

void ElementWatch::begin(Look& look) {
  const auto there = [&](const std::string& name, std::string value, std::size_t server) {
    look.changes.push_back({name, {}, value, server});
    known_[name] = {std::move(value), server};
  };
  if (all_) {
    elements_.fetch([&](Elements::Found& found) { there(found.name, std::move(found.value), found.server); });
    for (const auto& [name, known] : known_) names_.push_back(name);
    return;
  }
  std::vector<ElementResult> results = elements_.get(names_);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].failure) raise(*results[i].failure);
    if (results[i].yes) there(names_[i], std::move(results[i].value), results[i].server);
  }
}

// Returns the next names whose values, at their last sizes, fit into one answer.
std::vector<std::string> ElementWatch::next_names(std::size_t& from) const {
  std::vector<std::string> some;
  std::size_t bytes = 0;
  while (from < names_.size() && some.size() < max_names_at_once && bytes < max_bytes_at_once) {
    const auto known = known_.find(names_[from]);
    if (known != known_.end()) bytes += known->second.value.size();
    some.push_back(names_[from++]);
  }
  return some;
}

void ElementWatch::read_past_index(std::span<const std::string> names, Look& look) {
  if (!all_) return compare(names, elements_.get_here(names), look);
  std::vector<ElementResult> results;
  Result<std::set<std::string>> listed = std::set<std::string>();
  runs_.each([&](std::size_t run) {
    if (run == 0)
      listed = attempt([&] { return index_.listed(); });
    else if (!names.empty())
      results = values_.get_here(names);
  });
  compare(names, results, look);
  std::set<std::string> unseen = std::move(listed.value());
  // Drops names after those just read that are neither listed nor known to exist.
  const auto first = names_.begin() + static_cast<std::ptrdiff_t>(names.size());
  names_.erase(
      std::remove_if(first, names_.end(),
                     [&](const auto& one) { return !unseen.contains(one) && !known_.contains(one); }),
      names_.end());
  for (const std::string& name : names_) unseen.erase(name);
  names_.insert(names_.end(), unseen.begin(), unseen.end());
}

void ElementWatch::compare(std::span<const std::string> names, const std::vector<ElementResult>& results,
                           Look& look) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    const ElementResult& result = results[i];
    const auto known = known_.find(names[i]);
    if (result.failure) {
      look.failure = result.failure;
    } else if (!result.yes) {
      if (known != known_.end()) missing_.push_back(names[i]);
    } else if (known == known_.end() || known->second.value != result.value) {
      const auto before = known == known_.end() ? std::nullopt : std::optional(known->second.value);
      look.changes.push_back({names[i], before, result.value, result.server});
      known_[names[i]] = {result.value, result.server};
    }
  }
}

void ElementWatch::confirm_missing(Look& look) {
  if (missing_.empty()) return;
  const std::vector<std::string> missing = std::exchange(missing_, {});
  const std::vector<ElementResult> results = elements_.get(missing);
  compare(missing, results, look);
  for (const std::string& name : std::exchange(missing_, {})) {
    const auto known = known_.extract(name);
    look.changes.push_back({name, known.mapped().value, {}, known.mapped().server});
  }
}

}  // namespace mcds
