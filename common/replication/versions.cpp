#include "common/replication/versions.hpp"

#include "common/base/bytes.hpp"
#include "common/primitives/cas_update.hpp"

namespace mcds {

namespace {

constexpr std::uint32_t removed_flag = 0x80000000;
constexpr std::uint32_t removed_before_versions = 0x6d636473;
constexpr std::uint32_t highest = removed_flag - 1;
constexpr std::uint32_t number_mask = highest;
constexpr auto removed_for = std::chrono::hours(1);
constexpr std::string_view removal_prefix = "removed by ";
constexpr int max_rounds = 50;

struct Rank {
  bool found;
  std::uint32_t number;
  bool removed;
  std::string_view value;
};

Rank rank_of(const VersionedCopy& copy) {
  return {copy.found, copy.number, copy.removed, copy.value};
}

// Returns true if `other` certainly counts instead of `one`; false also if they are equal or nothing decides.
bool older(const Rank& one, const Rank& other) {
  if (one.found != other.found) return other.found;
  if (one.number != other.number) return one.number < other.number;
  if (one.removed != other.removed) return other.removed;
  // A tombstone identifies its remover and stays, because removers count the copies that have theirs.
  return one.number != 0 && !one.removed && one.value < other.value;
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
  return live() &&
         std::ranges::all_of(copies, [](const VersionedCopy& copy) { return copy.failure || copy.live(); });
}

bool VersionedItem::lost_somewhere() const {
  return newest() != nullptr &&
         std::ranges::any_of(copies, [](const VersionedCopy& copy) { return !copy.failure && !copy.found; });
}

std::optional<std::uint32_t> VersionedItem::next_number() const {
  const VersionedCopy* copy = newest();
  if (copy == nullptr) return any_failed() ? first_uncertain_version : 1;
  return copy->number < highest ? std::optional(copy->number + 1) : std::nullopt;
}

CorruptData no_version_left(const std::string& key) {
  return CorruptData(
      key + " has another program's flags, above every version number; remove the key from its servers");
}

bool VersionedItem::divergent() const {
  const VersionedCopy* first = newest();
  return first != nullptr && first->number == 0 && !first->removed &&
         std::ranges::any_of(copies, [&](const VersionedCopy& copy) {
           return &copy != first && copy.live() && copy.number == 0 && copy.value != first->value;
         });
}

std::vector<CopyOutcome> VersionedItem::outcomes() const {
  std::vector<CopyOutcome> list;
  // Answers do not list a single copy, and one more allocation per element would be measurable.
  if (has_single_copy(copies.size())) return list;
  list.reserve(copies.size());
  for (const VersionedCopy& copy : copies) list.push_back({.server = copy.server, .failure = copy.failure});
  return list;
}

bool VersionedWrite::lacks(const VersionedCopy& copy) const {
  if (copy.failure) return false;
  return older(rank_of(copy), {true, number, removed, value});
}

// A client that finds its tombstone on most copies removed the value, because no other tombstone of this
// version can be on as many. One that has written none may read again what another client has done. Otherwise
// the outcome is unknown, also if a reader copied the tombstone or a setter replaced it.
void VersionedRemoval::judge() {
  const auto& copies = item->copies;
  const auto count = [&](const auto& test) {
    return static_cast<std::size_t>(std::ranges::count_if(copies, test));
  };
  const auto own = count([this](const VersionedCopy& copy) { return is_ours(copy); });
  const auto others = count([this](const VersionedCopy& copy) { return !copy.failure && !is_ours(copy); });
  const auto unknown = count([](const VersionedCopy& copy) {
    return copy.failure && copy.failure->code() == ErrorCode::unknown_outcome;
  });
  superseded = own + unknown == 0 && others != 0;
  if (superseded) return;
  failure =
      failure_of(QuorumPhase::writing, copies, [this](const VersionedCopy& copy) { return is_ours(copy); });
  // One of two copies suffices, but each of two removers may have one, and a newer item on the other copy
  // may have replaced another remover's tombstone.
  const auto met = count([this](const VersionedCopy& copy) {
    return !copy.failure && copy.found && copy.number >= number && !is_ours(copy);
  });
  if (!failure && met != 0 && 2 * own <= copies.size())
    failure = UnknownOutcome("removed, but another client may have been the one that removed it");
}

std::vector<Request> Versions::gets(Reading& reading) const {
  std::vector<Request> batch;
  batch.reserve(reading.keys.size() * context_.copies);
  for (std::string& key : reading.keys) {
    if (!in_use()) {
      batch.emplace_back().key = std::move(key);
      continue;
    }
    const auto servers = copy_servers(context_, key);
    for (std::size_t copy = 0; copy < servers.size(); ++copy) {
      if (copy < reading.unread) {
        reading.servers.push_back(servers[copy]);
        continue;
      }
      Request& request = batch.emplace_back();
      request.op = Op::gets;
      request.key = key;
      request.server = servers[copy];
    }
  }
  return batch;
}

Versions::Reading Versions::begin_read(std::vector<std::string> keys, std::size_t unread) const {
  Reading reading{.keys = std::move(keys), .unread = unread};
  auto batch = gets(reading);
  if (!batch.empty()) reading.replies = context_.cluster.begin(std::move(batch));
  return reading;
}

std::vector<VersionedItem> Versions::finish_read(Reading reading, std::vector<VersionedItem> items) const {
  std::vector<Reply> replies;
  if (reading.replies != nullptr) replies = reading.replies->finish();
  items.resize(reading.keys.size());
  auto reply = replies.begin();
  auto server = reading.servers.begin();
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!in_use())
      items[i].key = reading.replies->batch()[static_cast<std::size_t>(reply - replies.begin())].key;
    else
      items[i].key = std::move(reading.keys[i]);
    items[i].copies.resize(context_.copies);
    for (std::size_t number = 0; number < context_.copies; ++number) {
      VersionedCopy& copy = items[i].copies[number];
      copy.written = copy.begun = false;
      copy.unread = number < reading.unread;
      if (copy.unread)
        copy.server = *server++;
      else
        take(copy, std::move(*reply++));
    }
  }
  if (reading.unread != 0) read_whole(items);
  return items;
}

