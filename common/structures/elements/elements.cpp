#include "common/structures/elements/elements.hpp"

#include <algorithm>
#include <utility>

#include "common/primitives/key_names.hpp"

namespace mcds {

namespace {

constexpr std::size_t names_per_removal = 4096;

std::string_view checked(std::string_view name) {
  if (name.ends_with(":v"))
    throw InvalidInput("the name must not end in \":v\": its index could be another's element");
  return name;
}

bool any_missing(const std::vector<ElementResult>& results) {
  return std::any_of(results.begin(), results.end(),
                     [](const ElementResult& result) { return !result.failure && !result.yes; });
}

std::vector<CopyOutcome> outcomes(const std::vector<ElementResult>& copies) {
  std::vector<CopyOutcome> list;
  for (const ElementResult& copy : copies)
    list.push_back({copy.server, {}, copy.failure ? copy.failure : copy.unlisted});
  return list;
}

std::optional<Failure> common_failure(const std::vector<ElementResult>& copies) {
  std::vector<std::optional<Failure>> failures;
  for (const ElementResult& copy : copies) failures.push_back(copy.failure);
  return failure_of_all(failures);
}

// Done when one copy has it; it was missing if it was in all that could be asked.
ElementResult merged_set(std::vector<ElementResult>& copies) {
  ElementResult result;
  result.failure = common_failure(copies);
  result.server = copies.front().server;
  result.yes =
      std::all_of(copies.begin(), copies.end(), [](const auto& copy) { return copy.failure || copy.yes; });
  result.copies = outcomes(copies);
  return result;
}

// The first copy that knows.
ElementResult merged_get(std::vector<ElementResult>& copies) {
  const auto list = outcomes(copies);
  const auto knows = [](const ElementResult& copy) { return !copy.failure && (copy.yes || copy.removed); };
  auto known = std::find_if(copies.begin(), copies.end(), knows);
  if (known == copies.end())
    known = std::find_if(copies.begin(), copies.end(), [](const auto& copy) { return !copy.failure; });
  if (known == copies.end()) known = copies.begin();
  ElementResult result = std::move(*known);
  result.copies = list;
  return result;
}

// Done when no copy is left to bring it back.
ElementResult merged_remove(std::vector<ElementResult>& copies) {
  ElementResult result;
  result.server = copies.front().server;
  result.yes =
      std::any_of(copies.begin(), copies.end(), [](const auto& copy) { return !copy.failure && copy.yes; });
  result.failure = common_failure(copies);
  const auto failed =
      std::find_if(copies.begin(), copies.end(), [](const auto& copy) { return copy.failure; });
  if (!result.failure && failed != copies.end()) {
    result.failure = UnknownOutcome(
        "removed, but not from every copy: it may come back; remove it again when all servers answer",
        failed->failure->server());
  }
  result.copies = outcomes(copies);
  return result;
}

}  // namespace

Elements::Elements(const Context& context, std::string_view structure, std::string_view name)
    : context_(context), copies_(context), kept_(context, structure, checked(name), ":i", same_index_life) {
  static_cast<void>(copy_servers(context, kept_.key()));
  take_keys();
}

void Elements::take_keys() const {
  all_.clear();
  for (std::size_t copy = 0; copy < copies_.size(); ++copy)
    all_.push_back(std::make_unique<ElementsCopy>(copies_.at(copy), context_, kept_.key()));
}

bool Elements::elsewhere() const {
  if (!kept_.elsewhere()) return false;
  take_keys();
  return true;
}

std::vector<std::string> Elements::index_keys() const {
  if (copies_.size() > 1) static_cast<void>(elsewhere());
  return all_.front()->index().keys();
}

Elements::PerCopy Elements::on_all(
    std::size_t count, const std::function<std::vector<ElementResult>(ElementsCopy&)>& act) const {
  PerCopy results(all_.size());
  const auto failures = copies_.run([&](std::size_t copy) { results[copy] = act(*all_[copy]); });
  for (std::size_t copy = 0; copy < all_.size(); ++copy) {
    if (failures[copy]) results[copy] = failed_results(count, *failures[copy]);
  }
  return results;
}

std::vector<ElementResult> Elements::merged(PerCopy results,
                                            ElementResult (*merge)(std::vector<ElementResult>&)) const {
  if (results.size() == 1) return std::move(results.front());
  std::vector<ElementResult> all;
  for (std::size_t i = 0; i < results.front().size(); ++i) {
    std::vector<ElementResult> copies;
    for (auto& copy : results) copies.push_back(std::move(copy[i]));
    all.push_back(merge(copies));
  }
  return all;
}

std::vector<ElementResult> Elements::set(std::span<const Element> elements, bool relist) {
  return merged(set_copies(elements, relist), merged_set);
}

std::vector<ElementResult> Elements::get(std::span<const std::string> names) const {
  const auto ask = [&] {
    return merged(on_all(names.size(), [&](ElementsCopy& copy) { return copy.get(names); }), merged_get);
  };
  auto results = ask();
  return any_missing(results) && elsewhere() ? ask() : results;
}

std::vector<ElementResult> Elements::remove(std::span<const std::string> names) const {
  // With several copies what removes also writes.
  if (copies_.size() > 1) static_cast<void>(elsewhere());
  const auto act = [&] {
    return merged(on_all(names.size(), [&](ElementsCopy& copy) { return copy.remove(names); }),
                  merged_remove);
  };
  auto results = act();
  return any_missing(results) && elsewhere() ? act() : results;
}

Elements::Listing Elements::fetch(const Visit& visit) const {
  Listing listing = fetch_here(visit);
  return listing.shards == 0 && elsewhere() ? fetch_here(visit) : listing;
}

std::size_t Elements::clear() {
  std::size_t removed = 0;
  std::vector<std::string> names;
  const auto flush = [&] {
    for (const ElementResult& result : remove(names)) {
      if (result.failure) throw Failure(*result.failure);
      removed += result.yes ? 1 : 0;
    }
    names.clear();
  };
  const Listing listing = fetch([&](Found& found) {
    names.push_back(std::move(found.name));
    if (names.size() >= names_per_removal) flush();
  });
  if (!names.empty()) flush();
  if (!listing.complete()) accept();
  static_cast<void>(compact());
  return removed;
}

bool Elements::compact() {
  std::vector<ElementIndex::Compacted> results(all_.size());
  const auto failures = copies_.run([&](std::size_t copy) { results[copy] = all_[copy]->index().compact(); });
  if (const auto failure = failure_of_all(failures)) throw Failure(*failure);
  const auto none = [](const auto& result) { return result == ElementIndex::Compacted::nothing_there; };
  if (std::all_of(results.begin(), results.end(), none) && elsewhere()) return compact();
  return std::find(results.begin(), results.end(), ElementIndex::Compacted::damaged) == results.end();
}

void Elements::accept() {
  std::vector<char> there(all_.size(), 0);
  const auto failures =
      copies_.run([&](std::size_t copy) { there[copy] = all_[copy]->index().accept() ? 1 : 0; });
  if (const auto failure = failure_of_all(failures)) throw Failure(*failure);
  if (std::find(there.begin(), there.end(), 1) == there.end() && elsewhere()) accept();
}

}  // namespace mcds
