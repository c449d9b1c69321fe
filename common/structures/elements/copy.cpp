#include "common/structures/elements/copy.hpp"

#include <algorithm>

#include "common/primitives/key_names.hpp"

namespace mcds {

namespace {

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

ElementsCopy::ElementsCopy(const Context& context, const Context& whole, std::string base)
    : context_(context),
      whole_(whole),
      base_(std::move(base)),
      values_base_(base_ + ":v"),
      tombstones_(whole.copies > 1),
      index_(
          context, base_, [this](std::span<const std::string> names) { return present(names); },
          tombstones_) {}

// In any copy: a name may be listed here alone, and the element be elsewhere alone. What is not known counts.
std::vector<bool> ElementsCopy::present(std::span<const std::string> names) const {
  std::vector<Request> batch;
  batch.reserve(names.size() * whole_.copies);
  for (const std::string& name : names) {
    const std::string key = key_of(name);
    for (const std::size_t server : copy_servers(whole_, key)) batch.push_back(Request::get(key).on(server));
  }
  const auto results = found(context_.cluster.execute(batch));
  std::vector<bool> present(names.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].yes || results[i].failure) present[i / whole_.copies] = true;
  }
  return present;
}

std::vector<ElementResult> failed_results(std::size_t count, const Failure& failure) {
  ElementResult result;
  result.failure = failure;
  return std::vector<ElementResult>(count, result);
}

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

void ElementsCopy::replace(std::span<ElementSetting* const> open) {
  std::vector<Request> batch;
  batch.reserve(open.size() * 2);
  for (const ElementSetting* one : open) {
    std::string key = key_of(one->element->name);
    if (tombstones_) batch.push_back(Request::get(key));
    batch.push_back(Request::replace(std::move(key), one->element->value, Exptime::never()));
  }
  const auto replies = context_.cluster.execute(batch);
  const std::size_t each = tombstones_ ? 2 : 1;
  for (std::size_t i = 0; i < open.size(); ++i) {
    ElementSetting& one = *open[i];
    const Reply& replaced = replies[i * each + each - 1];
    one.result.server = replaced.server;
    one.result.failure = failure_of(context_.cluster, replaced);
    one.result.yes = tombstones_ && replaced.outcome == Outcome::stored && is_tombstone(replies[i * each]);
    // Who removed it need not have known it, so a name whose tombstone was replaced may not be listed.
    one.to_list = one.result.yes;
    one.done = replaced.outcome != Outcome::not_stored;
  }
}

void ElementsCopy::add(std::span<ElementSetting* const> missing) {
  std::vector<Request> batch;
  batch.reserve(missing.size());
  for (const ElementSetting* one : missing)
    batch.push_back(Request::add(key_of(one->element->name), one->element->value, Exptime::never()));
  for (Request& mark : index_.take_marks()) batch.push_back(std::move(mark));
  const auto replies = context_.cluster.execute(batch);
  const SteadyTime after = context_.clock.steady();
  for (std::size_t i = 0; i < missing.size(); ++i) {
    ElementSetting& one = *missing[i];
    one.result.failure = failure_of(context_.cluster, replies[i]);
    one.result.yes = replies[i].outcome == Outcome::stored;
    one.done = replies[i].outcome != Outcome::not_stored;
    one.added_at = after;
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
      results[i].flood = replies[i].failure != nullptr && replies[i].failure->flood;
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

void ElementsCopy::list(std::span<const std::string* const> names) {
  for (const auto& failure : index_.list(names)) {
    if (failure) throw Failure(*failure);
  }
}

void ElementsCopy::refill(std::span<const std::string* const> names, std::span<const Element> elements) {
  std::vector<ElementSetting> all(elements.size());
  std::vector<ElementSetting*> missing;
  std::vector<const std::string*> added;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    all[i].element = &elements[i];
    missing.push_back(&all[i]);
    added.push_back(&elements[i].name);
  }
  std::vector<const std::string*> listed(names.begin(), names.end());
  listed.insert(listed.end(), added.begin(), added.end());
  const SteadyTime before = context_.clock.steady();
  list(listed);
  if (missing.empty()) return;
  add(missing);
  for (const ElementSetting& one : all) {
    if (one.result.failure) throw Failure(*one.result.failure);
  }
  if (context_.clock.steady() - before > ElementIndex::grace / 2) list(added);
}

}  // namespace mcds