// An unread copy may not be assumed empty if another copy of its key holds something or failed. No value of
// these keys has been written yet.
void Versions::read_whole(std::vector<VersionedItem>& items) const {
  std::vector<std::string> keys;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].newest() == nullptr && !items[i].any_failed()) continue;
    keys.push_back(items[i].key);
    places.push_back(i);
  }
  if (keys.empty()) return;
  auto whole = finish_read(begin_read(std::move(keys)));
  for (std::size_t k = 0; k < places.size(); ++k) items[places[k]] = std::move(whole[k]);
}

VersionedItem Versions::item_of(std::string key, std::span<const Reply> replies) const {
  VersionedItem item{.key = std::move(key), .copies = {}};
  for (const Reply& reply : replies) take(item.copies.emplace_back(), Reply(reply));
  return item;
}

bool is_removal(std::string_view value, std::uint32_t flags) {
  if (flags == removed_before_versions && value.empty()) return true;
  return flags >= removed_flag && (value.empty() || value == "0" || value.starts_with(removal_prefix));
}

// Keeps `written` and `begun`, because this client's writes stay known.
void Versions::take(VersionedCopy& copy, Reply&& reply) const {
  copy.server = reply.server;
  copy.unread = false;
  copy.found = reply.outcome == Outcome::hit;
  copy.removed = false;
  copy.number = copy.flags = 0;
  copy.cas = reply.cas;
  copy.failure.reset();
  copy.flood = false;
  if (reply.failed()) {
    copy.cas = {};
    copy.value.clear();
    copy.failure = attempt([&] { expect_read(context_.cluster, reply); }).failure();
    copy.flood = reply.failure->flood;
    return;
  }
  const bool before = reply.flags == removed_before_versions && reply.value.empty();
  if (!in_use()) {
    copy.flags = reply.flags;
    copy.found = copy.found && !before;
  } else if (copy.found) {
    copy.removed = is_removal(reply.value, reply.flags);
    copy.number = before ? 0 : reply.flags & number_mask;
  }
  copy.value = std::move(reply.value);
}

