#include "common/structures/cache/tags.hpp"

#include <algorithm>
#include <utility>

#include "common/base/bytes.hpp"
#include "common/primitives/key_names.hpp"

namespace mcds {

namespace {

constexpr std::uint64_t lowest_number = std::uint64_t{1} << 62;
constexpr int max_increments = 3;

}  // namespace

CacheTags::CacheTags(const Context& context, std::vector<std::string> names)
    : context_(context.in_copies(1)), names_(std::move(names)) {
  for (const std::string& name : names_) keys_.push_back(structure_key(context_, "cachetag", name));
}

// Returns a random number. All have 19 digits and stay below 2^63, above which old servers refuse increments.
std::string CacheTags::number() const {
  return std::to_string(lowest_number | (context_.random.bits() >> 3));
}

std::vector<CacheTag> CacheTags::take(std::span<const Reply> replies) const {
  std::vector<CacheTag> tags;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    CacheTag& tag = tags.emplace_back(names_[i]);
    if (expect_read(context_.cluster, replies[i]).outcome == Outcome::miss) continue;
    tag.number = replies[i].value;
    if (!parse_u64(tag.number))
      throw CorruptData(
          keys_[i] + " holds another program's data, not a tag; use another tag or remove the key",
          context_.cluster.address_of(replies[i].server));
  }
  return tags;
}

std::vector<CacheTag> CacheTags::read() const {
  if (empty()) return {};
  std::vector<Request> batch;
  ask(batch);
  return take(context_.cluster.execute(batch));
}

std::vector<CacheTag> CacheTags::made(std::vector<CacheTag> tags) const {
  std::vector<std::string> names;
  for (const CacheTag& tag : tags) {
    if (tag.number.empty()) names.push_back(tag.name);
  }
  if (names.empty()) return tags;
  const CacheTags missing(context_, std::move(names));
  std::vector<Request> batch;
  for (const std::string& key : missing.keys_)
    batch.push_back(Request::add_and_get(key, number(), Exptime::never()));
  const std::vector<CacheTag> created = missing.take(context_.cluster.execute(batch));
  auto next = created.begin();
  for (CacheTag& tag : tags) {
    if (tag.number.empty()) tag.number = next++->number;
  }
  return tags;
}

// A tag that may have been incremented is incremented again.
std::vector<CacheTags::Expired> CacheTags::expire() const {
  std::vector<Expired> expired(keys_.size());
  std::vector<std::size_t> left(keys_.size());
  for (std::size_t i = 0; i < left.size(); ++i) left[i] = i;
  for (int attempt = 1; !left.empty(); ++attempt) {
    std::vector<Request> batch;
    for (const std::size_t i : left) batch.push_back(Request::incr_existing(keys_[i], 1));
    const std::vector<Reply> replies = context_.cluster.execute(batch);
    std::vector<std::size_t> unknown;
    for (std::size_t k = 0; k < replies.size(); ++k) {
      Expired& one = expired[left[k]];
      one.server = replies[k].server;
      if (replies[k].unknown() && attempt < max_increments) {
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
