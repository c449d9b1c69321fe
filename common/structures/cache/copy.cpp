#include "common/structures/cache/copy.hpp"

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/primitives/several/quorum.hpp"

namespace mcds {

namespace {

bool looks_like_ours(std::string_view value) {
  return value.starts_with("K1 ") || value.starts_with("P1 ");
}

bool has_record(const Result<std::optional<CacheRecord>>& copy) {
  return copy.value() && !copy.value()->placeholder;
}

}  // namespace

WallTime plus(WallTime time, Duration duration) {
  return time + std::chrono::floor<std::chrono::microseconds>(duration);
}

std::string cache_identity_of(std::string_view value) {
  const auto record = decode_cache_record(value);
  return record ? record->build : digest128(value);
}

std::optional<CacheRecord> cache_record_of(const Context& context, const std::string& key,
                                           std::string_view value, std::size_t server) {
  auto record = decode_cache_record(value);
  if (record || looks_like_ours(value)) return record;
  throw CorruptData(key + " holds another program's value, not a cache entry; use another key or remove it",
                    context.cluster.address_of(server));
}

bool is_servers_failure(ErrorCode code) {
  return may_pass(code) || code == ErrorCode::access_denied;
}

CacheRecord* newest_of(CacheCopies& copies) {
  CacheRecord* newest = nullptr;
  for (auto& copy : copies) {
    if (copy.failure() || !copy.value() || copy.value()->placeholder) continue;
    if (newest == nullptr || copy.value()->newer_than(*newest)) newest = &*copy.value();
  }
  return newest;
}

CacheCopies expect_answer(CacheCopies copies) {
  if (const auto failure = failure_of(Part::reading, copies, has_record)) raise(*failure);
  return copies;
}

bool is_done(const CacheCopies& copies, const CacheRecord& record) {
  return !failure_of(Part::answering, copies, [&](const auto& copy) {
    return has_record(copy) && copy.value()->build == record.build;
  });
}

std::vector<CopyOutcome> cache_outcomes(const Context& context, const std::string& key,
                                        const EachResult<bool>& yes) {
  auto outcomes = copy_outcomes(context, key, yes.failures());
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (!outcomes[i].failure) outcomes[i].yes = yes[i].value();
  }
  return outcomes;
}

std::vector<CopyOutcome> found_outcomes(const Context& context, const std::string& key,
                                        const CacheCopies& found) {
  return cache_outcomes(context, key, found.mapped([](const std::optional<CacheRecord>& record) {
    return record && !record->placeholder && !record->removed();
  }));
}

}  // namespace mcds