void Versions::put_request(const VersionedWrite& write, const VersionedCopy& copy,
                           std::vector<Request>& batch) const {
  if (copy.found) expect_cas(context_.cluster, copy.server, copy.cas);
  Request& request = batch.emplace_back();
  request.op = copy.found ? Op::cas : Op::add;
  request.key = write.item->key;
  request.value = write.value;
  request.flags = write.number + (write.removed ? removed_flag : 0);
  request.exptime = write.exptime.value_or(write.removed ? Exptime::after(removed_for, context_.clock.wall())
                                                         : Exptime::never());
  request.cas = copy.cas;
  request.server = copy.server;
  request.must_compare = !copy.found;
}

// Returns true if the copy must be written now. If not, nothing is needed, or its failure says why.
bool Versions::is_due(VersionedWrite& write, VersionedCopy& copy, bool too_often) const {
  if (!write.lacks(copy)) return false;
  if (write.only_over_live && !copy.live()) {
    write.blocked = true;
    return false;
  }
  if (too_often)
    copy.failure = Contention("other clients kept changing the item; try again",
                              context_.cluster.address_of(copy.server));
  return !too_often;
}

void Versions::remove(std::span<VersionedRemoval> removals) const {
  std::vector<VersionedWrite> writes;
  for (VersionedRemoval& removal : removals) {
    removal.value = std::string(removal_prefix) + hex64(context_.random.bits());
    writes.push_back(removal.write());
    writes.back().only_first = true;
  }
  // The tombstone goes to the first copy that answers, then to the others. No tombstone replaces another of
  // the same version, so at most one remover finds its own on most copies. A crash in between leaves a
  // tombstone that the next reader writes to the other copies.
  write(writes);
  std::vector<VersionedWrite> others;
  for (std::size_t i = 0; i < removals.size(); ++i) {
    const auto& copies = removals[i].item->copies;
    const bool first =
        std::ranges::any_of(copies, [&](const auto& copy) { return removals[i].is_ours(copy); });
    if (first) others.push_back(removals[i].write());
  }
  write(others);
  for (VersionedRemoval& removal : removals) removal.judge();
}

void Versions::write(std::span<VersionedWrite> writes) const {
  finish_write({.writes = writes});
}

Versions::Writing Versions::begin_write(std::span<VersionedWrite> writes) const {
  Writing writing{.writes = writes};
  std::vector<Request> batch = due(writing);
  if (!batch.empty()) writing.replies = context_.cluster.begin(std::move(batch));
  return writing;
}

void Versions::finish_write(Writing writing) const {
  if (writing.replies != nullptr) take_written(writing, writing.replies->finish());
  for (auto batch = due(writing); !batch.empty(); batch = due(writing)) {
    back_off(context_, writing.round - 1);
    take_written(writing, context_.cluster.execute(batch));
  }
}

std::vector<std::size_t> Versions::unseen(std::span<const VersionedWrite> writes) const {
  const auto is_ours = [](const VersionedWrite& write, const VersionedCopy& copy) {
    return !copy.failure && copy.live() && copy.number == write.number && copy.value == write.value;
  };
  std::vector<std::size_t> suspected;
  std::vector<Request> gets;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const VersionedWrite& write = writes[i];
    const auto& copies = write.item->copies;
    const auto removed = [](const VersionedCopy& copy) { return copy.removed && !copy.failure; };
    if (std::ranges::none_of(copies, removed)) continue;
    if (quorum(copies.size()) != 1 || write.blocked || write.misread) continue;
    const auto ours = std::ranges::find_if(copies, [&](const auto& copy) { return is_ours(write, copy); });
    if (ours == copies.end()) continue;
    suspected.push_back(i);
    gets.push_back(Request::gets(write.item->key).on(ours->server));
  }
  if (suspected.empty()) return suspected;
  const auto replies = context_.cluster.execute(gets);
  std::vector<std::size_t> unseen;
  for (std::size_t k = 0; k < suspected.size(); ++k) {
    VersionedCopy now;
    take(now, Reply(replies[k]));
    if (now.failure || is_ours(writes[suspected[k]], now)) unseen.push_back(suspected[k]);
  }
  return unseen;
}

