#include "common/primitives/versions.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/primitives/cas_update.hpp"

namespace mcds {

namespace {

constexpr std::uint32_t removed_flag = 0x80000000;
constexpr std::uint32_t removed_before_versions = 0x6d636473;
constexpr std::uint32_t highest = removed_flag - 1;
constexpr std::uint32_t number_mask = highest;
constexpr auto removed_for = std::chrono::hours(1);
constexpr int most_rounds = 50;

struct Rank {
  bool found;
  std::uint32_t number;
  bool removed;
  std::string_view value;
};

Rank rank_of(const VersionedCopy& copy) {
  return {copy.found, copy.number, copy.removed, copy.value};
}

// Whether the other counts for sure; of two that are alike, or that nothing decides between, none does.
bool older(const Rank& one, const Rank& other) {
  if (one.found != other.found) return other.found;
  if (one.number != other.number) return one.number < other.number;
  if (one.removed != other.removed) return other.removed;
  return one.number != 0 && one.value < other.value;
}

}  // namespace

const VersionedCopy* VersionedItem::newest() const {
  const VersionedCopy* newest = nullptr;
  for (const VersionedCopy& copy : copies) {
    if (copy.failure || !copy.found) continue;
    if (newest == nullptr || older(rank_of(*newest), rank_of(copy))) newest = &copy;
  }
  return newest;
}

bool VersionedItem::live_everywhere() const {
  return live() && std::all_of(copies.begin(), copies.end(),
                               [](const VersionedCopy& copy) { return copy.failure || copy.live(); });
}

bool VersionedItem::lost_somewhere() const {
  return newest() != nullptr && std::any_of(copies.begin(), copies.end(), [](const VersionedCopy& copy) {
           return !copy.failure && !copy.found;
         });
}

bool VersionedItem::any_failed() const {
  return std::any_of(copies.begin(), copies.end(), [](const auto& copy) { return copy.failure.has_value(); });
}

std::optional<std::uint32_t> VersionedItem::next_number() const {
  const VersionedCopy* copy = newest();
  if (copy == nullptr) return any_failed() ? first_in_doubt : 1;
  return copy->number < highest ? std::optional(copy->number + 1) : std::nullopt;
}

CorruptData no_version_left(const std::string& key) {
  return CorruptData(key +
                     " has flags of another program, above every version; remove the key from its servers");
}

std::optional<Failure> VersionedItem::failure_of_read() const {
  std::vector<std::optional<Failure>> failures;
  for (const VersionedCopy& copy : copies) failures.push_back(copy.failure);
  return failure_of_all(failures);
}

std::optional<Failure> VersionedItem::failure_of_write() const {
  if (auto failure = failure_of_read()) return failure;
  const auto failed =
      std::find_if(copies.begin(), copies.end(), [](const auto& copy) { return copy.failure.has_value(); });
  const auto done = static_cast<std::size_t>(
      std::count_if(copies.begin(), copies.end(), [](const auto& copy) { return !copy.failure; }));
  if (enough_written(done, copies.size())) return std::nullopt;
  return UnknownOutcome("only " + std::to_string(done) + " of " + std::to_string(copies.size()) +
                            " copies could be written; try again when more servers answer",
                        failed->failure->server());
}

bool VersionedItem::divergent() const {
  const VersionedCopy* first = newest();
  return first != nullptr && first->number == 0 && !first->removed &&
         std::any_of(copies.begin(), copies.end(), [&](const VersionedCopy& copy) {
           return copy.live() && copy.number == 0 && copy.value != first->value;
         });
}

std::vector<CopyOutcome> VersionedItem::outcomes() const {
  std::vector<CopyOutcome> list;
  for (std::size_t i = 0; copies.size() > 1 && i < copies.size(); ++i)
    list.push_back({copies[i].server, {}, copies[i].failure});
  return list;
}

bool VersionedWrite::lacks(const VersionedCopy& copy) const {
  if (copy.failure) return false;
  return older(rank_of(copy), {true, number, removed, value});
}

std::vector<Request> Versions::gets(std::span<const std::string> keys) const {
  std::vector<Request> batch;
  batch.reserve(keys.size() * context_.copies);
  for (const std::string& key : keys) {
    if (!in_use()) {
      batch.push_back(Request::get(key));
      continue;
    }
    for (const std::size_t server : copy_servers(context_, key))
      batch.push_back(Request::gets(key).on(server));
  }
  return batch;
}

std::unique_ptr<Pending> Versions::begin_read(std::span<const std::string> keys) const {
  return context_.cluster.begin(gets(keys));
}

std::vector<VersionedItem> Versions::read(std::span<const std::string> keys) const {
  return finish_read(*begin_read(keys));
}

std::vector<VersionedItem> Versions::finish_read(Pending& pending) const {
  std::vector<Reply> replies = pending.finish();
  const std::span<const Request> batch = pending.batch();
  std::vector<VersionedItem> items(replies.size() / context_.copies);
  for (std::size_t i = 0; i < replies.size(); ++i) {
    VersionedItem& item = items[i / context_.copies];
    if (item.copies.empty()) item.key = batch[i].key;
    take(item.copies.emplace_back(), std::move(replies[i]));
  }
  return items;
}

VersionedItem Versions::item_of(std::string key, std::span<const Reply> replies) const {
  VersionedItem item{.key = std::move(key), .copies = {}};
  for (const Reply& reply : replies) take(item.copies.emplace_back(), reply);
  return item;
}

bool is_removal(std::string_view value, std::uint32_t flags) {
  if (flags == removed_before_versions && value.empty()) return true;
  return flags >= removed_flag && (value.empty() || value == "0");
}

void Versions::take(VersionedCopy& copy, Reply reply) const {
  const bool written = copy.written;
  copy = {.server = reply.server, .written = written};
  copy.failure = attempt([&] { expect_read(context_.cluster, reply); }).failure();
  if (copy.failure) {
    copy.flood = reply.failure != nullptr && reply.failure->flood;
    return;
  }
  copy.found = reply.outcome == Outcome::hit;
  copy.cas = reply.cas;
  if (in_use() && copy.found) {
    const bool before = reply.flags == removed_before_versions && reply.value.empty();
    copy.removed = is_removal(reply.value, reply.flags);
    copy.number = before ? 0 : reply.flags & number_mask;
  }
  copy.value = std::move(reply.value);
}

Request Versions::request_for(const VersionedWrite& write, const VersionedCopy& copy) const {
  if (copy.found && copy.cas.value == 0) {
    throw NotApplied(ErrorCode::refused, "the server does not support cas; start memcached without -C",
                     context_.cluster.address_of(copy.server));
  }
  const Exptime exptime = write.exptime.value_or(
      write.removed ? Exptime::after(removed_for, context_.clock.wall()) : Exptime::never());
  const std::string& key = write.item->key;
  Request request = copy.found ? Request::compare_and_set(key, write.value, exptime, copy.cas)
                               : Request::add(key, write.value, exptime).relying_on_cas();
  request.flags = write.number + (write.removed ? removed_flag : 0);
  return std::move(request).on(copy.server);
}

void Versions::write(std::span<VersionedWrite> writes) const {
  struct Sent {
    VersionedWrite* write;
    VersionedCopy* copy;
  };
  for (int round = 0;; ++round) {
    std::vector<Request> batch;
    std::vector<Sent> sent;
    for (VersionedWrite& write : writes) {
      write.blocked = false;
      for (VersionedCopy& copy : write.item->copies) {
        if (!write.lacks(copy)) continue;
        if (write.only_over_live && !copy.live()) {
          write.blocked = true;
          continue;
        }
        if (round == most_rounds) {
          copy.failure = Contention("other clients kept changing it; try again",
                                    context_.cluster.address_of(copy.server));
          continue;
        }
        const auto request = attempt([&] { return request_for(write, copy); });
        copy.failure = request.failure();
        if (copy.failure) continue;
        batch.push_back(request.value());
        sent.push_back({&write, &copy});
      }
    }
    if (batch.empty()) return;
    back_off(context_, round);
    const std::vector<Reply> replies = context_.cluster.execute(batch);
    std::vector<Request> again;
    std::vector<Sent> overtaken;
    for (std::size_t i = 0; i < sent.size(); ++i) {
      const auto& [write, copy] = sent[i];
      if (replies[i].outcome == Outcome::stored) {
        *copy = {.server = copy->server,
                 .found = true,
                 .removed = write->removed,
                 .written = true,
                 .number = write->number,
                 .value = write->value};
      } else if (replies[i].failed()) {
        copy->failure = copy_outcome(context_, replies[i]).failure;
      } else if (write->once) {
        copy->failure = Contention("it changed meanwhile", context_.cluster.address_of(copy->server));
      } else {
        again.push_back(Request::gets(write->item->key).on(copy->server));
        overtaken.push_back(sent[i]);
      }
    }
    if (again.empty()) continue;
    std::vector<Reply> looked = context_.cluster.execute(again);
    for (std::size_t i = 0; i < looked.size(); ++i) take(*overtaken[i].copy, std::move(looked[i]));
  }
}

std::vector<VersionedWrite> Versions::owed(std::span<VersionedItem> items) {
  std::vector<VersionedWrite> writes;
  for (VersionedItem& item : items) {
    const VersionedCopy* newest = item.newest();
    const auto is_older = [&](const VersionedCopy& copy) {
      return !copy.failure && older(rank_of(copy), rank_of(*newest));
    };
    if (newest == nullptr || std::none_of(item.copies.begin(), item.copies.end(), is_older)) continue;
    writes.push_back(
        {.item = &item, .number = newest->number, .removed = newest->removed, .value = newest->value});
  }
  return writes;
}

}  // namespace mcds
