#include "common/primitives/elements_copy.hpp"

#include <algorithm>

#include "common/primitives/key_names.hpp"

namespace mcds {

namespace {

constexpr int most_rounds = 6;

std::optional<Failure> failure_of(const Cluster& cluster, const Reply& reply) {
  try {
    expect(cluster, reply);
  } catch (const Failure& failure) {
    return failure;
  }
  return std::nullopt;
}

// The flags of a tombstone; nobody else's values have them.
constexpr std::uint32_t tombstone_flags = 0x6d636473;

bool is_tombstone(const Reply& reply) {
  return reply.outcome == Outcome::hit && reply.flags == tombstone_flags && reply.value.empty();
}

Request tombstone(std::string key, WallTime now) {
  Request request = Request::set(std::move(key), {}, Exptime::after(ElementIndex::grace, now));
  request.flags = tombstone_flags;
  return request;
}

}  // namespace

// One element on its way through set().
struct ElementsCopy::Setting {
  const Element* element = nullptr;
  ElementResult result;
  bool done = false;
  bool listed = false;
  SteadyTime listed_at{};

  void fail(Failure failure) {
    result.failure = std::move(failure);
    done = true;
  }
};

ElementsCopy::ElementsCopy(const Context& context, std::string base, bool tombstones)
    : context_(context),
      base_(std::move(base)),
      values_base_(base_ + ":v"),
      tombstones_(tombstones),
      index_(context, base_, [this](std::span<const std::string> names) {
        std::vector<bool> present;
        for (const ElementResult& result : get(names)) present.push_back(result.yes || result.failure);
        return present;
      }) {}

void check_element(const Element& element) {
  const auto limit = [](const char* what, std::size_t size, std::size_t most) {
    if (size <= most) return;
    throw Failure(ErrorCode::bad_data, std::string(what) + " may have at most " + std::to_string(most) +
                                           " bytes, this one has " + std::to_string(size));
  };
  limit("an element's name", element.name.size(), max_element_size);
  limit("a value", element.value.size(), max_value_size);
}

std::string ElementsCopy::key_of(std::string_view name) const {
  return element_key(values_base_, name);
}

std::vector<ElementResult> ElementsCopy::set(std::span<const Element> elements, bool relist) {
  std::vector<Setting> all(elements.size());
  for (std::size_t i = 0; i < elements.size(); ++i) all[i].element = &elements[i];
  if (relist) {
    std::vector<Setting*> each;
    for (Setting& one : all) each.push_back(&one);
    list_missing(each);
  }
  for (int round = 0; round < most_rounds; ++round) {
    std::vector<Setting*> open;
    for (Setting& one : all) {
      if (!one.done) open.push_back(&one);
    }
    if (open.empty()) break;
    replace_existing(open);
    list_missing(open);
    if (!open.empty()) add_missing(open);
  }
  std::vector<ElementResult> results;
  results.reserve(all.size());
  for (Setting& one : all) {
    if (!one.done)
      one.fail(Contention("others keep creating and removing this element; it was not set, try again"));
    results.push_back(std::move(one.result));
  }
  return results;
}

// Leaves those that there are none of.
void ElementsCopy::replace_existing(std::vector<Setting*>& open) {
  std::vector<Request> batch;
  batch.reserve(open.size() * 2);
  for (const Setting* one : open) {
    std::string key = key_of(one->element->name);
    if (tombstones_) batch.push_back(Request::get(key));
    batch.push_back(Request::replace(std::move(key), one->element->value, Exptime::never()));
  }
  const auto replies = context_.cluster.execute(batch);
  const std::size_t each = tombstones_ ? 2 : 1;
  for (std::size_t i = 0; i < open.size(); ++i) {
    Setting& one = *open[i];
    const Reply& replaced = replies[i * each + each - 1];
    one.result.server = replaced.server;
    one.result.failure = failure_of(context_.cluster, replaced);
    one.result.yes = tombstones_ && replaced.outcome == Outcome::stored && is_tombstone(replies[i * each]);
    one.done = replaced.outcome != Outcome::not_stored;
  }
  // Who removed it need not have known it, so a name whose tombstone was replaced may not be listed.
  std::vector<Setting*> revived;
  std::copy_if(open.begin(), open.end(), std::back_inserter(revived),
               [](const Setting* one) { return one->result.yes && !one->result.failure; });
  list_again(revived);
  std::erase_if(open, [](const Setting* one) { return one->done; });
}

// Leaves those that are listed.
void ElementsCopy::list_missing(std::vector<Setting*>& missing) {
  std::vector<Setting*> unlisted;
  std::vector<const std::string*> names;
  for (Setting* one : missing) {
    if (one->listed) continue;
    unlisted.push_back(one);
    names.push_back(&one->element->name);
  }
  if (names.empty()) return;
  const SteadyTime before = context_.clock.steady();
  const auto failures = index_.list(names);
  for (std::size_t i = 0; i < unlisted.size(); ++i) {
    unlisted[i]->listed = true;
    unlisted[i]->listed_at = before;
    if (failures[i]) unlisted[i]->fail(*failures[i]);
  }
  std::erase_if(missing, [](const Setting* one) { return one->done; });
}

void ElementsCopy::add_missing(std::vector<Setting*>& missing) {
  std::vector<Request> batch;
  batch.reserve(missing.size());
  for (const Setting* one : missing)
    batch.push_back(Request::add(key_of(one->element->name), one->element->value, Exptime::never()));
  const auto replies = context_.cluster.execute(batch);
  const SteadyTime after = context_.clock.steady();
  std::vector<Setting*> late;
  for (std::size_t i = 0; i < missing.size(); ++i) {
    Setting& one = *missing[i];
    one.result.failure = failure_of(context_.cluster, replies[i]);
    one.result.yes = replies[i].outcome == Outcome::stored;
    one.done = replies[i].outcome != Outcome::not_stored;
    if (one.result.yes && after - one.listed_at > ElementIndex::grace / 2) late.push_back(&one);
  }
  list_again(late);
}

void ElementsCopy::list_again(std::span<Setting* const> late) {
  if (late.empty()) return;
  std::vector<const std::string*> names;
  for (const Setting* one : late) names.push_back(&one->element->name);
  const auto failures = index_.list(names);
  for (std::size_t i = 0; i < late.size(); ++i) {
    if (failures[i])
      late[i]->fail(UnknownOutcome("it is set, but it may not be listed; set it again with --relist",
                                   failures[i]->server()));
  }
}

std::vector<Request> ElementsCopy::gets(std::span<const std::string> names) const {
  std::vector<Request> batch;
  batch.reserve(names.size());
  for (const std::string& name : names) batch.push_back(Request::get(key_of(name)));
  return batch;
}

std::vector<ElementResult> ElementsCopy::get(std::span<const std::string> names) const {
  return found(context_.cluster.execute(gets(names)));
}

std::unique_ptr<Pending> ElementsCopy::begin_get(std::span<const std::string> names) const {
  return context_.cluster.begin(gets(names));
}

std::vector<ElementResult> ElementsCopy::finish_get(Pending& pending) const {
  return found(pending.finish());
}

std::vector<ElementResult> ElementsCopy::found(std::vector<Reply> replies) const {
  std::vector<ElementResult> results(replies.size());
  for (std::size_t i = 0; i < replies.size(); ++i) {
    results[i].server = replies[i].server;
    results[i].removed = tombstones_ && is_tombstone(replies[i]);
    results[i].yes = replies[i].outcome == Outcome::hit && !results[i].removed;
    try {
      expect_read(context_.cluster, replies[i]);
    } catch (const Failure& failure) {
      results[i].failure = failure;
    }
    results[i].value = std::move(replies[i].value);
  }
  return results;
}

std::vector<ElementResult> ElementsCopy::remove(std::span<const std::string> names) const {
  std::vector<Request> batch;
  batch.reserve(names.size() * 2);
  for (const std::string& name : names) {
    std::string key = key_of(name);
    if (!tombstones_) {
      batch.push_back(Request::remove(std::move(key)));
    } else {
      batch.push_back(Request::get(key));
      batch.push_back(tombstone(std::move(key), context_.clock.wall()));
    }
  }
  const auto replies = context_.cluster.execute(batch);
  const std::size_t each = tombstones_ ? 2 : 1;
  std::vector<ElementResult> results(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Reply& first = replies[i * each];
    const Reply& last = replies[i * each + each - 1];
    results[i].server = last.server;
    results[i].yes = tombstones_ ? first.outcome == Outcome::hit && !is_tombstone(first)
                                 : last.outcome == Outcome::deleted;
    results[i].failure = failure_of(context_.cluster, last);
  }
  return results;
}

void ElementsCopy::refill(std::span<const std::string* const> names, std::span<const Element> elements) {
  for (const auto& failure : index_.list(names)) {
    if (failure) throw Failure(*failure);
  }
  std::vector<Setting> all(elements.size());
  std::vector<Setting*> missing;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    all[i].element = &elements[i];
    missing.push_back(&all[i]);
  }
  list_missing(missing);
  if (!missing.empty()) add_missing(missing);
  for (const Setting& one : all) {
    if (one.result.failure) throw Failure(*one.result.failure);
  }
}

}  // namespace mcds