std::vector<Request> Versions::due(Writing& writing) const {
  std::vector<Request> batch;
  if (writing.round == 0) batch.reserve(writing.writes.size() * context_.copies);
  writing.sent.clear();
  for (VersionedWrite& write : writing.writes) {
    if (write.misread) continue;
    write.blocked = false;
    for (VersionedCopy& copy : write.item->copies) {
      if (is_due(write, copy, writing.round == max_rounds)) {
        const auto put = attempt([&] { put_request(write, copy, batch); });
        copy.failure = put.failure();
        if (!copy.failure) writing.sent.push_back({&write, &copy});
      }
      if (write.only_first && !copy.failure) break;
    }
  }
  ++writing.round;
  return batch;
}

void Versions::take_written(Writing& writing, std::span<const Reply> replies) const {
  std::vector<Request> again;
  std::vector<VersionedCopy*> superseded;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    const auto& [write, copy] = writing.sent[i];
    // An add to a copy that was assumed empty is refused if something is there. Then the other copies hold
    // version 1 of the value, which any other version outvotes. The caller reads all copies and writes again
    // above what they hold, from version 2^20 if nothing is held and an unread copy does not answer.
    if (std::exchange(copy->unread, false) && replies[i].outcome != Outcome::stored) {
      write->misread = true;
      write->held = write->held || !replies[i].failed();
    }
    if (replies[i].outcome == Outcome::stored) {
      copy->begun = copy->begun || !copy->live();
      copy->found = copy->written = true;
      copy->removed = write->removed;
      copy->number = write->number;
      copy->value = write->value;
      copy->cas = {};
    } else if (replies[i].failed()) {
      copy->failure = copy_outcome(context_, replies[i]).failure;
    } else if (!write->misread) {
      again.push_back(Request::gets(write->item->key).on(copy->server));
      superseded.push_back(copy);
    }
  }
  if (again.empty()) return;
  std::vector<Reply> looked = context_.cluster.execute(again);
  for (std::size_t i = 0; i < looked.size(); ++i) take(*superseded[i], std::move(looked[i]));
}

std::vector<std::optional<Failure>> Versions::settle(std::span<VersionedItem> items,
                                                     const Which& which) const {
  std::vector<std::optional<Failure>> failures;
  failures.reserve(items.size());
  for (const VersionedItem& item : items) failures.push_back(item.failure_of_read());
  // A single copy needs no repair.
  if (!in_use()) return failures;
  // Nothing is written where too little is known, because an empty copy would count once it is written.
  std::vector<char> settled;
  for (std::size_t i = 0; i < items.size(); ++i)
    settled.push_back(!failures[i] && (!which || which(items[i])) ? 1 : 0);
  std::vector<VersionedWrite> writes = writes_needed(items);
  std::erase_if(writes, [&](const VersionedWrite& one) {
    return settled[static_cast<std::size_t>(one.item - items.data())] == 0;
  });
  write(writes);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (settled[i] != 0) failures[i] = items[i].failure_of_answer();
  }
  return failures;
}

std::vector<VersionedWrite> Versions::writes_needed(std::span<VersionedItem> items) {
  std::vector<VersionedWrite> writes;
  for (VersionedItem& item : items) {
    const VersionedCopy* newest = item.newest();
    const auto is_older = [&](const VersionedCopy& copy) {
      return !copy.failure && older(rank_of(copy), rank_of(*newest));
    };
    if (newest == nullptr || std::ranges::none_of(item.copies, is_older)) continue;
    writes.push_back(
        {.item = &item, .number = newest->number, .removed = newest->removed, .value = newest->value});
  }
  return writes;
}

}  // namespace mcds
