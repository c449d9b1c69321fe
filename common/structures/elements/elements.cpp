#include "common/structures/elements/elements.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <utility>

#include "common/structures/elements/indexes.hpp"

namespace mcds {

namespace {

constexpr std::size_t names_per_removal = 4096;

std::string_view checked(std::string_view name) {
  if (name.ends_with(":v"))
    throw InvalidInput("the name must not end in \":v\", because its index could be an element of another");
  return name;
}

bool any_missing(const std::vector<ElementResult>& results) {
  return std::ranges::any_of(results,
                             [](const ElementResult& result) { return !result.failure && !result.yes; });
}

// What `ask` answers about some of the names, unless that is nothing. A failure that ends it is theirs alone
// if there are others.
template <typename Ask>
void ask_again(std::span<const std::string> names, const std::vector<std::size_t>& places,
               std::vector<ElementResult>& results, const Ask& ask) {
  std::vector<std::string> some;
  for (const std::size_t place : places) some.push_back(names[place]);
  const auto asked = attempt([&] { return ask(some); });
  if (asked.failure() && some.size() == names.size()) raise(*asked.failure());
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (asked.failure())
      results[places[i]].failure = asked.failure();
    else if (asked.value())
      results[places[i]] = (*asked.value())[i];
  }
}

void tell_copies(ElementResult& result, const VersionedItem& item) {
  result.server = item.copies.front().server;
  result.copies = item.outcomes();
}

}  // namespace

void check_element(const Element& element) {
  const auto limit = [](const char* what, std::size_t size, std::size_t most) {
    if (size <= most) return;
    throw Failure(ErrorCode::bad_data, std::string(what) + " may have at most " + std::to_string(most) +
                                           " bytes, but this one has " + std::to_string(size));
  };
  limit("an element's name", element.name.size(), max_element_size);
  limit("a value", element.value.size(), max_value_size);
}

Elements::Elements(const Context& context, std::string_view structure, std::string_view name,
                   const Journal::Options& options, bool unmarked)
    : context_(context),
      structure_(structure),
      name_(name),
      options_(options),
      copies_(context),
      versions_(context),
      kept_(context, structure, checked(name), ":i", same_index_life,
            [structure = structure_, name = name_, options](Recopying& change) {
              move(change, structure, name, options);
            }) {
  static_cast<void>(copy_servers(context, kept_.key()));
  if (unmarked) kept_.use_unmarked();
  take_keys();
}

void Elements::take_keys() const {
  base_ = kept_.key() + ":v";
  const auto is_alike = [](const VersionedItem& item) {
    return !item.lost_somewhere() && !item.any_failed();
  };
  indexes_ = std::make_shared<ElementIndexes>(
      context_, copies_, versions_.in_use(), kept_.key(), [this](auto names) { return present(names); },
      [this, is_alike](auto names) { return std::ranges::all_of(versions_.read(keys_of(names)), is_alike); },
      options_);
}

bool Elements::elsewhere(bool certainly) const {
  const std::string before = kept_.key();
  if (!kept_.elsewhere(certainly)) return false;
  ++moves_;
  if (kept_.key() != before) take_keys();
  indexes_->forget_created();
  return true;
}

ElementIndex& Elements::index(std::size_t copy) const {
  return (*indexes_)[copy];
}

std::vector<std::string> Elements::keys_of(std::span<const std::string> names) const {
  std::vector<std::string> keys;
  keys.reserve(names.size());
  for (const std::string& name : names) keys.push_back(key_of(name));
  return keys;
}

std::vector<std::string> Elements::index_keys() const {
  static_cast<void>(elsewhere());
  return index(0).keys();
}

// In any copy: a name may be listed in one alone, and the element be in another. What is not known counts.
std::vector<bool> Elements::present(std::span<const std::string> names) const {
  std::vector<bool> present;
  present.reserve(names.size());
  for (const VersionedItem& item : versions_.read(keys_of(names)))
    present.push_back(item.live() || item.any_failed());
  return present;
}

// What one set created, in all copies, as long as nobody else has changed or added anything.
bool Elements::take_back(std::span<const Element> elements) const {
  std::vector<Request> gets;
  std::set<std::string> names;
  for (const Element& element : elements) {
    gets.push_back(Request::gets(key_of(element.name)));
    names.insert(element.name);
  }
  const auto is_ours = [&](std::size_t get, const Reply& there) {
    return there.value == elements[get / copies_.size()].value;
  };
  if (!mcds::take_back(context_.cluster, to_copies(context_, gets), is_ours)) return false;
  const auto taken = copies_.each([&](std::size_t copy) { return index(copy).take_back(names); });
  return taken.count(std::identity()) == copies_.size();
}

std::vector<ElementResult> Elements::get(std::span<const std::string> names) const {
  auto results = get_here(names);
  return any_missing(results) && elsewhere() ? get_here(names) : results;
}

// What is lost somewhere may be on its way to another number of copies: then it is not to be restored here.
std::vector<VersionedItem> Elements::read_here(std::span<const std::string> names) const {
  std::vector<VersionedItem> items = versions_.read(keys_of(names));
  const bool lost = std::ranges::any_of(items, std::mem_fn(&VersionedItem::lost_somewhere));
  if (lost && elsewhere()) return read_here(names);
  return items;
}

