// Counter's remove.
#include <algorithm>
#include <utility>

#include "common/structures/counter/copies.hpp"
#include "common/structures/counter/counter.hpp"
#include "common/structures/counter/failures.hpp"
#include "common/structures/counter/lives.hpp"

namespace mcds {

namespace {

// A plain counter, or what is none.
bool holds_one(const VersionedItem& item) {
  const std::uint32_t life = life_of(item);
  return std::any_of(item.copies.begin(), item.copies.end(), [&](const VersionedCopy& copy) {
    const bool other = !plain_number(copy.value) && !CounterRecord::parse(copy.value, item.copies.size());
    return copy.live() && (other || is_plain_of(copy, life));
  });
}

bool any_record(const VersionedItem& item) {
  return std::any_of(item.copies.begin(), item.copies.end(), [&](const VersionedCopy& copy) {
    return copy.found && CounterRecord::parse(copy.value, item.copies.size());
  });
}

}  // namespace

std::vector<CounterRemoval> Counter::remove(std::span<const std::string> names) {
  std::vector<bool> left(names.size());
  auto removals = context_.copies == 1 ? remove_single(names, left) : remove_copies(names, left);
  Context wider = context_;
  ++wider.copies;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!left[i] || removals[i].failure) continue;
    const bool removed = removals[i].removed;
    removals[i] = Counter(wider, names_).remove(names.subspan(i, 1)).front();
    removals[i].removed = removals[i].removed || removed;
  }
  return removals;
}

std::vector<CounterRemoval> Counter::remove_single(std::span<const std::string> names,
                                                   std::vector<bool>& left) const {
  std::vector<Request> requests;
  for (const std::string& name : names) {
    const std::string key = key_of(name);
    if (look_at(key, 1)) requests.push_back(*look_at(key, 0));
    requests.push_back(Request::remove(key));
  }
  const auto replies = context_.cluster.execute(requests);
  std::vector<CounterRemoval> removals;
  std::vector<Request> looks;
  std::vector<std::size_t> looked;
  bool was_removed = false;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (requests[i].op == Op::get) {
      if (!is_of_several(replies[i])) continue;
      was_removed = tells_of_removal(replies[i].value, replies[i].flags);
      looks.push_back(*look_at(requests[i].key, 1));
      looked.push_back(removals.size());
      continue;
    }
    CounterRemoval& removal = removals.emplace_back();
    removal.server = replies[i].server;
    const bool empty = std::exchange(was_removed, false);
    removal.removed = replies[i].outcome == Outcome::deleted && !empty;
    if (!removal.removed) keep_failure(removal, [&] { expect(context_.cluster, replies[i]); });
  }
  if (looks.empty()) return removals;
  const auto seen = context_.cluster.execute(looks);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    left[looked[i]] = is_of_several(seen[i]);
    if (!seen[i].failed()) continue;
    removals[looked[i]].failure =
        UnknownOutcome("removed from one server; another that may have a copy does not answer",
                       context_.cluster.address_of(seen[i].server));
  }
  return removals;
}

// Of an exact counter, a record of the removal stays in every copy. Of a plain one, only where a copy does not answer, the
// others keep word of it: a new life that has not begun to count.
std::vector<CounterRemoval> Counter::remove_copies(std::span<const std::string> names,
                                                   std::vector<bool>& left) const {
  const Versions versions(context_);
  std::vector<std::string> keys;
  std::vector<Request> requests;
  for (const std::string& name : names) {
    keys.push_back(key_of(name));
    for (const std::size_t server : copy_servers(context_, keys.back()))
      requests.push_back(Request::gets(keys.back()).on(server));
    if (auto look = look_at(keys.back(), context_.copies)) requests.push_back(std::move(*look));
  }
  const auto replies = context_.cluster.execute(requests);
  std::vector<VersionedItem> items;
  for (std::size_t i = 0, at = 0; i < names.size(); ++i) {
    items.push_back(versions.item_of(keys[i], std::span(replies).subspan(at, context_.copies)));
    at += context_.copies;
    if (!look_at(keys[i], context_.copies)) continue;
    left[i] = is_of_several(replies[at]);
    ++at;
  }
  std::vector<CounterRemoval> removals(names.size());
  std::vector<VersionedItem*> plain;
  for (std::size_t i = 0; i < items.size(); ++i) {
    std::optional<bool> removed;
    if (any_record(items[i])) removed = CounterCopies(context_, names[i], keys[i]).remove(items[i]);
    removals[i].removed = removed.value_or(holds_one(items[i]));
    if (!removed) plain.push_back(&items[i]);
  }
  remove_plain(versions, plain);
  for (VersionedItem* item : plain) {
    // Another client may have removed it meanwhile.
    CounterRemoval& removal = removals[static_cast<std::size_t>(item - items.data())];
    const auto is_written = [](const VersionedCopy& copy) { return copy.written; };
    if (!item->any_failed())
      removal.removed = removal.removed && std::any_of(item->copies.begin(), item->copies.end(), is_written);
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    removals[i].server = items[i].copies.front().server;
    removals[i].copies = items[i].outcomes();
    removals[i].failure = items[i].failure_of_write();
  }
  return removals;
}

void Counter::remove_plain(const Versions& versions, std::span<VersionedItem* const> items) const {
  if (items.empty()) return;
  std::vector<Request> requests;
  std::vector<VersionedCopy*> asked;
  std::vector<Result<std::uint32_t>> numbers;
  for (VersionedItem* item : items) {
    numbers.push_back(attempt([&] { return next_life(*item); }));
    for (VersionedCopy& copy : item->copies) {
      if (copy.failure || !copy.found || item->any_failed()) continue;
      requests.push_back(Request::remove(item->key).on(copy.server));
      asked.push_back(&copy);
    }
  }
  const auto replies = context_.cluster.execute(requests);
  for (std::size_t i = 0; i < replies.size(); ++i) {
    asked[i]->failure = copy_outcome(context_, replies[i]).failure;
    asked[i]->found = false;
    asked[i]->written = replies[i].outcome == Outcome::deleted;
  }
  std::vector<VersionedWrite> writes;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i]->any_failed() && !numbers[i].failure())
      writes.push_back({.item = items[i],
                        .number = numbers[i].value(),
                        .removed = true,
                        .value = "0",
                        .exptime = Exptime::never()});
  }
  versions.write(writes);
}

}  // namespace mcds
