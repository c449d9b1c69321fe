#include "common/structures/cache/tags.hpp"

#include <algorithm>
#include <utility>

#include "common/base/bytes.hpp"
#include "common/primitives/key_names.hpp"

namespace mcds {

namespace {

constexpr std::uint64_t lowest_number = std::uint64_t{1} << 62;
constexpr int most_increments = 3;

// Throws CorruptData for what is no tag.
void expect_number(const Context& context, const std::string& key, const VersionedCopy* newest) {
  if (newest == nullptr || parse_u64(newest->value)) return;
  throw CorruptData(key + " holds another program's value, not a tag; use another tag or remove it",
                    context.cluster.address_of(newest->server));
}

}  // namespace

CacheTags::CacheTags(const Context& context, std::vector<std::string> names)
    : context_(context), names_(std::move(names)), versions_(context) {
  for (const std::string& name : names_) keys_.push_back(structure_key(context_, "cachetag", name));
}

// All have as many digits, so that of two written at once the larger is the same as text and as number; and
// stay below 2^63, above which old servers refuse some increments.
std::string CacheTags::number() const {
  return std::to_string(lowest_number | (context_.random.bits() >> 3));
}

std::vector<CacheTag> CacheTags::take(std::span<const std::span<const Reply>> copies) const {
  std::vector<VersionedItem> items;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    std::vector<Reply> replies;
    for (const auto& copy : copies)
      replies.push_back(
          i < copy.size() ? copy[i] : Reply::failed_with(ReplyFailure::Kind::unreachable, "not asked", 0));
    items.push_back(versions_.item_of(keys_[i], replies));
  }
  return judge(std::move(items));
}

std::vector<CacheTag> CacheTags::judge(std::vector<VersionedItem> items) const {
  for (const auto& failure : versions_.settle(items)) {
    if (failure) raise(*failure);
  }
  std::vector<CacheTag> tags;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const VersionedCopy* newest = items[i].newest();
    tags.push_back({names_[i], newest == nullptr ? std::string() : newest->value});
    expect_number(context_, keys_[i], newest);
  }
  return tags;
}

std::vector<CacheTag> CacheTags::made(std::vector<CacheTag> tags) const {
  std::vector<std::string> names;
  for (const CacheTag& tag : tags) {
    if (tag.number.empty()) names.push_back(tag.name);
  }
  if (names.empty()) return tags;
  const CacheTags missing(context_, names);
  std::vector<VersionedItem> items(names.size());
  if (versions_.in_use()) {
    items = versions_.read(missing.keys_);
    std::vector<VersionedWrite> writes;
    for (VersionedItem& item : items) {
      if (const auto failure = item.failure_of_read()) raise(*failure);
      const auto number = item.next_number();
      if (!number) throw no_version_left(item.key);
      if (!item.live()) writes.push_back({.item = &item, .number = *number, .value = missing.number()});
    }
    versions_.write(writes);
    for (const VersionedItem& item : items) {
      if (const auto failure = item.failure_of_write()) raise(*failure);
    }
  } else {
    std::vector<Request> batch;
    for (const std::string& key : missing.keys_)
      batch.push_back(Request::add_and_get(key, missing.number(), Exptime::never()));
    const std::vector<Reply> replies = context_.cluster.execute(batch);
    for (std::size_t i = 0; i < replies.size(); ++i)
      items[i] = versions_.item_of(missing.keys_[i], std::span(&replies[i], 1));
  }
  const std::vector<CacheTag> created = missing.judge(std::move(items));
  auto next = created.begin();
  for (CacheTag& tag : tags) {
    if (tag.number.empty()) tag.number = next++->number;
  }
  return tags;
}

std::vector<CacheTags::Expired> CacheTags::expire() const {
  if (!versions_.in_use()) return expire_only();
  std::vector<VersionedItem> items = versions_.read(keys_);
  std::vector<Expired> expired(items.size());
  std::vector<VersionedWrite> writes;
  for (std::size_t i = 0; i < items.size(); ++i) {
    VersionedItem& item = items[i];
    expired[i].found = item.live();
    expired[i].server = item.copies.front().server;
    expired[i].failure = item.failure_of_read();
    if (!expired[i].failure && item.live())
      expired[i].failure = attempt([&] { expect_number(context_, item.key, item.newest()); }).failure();
    // A copy that does not answer may have a number that counts again.
    if (expired[i].failure || (!item.live() && !item.any_failed())) continue;
    if (const auto number = item.next_number())
      writes.push_back({.item = &item, .number = *number, .value = this->number()});
    else
      expired[i].failure = no_version_left(item.key);
  }
  versions_.write(writes);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!expired[i].failure) expired[i].failure = items[i].failure_of_write();
    expired[i].copies = items[i].outcomes();
  }
  return expired;
}

// What may have been incremented is incremented again.
std::vector<CacheTags::Expired> CacheTags::expire_only() const {
  std::vector<Expired> expired(keys_.size());
  std::vector<std::size_t> left(keys_.size());
  for (std::size_t i = 0; i < left.size(); ++i) left[i] = i;
  for (int attempt = 1; !left.empty(); ++attempt) {
    std::vector<Request> batch;
    for (const std::size_t i : left) batch.push_back(Request::incr(keys_[i], 1));
    const std::vector<Reply> replies = context_.cluster.execute(batch);
    std::vector<std::size_t> unknown;
    for (std::size_t k = 0; k < replies.size(); ++k) {
      Expired& one = expired[left[k]];
      one.server = replies[k].server;
      if (replies[k].unknown() && attempt < most_increments) {
        unknown.push_back(left[k]);
        continue;
      }
      one.failure = mcds::attempt([&] { expect(context_.cluster, replies[k]); }).failure();
      one.found = one.found || replies[k].outcome == Outcome::stored;
    }
    left = std::move(unknown);
  }
  return expired;
}

bool tags_agree(const Context& context, const CacheRecord& record, std::vector<CacheTag> named) {
  const auto has = [](const std::vector<CacheTag>& tags, const CacheTag& tag) {
    return std::ranges::any_of(tags, [&](const CacheTag& one) { return one.name == tag.name; });
  };
  const auto as_it_was = [&](const CacheTag& tag) {
    return !tag.number.empty() && std::ranges::any_of(record.tags, [&](const auto& one) {
      return one.name == tag.name && one.number == tag.number;
    });
  };
  if (!std::ranges::all_of(named, as_it_was)) return false;
  std::vector<std::string> others;
  for (const CacheTag& tag : record.tags) {
    if (!has(named, tag)) others.push_back(tag.name);
  }
  const std::vector<CacheTag> now = CacheTags(context, std::move(others)).read();
  return std::ranges::all_of(now, as_it_was);
}

std::vector<std::string> tags_expired(const Context& context, const CacheRecord& record) {
  std::vector<std::string> names;
  for (const CacheTag& tag : record.tags) names.push_back(tag.name);
  const std::vector<CacheTag> now = CacheTags(context, std::move(names)).read();
  std::vector<std::string> expired;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (now[i].number.empty() || now[i].number != record.tags[i].number) expired.push_back(now[i].name);
  }
  return expired;
}

}  // namespace mcds
