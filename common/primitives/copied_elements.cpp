#include "common/primitives/copied_elements.hpp"

#include <algorithm>
#include <unordered_set>

#include "common/primitives/cas_update.hpp"

namespace mcds {

namespace {

constexpr std::size_t names_per_window = 1024;

// A run that failed as a whole failed for each element.
void fill_failed(std::vector<std::vector<ElementResult>>& results, std::span<const std::optional<Failure>> failures,
                 std::size_t count) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!failures[i]) continue;
    results[i].assign(count, ElementResult{});
    for (ElementResult& result : results[i]) result.failure = failures[i];
  }
}

// Lost is what every copy has lost; a copy that has nothing at all says nothing.
ElementIndex::Reading unite(std::span<const ElementIndex::Reading> readings) {
  ElementIndex::Reading united;
  bool first = true;
  for (const auto& reading : readings) {
    united.lines = std::max(united.lines, reading.lines);
    united.shards = std::max(united.shards, reading.shards);
    if (reading.shards == 0 && reading.complete()) continue;
    if (first) united.lost = reading.lost;
    first = false;
    std::erase_if(united.lost, [&](const std::string& key) {
      return std::find(reading.lost.begin(), reading.lost.end(), key) == reading.lost.end();
    });
  }
  return united;
}

[[noreturn]] void fail(const std::optional<Failure>& failure) { throw Failure(*failure); }

}  // namespace

CopiedElements::CopiedElements(const Context& context, std::string_view structure, std::string_view name)
    : context_(context), copies_(context) {
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    each_.push_back(std::make_unique<Elements>(copies_.at(i), structure, name, copies_.size() == 1));
  }
}

// The first copy that did it tells its outcome, and whether every copy found it as `yes` says.
ElementResult CopiedElements::merge(const Results& results, std::size_t index) const {
  std::vector<std::optional<Failure>> failures;
  for (const auto& copy : results) failures.push_back(copy[index].failure);
  ElementResult merged;
  merged.server = results.front()[index].server;
  merged.failure = failure_of_all(failures);
  merged.yes = true;
  for (const auto& copy : results) {
    merged.copies.push_back({.server = copy[index].server, .failure = copy[index].failure});
    if (!copy[index].failure) merged.yes = merged.yes && copy[index].yes;
  }
  return merged;
}

std::vector<ElementResult> CopiedElements::set(std::span<const Element> elements, bool relist) {
  if (single()) return each_.front()->set(elements, relist);
  Results results(each_.size());
  const auto failures = copies_.run([&](std::size_t copy) {
    results[copy] = each_[copy]->set(elements, relist);
    set_again(copy, elements, results[copy]);
  });
  fill_failed(results, failures, elements.size());
  std::vector<ElementResult> merged;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    ElementResult& one = merged.emplace_back(merge(results, i));
    one.listed = std::any_of(results.begin(), results.end(), [&](const auto& copy) { return copy[i].listed; });
    if (!one.failure && !one.listed)
      one.failure = UnknownOutcome("it is set, but no copy of the index could be reached to list it; set it again with --relist");
  }
  return merged;
}

// Once, where a reply was lost: setting is repeatable, and a connection that had died unnoticed must not leave this copy
// behind.
void CopiedElements::set_again(std::size_t copy, std::span<const Element> elements, std::vector<ElementResult>& results) {
  std::vector<Element> lost;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].failure || results[i].failure->code() != ErrorCode::unknown_outcome) continue;
    lost.push_back(elements[i]);
    places.push_back(i);
  }
  if (lost.empty()) return;
  auto again = each_[copy]->set(lost);
  for (std::size_t k = 0; k < places.size(); ++k) {
    if (!again[k].failure) results[places[k]] = std::move(again[k]);
  }
}

std::vector<ElementResult> CopiedElements::remove(std::span<const std::string> names) const {
  if (single()) return each_.front()->remove(names);
  Results results(each_.size());
  const auto failures = copies_.run([&](std::size_t copy) { results[copy] = each_[copy]->remove(names); });
  fill_failed(results, failures, names.size());
  std::vector<ElementResult> merged;
  for (std::size_t i = 0; i < names.size(); ++i) {
    ElementResult& one = merged.emplace_back(merge(results, i));
    one.yes = std::any_of(results.begin(), results.end(), [&](const auto& copy) { return !copy[i].failure && copy[i].yes; });
  }
  return merged;
}

std::vector<ElementResult> CopiedElements::get(std::span<const std::string> names) const {
  if (single()) return each_.front()->get(names);
  Results results(each_.size());
  const auto failures = copies_.run([&](std::size_t copy) { results[copy] = each_[copy]->get(names); });
  fill_failed(results, failures, names.size());
  refill(names, results);
  level(names, results);
  std::vector<ElementResult> merged;
  for (std::size_t i = 0; i < names.size(); ++i) {
    ElementResult& one = merged.emplace_back(merge(results, i));
    one.yes = false;
    for (const auto& copy : results) {
      // A miss is only said when every copy said so.
      if (copy[i].failure && !one.yes) one.failure = copy[i].failure;
      if (copy[i].failure || !copy[i].yes || one.yes) continue;
      one.yes = true;
      one.value = copy[i].value;
      one.failure.reset();
    }
  }
  return merged;
}

