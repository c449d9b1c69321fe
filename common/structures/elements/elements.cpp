#include "common/structures/elements/elements.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "common/structures/elements/index.hpp"

namespace mcds {

namespace {

constexpr std::size_t max_removed = 1 << 20;  // digests kept in memory

// A shard with more segments has more than twice as many names as were removed from all shards together.
constexpr std::size_t removed_per_segment = 2048;

std::string_view checked(std::string_view name) {
  if (!name.empty() && structure_named("table:" + std::string(name) + ":i")->name != name)
    throw InvalidInput(
        "the name must not end in ':v', ':i:s' or ':i:N:s', which are reserved for parts of tables and "
        "hashes; use another name");
  return name;
}

bool any_missing(const std::vector<ElementResult>& results) {
  return std::ranges::any_of(results,
                             [](const ElementResult& result) { return !result.failure && !result.yes; });
}

void report_copies(ElementResult& result, const VersionedItem& item) {
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
                   const Journal::Options& options)
    : context_(context),
      options_(options),
      copies_(context),
      versions_(context),
      guard_(context, structure, checked(name), ":i"),
      base_(guard_.key() + ":v"),
      indexes_(std::make_shared<ElementIndexes>(
          context_, copies_, versions_.in_use(), guard_.key(), [this](auto names) { return present(names); },
          [this](auto names) { return are_alike(names); }, options_)) {
  static_cast<void>(copy_servers(context, guard_.key()));
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
  expect_here();
  return index(0).keys();
}

bool Elements::are_alike(std::span<const std::string> names) const {
  return std::ranges::all_of(versions_.read(keys_of(names)), [](const VersionedItem& item) {
    return !item.lost_somewhere() && !item.any_failed();
  });
}

// Returns true for names that are present in any copy, because one copy may list a name and another have the
// element. An unknown state counts as present.
std::vector<bool> Elements::present(std::span<const std::string> names) const {
  std::vector<bool> present;
  present.reserve(names.size());
  for (const VersionedItem& item : versions_.read(keys_of(names)))
    present.push_back(item.live() || item.any_failed());
  return present;
}

// Removes what one set created, in all copies, unless another client has changed or added something. Returns
// false if something is left.
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
  if (!remove_created(context_.cluster, to_copies(context_, gets), is_ours)) return false;
  const auto taken = copies_.each([&](std::size_t copy) { return index(copy).take_back(names); });
  return taken.count(std::identity()) == copies_.size();
}

std::vector<ElementResult> Elements::get(std::span<const std::string> names) const {
  auto results = get_here(names);
  if (any_missing(results)) expect_here();
  return results;
}

std::vector<ElementResult> Elements::get_here(std::span<const std::string> names) const {
  std::vector<VersionedItem> items = versions_.read(keys_of(names));
  std::vector<ElementResult> results;
  results.reserve(items.size());
  for (VersionedItem& item : items) {
    ElementResult& result = results.emplace_back();
    report_copies(result, item);
    const VersionedCopy* newest = item.newest();
    result.yes = newest != nullptr && !newest->removed;
    if (newest != nullptr) result.server = newest->server;
    if (result.yes) result.value = newest->value;
  }
  const auto unanswered = versions_.settle(items);
  for (std::size_t i = 0; i < items.size(); ++i) results[i].failure = unanswered[i];
  return results;
}

std::vector<ElementResult> Elements::remove(std::span<const std::string> names) {
  // A removal leaves a tombstone, which must not be under keys that no client uses.
  if (versions_.in_use()) expect_here();
  auto results = versions_.in_use() ? remove_here(names) : remove_only(names);
  const auto is_missing = [](const ElementResult& result) { return !result.failure && !result.yes; };
  if (std::ranges::any_of(results, is_missing)) {
    const auto here = attempt([&] { expect_here(); });
    if (here.failure() && std::ranges::all_of(results, is_missing)) raise(*here.failure());
    for (ElementResult& result : results) {
      if (here.failure() && is_missing(result)) result.failure = here.failure();
    }
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (results[i].yes && !results[i].failure) removed_.push_back(digest_of_name(names[i]));
  }
  if (removed_.size() >= max_removed) compact_removed();
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

// Elements that another client changed first are removed as they are now.
std::vector<ElementResult> Elements::remove_here(std::span<const std::string> names) const {
  Removals removals = remove_copies(names);
  if (removals.changed.empty()) return std::move(removals.results);
  std::vector<std::string> changed;
  for (const std::size_t i : removals.changed) changed.push_back(names[i]);
  const auto again = attempt([&] { return remove_here(changed); });
  if (again.failure() && changed.size() == names.size()) raise(*again.failure());
  for (std::size_t i = 0; i < changed.size(); ++i) {
    ElementResult& result = removals.results[removals.changed[i]];
    if (again.failure())
      result.failure = again.failure();
    else
      result = again.value()[i];
  }
  return std::move(removals.results);
}

// An absent element needs no removal, unless one of two copies does not answer: then a tombstone is written.
Elements::Removals Elements::remove_copies(std::span<const std::string> names) const {
  std::vector<VersionedItem> items = versions_.read(keys_of(names));
  Removals done{.results = std::vector<ElementResult>(items.size())};
  std::vector<ElementResult>& results = done.results;
  const auto unanswered = versions_.settle(items, [](const VersionedItem& item) { return !item.live(); });
  std::vector<VersionedRemoval> removals;
  std::vector<VersionedWrite> words;
  const auto place_of = [&](const VersionedItem* item) {
    return static_cast<std::size_t>(item - items.data());
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
    else
      removals.push_back({.item = &item, .number = *number});
  }
  versions_.write(words);
  for (const VersionedWrite& word : words)
    results[place_of(word.item)].failure = word.item->failure_of_write();
  versions_.remove(removals);
  for (const VersionedRemoval& removal : removals) {
    const std::size_t i = place_of(removal.item);
    results[i].failure = removal.failure;
    results[i].yes = !removal.failure;
    if (removal.superseded) done.changed.push_back(i);
  }
  for (std::size_t i = 0; i < items.size(); ++i) report_copies(results[i], items[i]);
  return done;
}

std::vector<std::size_t> Elements::every_shard() {
  std::vector<std::size_t> shards(index_shards);
  std::iota(shards.begin(), shards.end(), 0);
  return shards;
}

// Compacts shards of which half or more is dead, as found by a fetch, by a client that removed many elements,
// or by a client that seals the shard. A command compacts each shard at most once, except those that it
// seals; it reads the names of these at most once more. What fails or conflicts is left to the next client.
void Elements::compact(std::span<const std::size_t> shards, std::size_t max_segments,
                       RemovedNames* removed) const {
  static_cast<void>(copies_.each([&](std::size_t copy) {
    for (const std::size_t shard : shards)
      static_cast<void>(attempt([&] { index(copy).compact(shard, max_segments, removed); }));
  }));
}

void Elements::compact_removed() {
  RemovedNames removed{std::exchange(removed_, {})};
  const std::size_t count = removed.digests.size();
  if (count == 0 || count < index_shards * options_.min_dead) return;
  std::ranges::sort(removed.digests);
  compact(every_shard(), count / removed_per_segment, &removed);
  // A few lines are left to the next client.
  if (2 * removed.waiting.size() < count) return;
  if (attempt([&] { context_.clock.sleep_for(ElementIndex::settles_after); }).failure()) return;
  removed.settled = std::exchange(removed.seen, {});
  compact(every_shard(), count / removed_per_segment, &removed);
}

void Elements::accept() {
  const auto there = expect_any(copies_.each([&](std::size_t copy) { return index(copy).accept(); }));
  if (!there.any(std::identity())) expect_here();
}

}  // namespace mcds