std::vector<ElementResult> Elements::get_here(std::span<const std::string> names) const {
  std::vector<VersionedItem> items = read_here(names);
  std::vector<ElementResult> results;
  results.reserve(items.size());
  for (VersionedItem& item : items) {
    ElementResult& result = results.emplace_back();
    tell_copies(result, item);
    const VersionedCopy* newest = item.newest();
    result.yes = newest != nullptr && !newest->removed;
    if (newest != nullptr) result.server = newest->server;
    if (result.yes) result.value = newest->value;
  }
  const auto unanswered = versions_.settle(items);
  for (std::size_t i = 0; i < items.size(); ++i) results[i].failure = unanswered[i];
  return results;
}

std::vector<ElementResult> Elements::remove(std::span<const std::string> names) const {
  // What removes leaves its word, which must not be under keys that nobody uses.
  const bool leaves_word = versions_.in_use();
  if (leaves_word) static_cast<void>(elsewhere());
  const auto act = [&](std::span<const std::string> some) {
    return leaves_word ? remove_here(some) : remove_only(some);
  };
  auto results = act(names);
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!results[i].failure && !results[i].yes) missing.push_back(i);
  }
  if (missing.empty()) return results;
  ask_again(names, missing, results, [&](std::span<const std::string> some) {
    return elsewhere() ? std::optional(act(some)) : std::nullopt;
  });
  return results;
}

std::vector<ElementResult> Elements::remove_only(std::span<const std::string> names) const {
  std::vector<Request> batch;
  for (std::string& key : keys_of(names)) batch.push_back(Request::remove(std::move(key)));
  std::vector<ElementResult> results;
  for (const Reply& reply : context_.cluster.execute(batch)) {
    ElementResult& result = results.emplace_back();
    result.server = reply.server;
    result.yes = reply.outcome == Outcome::deleted;
    result.failure = copy_outcome(context_, reply).failure;
  }
  return results;
}

// Where it is absent there is nothing to be removed. With two copies one that does not answer may have it.
std::vector<ElementResult> Elements::remove_here(std::span<const std::string> names) const {
  std::vector<VersionedItem> items = read_here(names);
  std::vector<ElementResult> results(items.size());
  const auto unanswered = versions_.settle(items, [](const VersionedItem& item) { return !item.live(); });
  std::vector<VersionedRemoval> removals;
  std::vector<VersionedWrite> words;
  const auto result_of = [&](const VersionedItem* item) -> ElementResult& {
    return results[static_cast<std::size_t>(item - items.data())];
  };
  for (std::size_t i = 0; i < items.size(); ++i) {
    VersionedItem& item = items[i];
    results[i].failure = unanswered[i];
    if (results[i].failure || (!item.live() && !is_degraded(item.copies))) continue;
    const auto number = item.next_number();
    if (!number)
      results[i].failure = no_version_left(item.key);
    else if (!item.live())
      words.push_back({.item = &item, .number = *number, .removed = true});
    else  // One that goes missing now is on its way to another number of copies.
      removals.push_back({.item = &item, .number = *number, .only_over_live = item.live_everywhere()});
  }
  versions_.write(words);
  for (const VersionedWrite& word : words) result_of(word.item).failure = word.item->failure_of_write();
  versions_.remove(removals);
  std::vector<std::size_t> again;
  for (const VersionedRemoval& removal : removals) {
    ElementResult& result = result_of(removal.item);
    result.failure = removal.failure;
    result.yes = !removal.failure;
    const bool gone = removal.blocked && removal.item->newest() == nullptr;
    if (gone || removal.overtaken) again.push_back(static_cast<std::size_t>(&result - results.data()));
  }
  for (std::size_t i = 0; i < items.size(); ++i) tell_copies(results[i], items[i]);
  // Those that went missing, or that another client changed first.
  if (again.empty()) return results;
  ask_again(names, again, results, [&](std::span<const std::string> some) {
    static_cast<void>(elsewhere());
    return std::optional(remove_here(some));
  });
  return results;
}

Elements::Listing Elements::fetch(const Visit& visit, bool partial) const {
  Listing listing = fetch_here(visit, partial);
  const bool nothing = listing.shards == 0 && listing.unreachable.empty();
  return nothing && elsewhere() ? fetch_here(visit, partial) : listing;
}

std::size_t Elements::clear() {
  std::size_t removed = 0;
  std::vector<std::string> names;
  const auto flush = [&] {
    for (const ElementResult& result : remove(names)) {
      if (result.failure) raise(*result.failure);
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
  if (compact_here()) return true;
  if (elsewhere()) return compact();
  if (!versions_.in_use()) return false;
  // What one copy alone seems to have lost, a fetch of all makes whole.
  return fetch_here([](Found&) {}, false).complete() && compact_here();
}

bool Elements::compact_here() {
  using Compacted = ElementIndex::Compacted;
  const auto results = expect_any(copies_.each([&](std::size_t copy) { return index(copy).compact(); }));
  const auto are = [&](Compacted what) { return results.count([&](Compacted one) { return one == what; }); };
  if (are(Compacted::nothing_there) == results.size() && elsewhere()) return compact_here();
  return are(Compacted::damaged) == 0;
}

void Elements::accept() {
  const auto there = expect_any(copies_.each([&](std::size_t copy) { return index(copy).accept(); }));
  if (!there.any(std::identity()) && elsewhere()) accept();
}

}  // namespace mcds