void CopiedElements::refill(std::span<const std::string> names, Results& results) const {
  std::vector<std::vector<Element>> lacking(each_.size());
  std::vector<std::vector<std::size_t>> places(each_.size());
  std::vector<std::string> again;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto has = [&](const auto& copy) { return !copy[i].failure && copy[i].yes; };
    const auto source = std::find_if(results.begin(), results.end(), has);
    if (source == results.end()) continue;
    bool any = false;
    for (std::size_t copy = 0; copy < results.size(); ++copy) {
      if (results[copy][i].failure || results[copy][i].yes) continue;
      any = true;
      lacking[copy].push_back({names[i], (*source)[i].value});
      places[copy].push_back(i);
    }
    if (any) again.push_back(names[i]);
  }
  if (again.empty()) return;
  std::vector<std::vector<std::string>> added(each_.size());
  Results now(each_.size());
  static_cast<void>(copies_.run([&](std::size_t copy) {
    if (!lacking[copy].empty()) added[copy] = each_[copy]->restore(lacking[copy]);
  }));
  const auto failures = copies_.run([&](std::size_t copy) { now[copy] = each_[copy]->get(again); });
  fill_failed(now, failures, again.size());
  // Whatever no copy has but those just re-filled was removed meanwhile.
  static_cast<void>(copies_.run([&](std::size_t copy) {
    std::vector<std::string> undone;
    for (std::size_t k = 0; k < again.size(); ++k) {
      const auto is_added = [&](std::size_t other) {
        return std::find(added[other].begin(), added[other].end(), again[k]) != added[other].end();
      };
      bool elsewhere = false;
      for (std::size_t other = 0; other < now.size(); ++other) {
        elsewhere = elsewhere || (!is_added(other) && (now[other][k].failure || now[other][k].yes));
      }
      if (!elsewhere && is_added(copy)) undone.push_back(again[k]);
    }
    if (!undone.empty()) each_[copy]->remove(undone);
  }));
}

// Makes copies that differ equal to the first that has a value, unless they have changed since.
void CopiedElements::level(std::span<const std::string> names, const Results& results) const {
  static_cast<void>(copies_.run([&](std::size_t copy) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto has = [&](const auto& one) { return !one[i].failure && one[i].yes; };
      const auto first = std::find_if(results.begin(), results.end(), has);
      const ElementResult& mine = results[copy][i];
      if (first == results.end() || !has(results[copy]) || mine.value == (*first)[i].value) continue;
      static_cast<void>(cas_update(copies_.at(copy), key_of(names[i]), [&](const Observed& observed) -> std::optional<Write> {
        if (!observed.found || observed.value != mine.value) return std::nullopt;
        return Write{(*first)[i].value};
      }));
    }
  }));
}

Elements::Listing CopiedElements::fetch(const Elements::Visit& visit) const {
  if (single()) return each_.front()->fetch(visit);
  std::vector<ElementIndex::Reading> readings(each_.size());
  std::vector<std::vector<std::string>> listed(each_.size());
  const auto missed = copies_.run_missing_the_unreachable([&](std::size_t copy) {
    readings[copy] = each_[copy]->read_index([&](std::string name, std::size_t) { listed[copy].push_back(std::move(name)); });
  });
  Elements::Listing listing;
  listing.index = unite(readings);
  std::vector<std::string> names;
  for (auto& one : listed) {
    names.insert(names.end(), one.begin(), one.end());
    std::sort(one.begin(), one.end());
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (std::size_t from = 0; from < names.size(); from += names_per_window) {
    const auto window = std::span(names).subspan(from, std::min(names_per_window, names.size() - from));
    auto results = get(window);
    std::vector<Elements::Found> found;
    for (std::size_t i = 0; i < window.size(); ++i) {
      if (results[i].failure) fail(results[i].failure);
      if (!results[i].yes) continue;
      const std::size_t progress = (from + i) * index_shards / names.size();
      found.push_back({window[i], std::move(results[i].value), results[i].server, progress});
    }
    list_again(found, listed);
    for (Elements::Found& one : found) visit(one);
    listing.present += found.size();
  }
  // An index that had lost something has now all that the others have.
  if (listing.complete()) {
    static_cast<void>(copies_.run([&](std::size_t copy) {
      if (!missed[copy] && !readings[copy].complete()) each_[copy]->accept();
    }));
  }
  listing.index.names = names.size();
  return listing;
}

// `listed`: of each copy, sorted; empty where it is not known.
void CopiedElements::list_again(std::span<const Elements::Found> found, const std::vector<std::vector<std::string>>& listed) const {
  static_cast<void>(copies_.run([&](std::size_t copy) {
    std::vector<Element> unlisted;
    for (const Elements::Found& one : found) {
      if (!std::binary_search(listed[copy].begin(), listed[copy].end(), one.name)) unlisted.push_back({one.name, one.value});
    }
    if (!unlisted.empty()) each_[copy]->list(unlisted);
  }));
}

std::size_t CopiedElements::clear() {
  if (single()) return each_.front()->clear();
  std::size_t removed = 0;
  const auto failures = copies_.run([&](std::size_t copy) { removed = std::max(removed, each_[copy]->clear()); });
  if (const auto failure = failure_of_all(failures)) fail(failure);
  return removed;
}

bool CopiedElements::compact() {
  bool whole = true;
  const auto failures = copies_.run([&](std::size_t copy) { whole = each_[copy]->compact() && whole; });
  for (const auto& failure : failures) {
    if (failure) fail(failure);
  }
  return whole;
}

void CopiedElements::accept() {
  const auto failures = copies_.run([&](std::size_t copy) { each_[copy]->accept(); });
  if (const auto failure = failure_of_all(failures)) fail(failure);
}

}  // namespace mcds
