#include "common/primitives/elements.hpp"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "common/base/bytes.hpp"
#include "common/base/json.hpp"
#include "common/primitives/journal.hpp"
#include "common/primitives/key_names.hpp"

namespace mcds {

namespace {

constexpr int most_rounds = 6;
constexpr std::size_t window = 4096;
constexpr std::size_t lines_per_append = 2000;
constexpr std::size_t bytes_per_append = 128 * 1024;

std::size_t shard_of(std::string_view name) { return crc32(name) % index_shards; }

Failure failure_of(const Cluster& cluster, const Reply& reply) {
  try {
    expect(cluster, reply);
  } catch (const Failure& failure) {
    return failure;
  }
  return {ErrorCode::internal, "a reply that did not fail was taken for a failure"};
}

std::int64_t unix_seconds(WallTime time) { return std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count(); }

// When a line was written, by its writer's clock.
std::int64_t seconds_of(const JournalLine& line) {
  return static_cast<std::int64_t>(parse_hex64("00000000" + line.id.substr(0, 8)).value_or(0));
}

}  // namespace

void check_element_base_name(std::string_view name) {
  if (name.ends_with(":v")) throw InvalidInput("the name must not end in \":v\": its index could be another's element");
}

std::string Elements::key_of(std::string_view name) const { return element_key(base_ + ":v", name); }

std::string Elements::line_operation() const {
  const auto now = static_cast<std::uint64_t>(unix_seconds(context_.clock.wall())) & 0xffffffff;
  return hex64(now << 32 | (context_.random.bits() & 0xffffffff));
}

// One element on its way through set().
struct Elements::Pending {
  const Element* element;
  Outcome outcome;
  bool done = false;
  bool listed = false;
  SteadyTime listed_at{};
};

std::vector<Elements::Outcome> Elements::set(std::span<const Element> elements) {
  std::vector<Pending> all;
  for (const Element& element : elements) all.push_back({&element, {}, false, false, {}});
  for (int round = 0; round < most_rounds; ++round) {
    std::vector<Pending*> open;
    std::vector<Request> batch;
    for (Pending& one : all) {
      if (one.done) continue;
      open.push_back(&one);
      batch.push_back(Request::replace(key_of(one.element->name), one.element->value, Exptime::never()));
    }
    if (open.empty()) break;
    auto replies = context_.cluster.execute(batch);
    std::vector<Pending*> missing;
    for (std::size_t i = 0; i < open.size(); ++i) {
      open[i]->outcome.server = replies[i].server;
      open[i]->done = replies[i].outcome != mcds::Outcome::not_stored;
      if (replies[i].failed()) open[i]->outcome.failure = failure_of(context_.cluster, replies[i]);
      if (!open[i]->done) missing.push_back(open[i]);
    }
    std::vector<const std::string*> unlisted;
    for (const Pending* one : missing) {
      if (!one->listed) unlisted.push_back(&one->element->name);
    }
    std::vector<std::optional<Failure>> failures(unlisted.size());
    const SteadyTime before = context_.clock.steady();
    if (!unlisted.empty()) list(unlisted, failures);
    std::size_t next = 0;
    batch.clear();
    open.clear();
    for (Pending* one : missing) {
      if (!one->listed) {
        if (const auto& failure = failures[next++]) {
          one->outcome.failure = failure;
          one->done = true;
          continue;
        }
        one->listed = true;
        one->listed_at = before;
      }
      open.push_back(one);
      batch.push_back(Request::add(key_of(one->element->name), one->element->value, Exptime::never()));
    }
    if (batch.empty()) continue;
    replies = context_.cluster.execute(batch);
    const SteadyTime after = context_.clock.steady();
    std::vector<const std::string*> late;
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (replies[i].failed()) open[i]->outcome.failure = failure_of(context_.cluster, replies[i]);
      if (replies[i].outcome == mcds::Outcome::stored) open[i]->outcome.yes = true;
      open[i]->done = replies[i].outcome != mcds::Outcome::not_stored;
      if (open[i]->outcome.yes && after - open[i]->listed_at > grace / 2) late.push_back(&open[i]->element->name);
    }
    if (!late.empty()) {
      std::vector<std::optional<Failure>> late_failures(late.size());
      list(late, late_failures);
      std::size_t index = 0;
      for (Pending* one : open) {
        const bool was_late = one->outcome.yes && after - one->listed_at > grace / 2;
        if (was_late && late_failures[index++]) {
          one->outcome.failure = UnknownOutcome("it is set, but whether it is listed is not known; set it again after removing it");
        }
      }
    }
  }
  std::vector<Outcome> outcomes;
  for (Pending& one : all) {
    if (!one.done) one.outcome.failure = Contention("others keep creating and removing this element; nothing was changed, try again");
    outcomes.push_back(std::move(one.outcome));
  }
  return outcomes;
}

// All shards concerned at once: appends that need more than one step go on one by one.
void Elements::list(std::span<const std::string* const> names, std::vector<std::optional<Failure>>& failures) {
  std::array<std::vector<std::size_t>, index_shards> by_shard;
  for (std::size_t i = 0; i < names.size(); ++i) by_shard[shard_of(*names[i])].push_back(i);
  for (std::size_t shard = 0; shard < index_shards; ++shard) {
    std::vector<const std::string*> chosen;
    for (const std::size_t index : by_shard[shard]) chosen.push_back(names[index]);
    if (chosen.empty()) continue;
    try {
      list_shard(shard, chosen);
    } catch (const UnknownOutcome& failure) {
      // Listed or not, the element is not set: that much is known.
      for (const std::size_t index : by_shard[shard]) failures[index] = NotApplied(ErrorCode::unavailable, failure.what(), failure.server());
    } catch (const Failure& failure) {
      for (const std::size_t index : by_shard[shard]) failures[index] = failure;
    }
  }
}

void Elements::list_shard(std::size_t shard, std::span<const std::string* const> names) {
  Journal journal(context_, shard_key(shard));
  std::vector<JournalLine> lines;
  std::size_t bytes = 0;
  std::string operation = line_operation();
  bool sealed = false;
  const auto flush = [&] {
    if (lines.empty()) return;
    const Journal::Appended appended = journal.append(lines);
    sealed = sealed || appended.sealed;
    if (appended.created) {
      const JournalLine line{Change::add, journal_line_id(line_operation(), 0), std::to_string(shard)};
      Journal(context_, manifest_key()).append(std::span(&line, 1));
    }
    lines.clear();
    bytes = 0;
    operation = line_operation();
  };
  for (const std::string* name : names) {
    lines.push_back({Change::add, journal_line_id(operation, lines.size()), quote_bytes(*name)});
    bytes += name->size() + 40;
    if (lines.size() >= lines_per_append || bytes >= bytes_per_append) flush();
  }
  flush();
  if (!sealed) return;
  try {
    static_cast<void>(compact_shard(shard));
  } catch (const Failure&) {
    // Nothing of ours depends on it; whoever finds the shard full next tries again.
  }
}

std::vector<Elements::Outcome> Elements::get(std::span<const std::string> names) const {
  std::vector<Request> batch;
  for (const std::string& name : names) batch.push_back(Request::get(key_of(name)));
  auto replies = context_.cluster.execute(batch);
  std::vector<Outcome> outcomes(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    outcomes[i].server = replies[i].server;
    outcomes[i].yes = replies[i].outcome == mcds::Outcome::hit;
    outcomes[i].value = std::move(replies[i].value);
    try {
      expect_read(context_.cluster, replies[i]);
    } catch (const Failure& failure) {
      outcomes[i].failure = failure;
    }
  }
  return outcomes;
}

std::vector<Elements::Outcome> Elements::remove(std::span<const std::string> names) const {
  std::vector<Request> batch;
  for (const std::string& name : names) batch.push_back(Request::remove(key_of(name)));
  const auto replies = context_.cluster.execute(batch);
  std::vector<Outcome> outcomes(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    outcomes[i].server = replies[i].server;
    outcomes[i].yes = replies[i].outcome == mcds::Outcome::deleted;
    if (replies[i].failed()) outcomes[i].failure = failure_of(context_.cluster, replies[i]);
  }
  return outcomes;
}

std::vector<std::string> Elements::index_keys() const {
  std::vector<std::string> keys{manifest_key()};
  for (std::size_t shard = 0; shard < index_shards; ++shard) keys.push_back(shard_key(shard));
  return keys;
}

Elements::Listing Elements::fetch(const Visit& visit) const {
  const std::vector<std::string> keys = index_keys();
  JournalReader reader(context_, keys);
  Listing listing;
  const JournalContents manifest = reader.take(0);
  std::set<std::string> expected;
  for (const JournalLine& line : manifest.lines) {
    if (line.change == Change::add) expected.insert(line.element);
  }
  std::vector<std::string> pending;
  const auto flush = [&] {
    const auto found = get(pending);
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i].failure) throw Failure(*found[i].failure);
      if (!found[i].yes) continue;
      ++listing.present;
      visit(pending[i], found[i].value, found[i].server);
    }
    pending.clear();
  };
  for (std::size_t shard = 0; shard < index_shards; ++shard) {
    JournalContents contents = reader.take(shard + 1);
    listing.shards += contents.found ? 1 : 0;
    listing.lines += contents.lines.size();
    const bool lost = contents.found ? contents.lost_segments != 0 || contents.foreign != 0 : expected.contains(std::to_string(shard));
    if (lost) listing.lost.push_back(keys[shard + 1]);
    std::unordered_set<std::string> names;
    for (const JournalLine& line : contents.lines) {
      if (line.change != Change::add) continue;
      auto name = unquote_bytes(line.element);
      if (!name || !names.insert(*name).second) continue;
      ++listing.names;
      pending.push_back(std::move(*name));
      if (pending.size() >= window) flush();
    }
  }
  if (!pending.empty()) flush();
  if (!manifest.found && listing.shards != 0) listing.lost.push_back(keys[0]);
  listing.complete = listing.lost.empty();
  return listing;
}

bool Elements::compact_shard(std::size_t shard) {
  const std::int64_t now = unix_seconds(context_.clock.wall());
  return Journal(context_, shard_key(shard)).compact([&](const std::vector<JournalLine>& lines) {
    std::unordered_set<std::string> seen;
    std::vector<JournalLine> kept;
    std::vector<std::string> doubtful;
    std::vector<JournalLine> doubtful_lines;
    const auto settle = [&] {
      const auto found = get(doubtful);
      for (std::size_t i = 0; i < found.size(); ++i) {
        // Not known to be absent is as good as present.
        if (found[i].failure || found[i].yes) kept.push_back(doubtful_lines[i]);
      }
      doubtful.clear();
      doubtful_lines.clear();
    };
    // From the youngest, so that of several lines of one name the youngest stays.
    for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
      auto name = line->change == Change::add ? unquote_bytes(line->element) : std::nullopt;
      if (!name || !seen.insert(*name).second) continue;
      if (now - seconds_of(*line) <= std::chrono::seconds(grace).count()) {
        kept.push_back(*line);
        continue;
      }
      doubtful.push_back(std::move(*name));
      doubtful_lines.push_back(*line);
      if (doubtful.size() >= window) settle();
    }
    if (!doubtful.empty()) settle();
    return kept;
  });
}

bool Elements::compact() {
  const std::vector<std::string> keys = index_keys();
  JournalReader reader(context_, keys);
  const JournalContents manifest = reader.take(0);
  bool whole = true;
  for (std::size_t shard = 0; shard < index_shards; ++shard) {
    const bool found = reader.take(shard + 1).found;
    const std::string word = std::to_string(shard);
    const bool named = std::any_of(manifest.lines.begin(), manifest.lines.end(), [&](const auto& line) { return line.element == word; });
    if (found && !named) {
      const JournalLine line{Change::add, journal_line_id(line_operation(), 0), word};
      Journal(context_, manifest_key()).append(std::span(&line, 1));
    }
    if (found) whole = compact_shard(shard) && whole;
    if (!found && named) whole = false;
  }
  return whole;
}

std::size_t Elements::clear() {
  std::size_t removed = 0;
  std::vector<std::string> names;
  const auto flush = [&] {
    for (const Outcome& outcome : remove(names)) {
      if (outcome.failure) throw Failure(*outcome.failure);
      removed += outcome.yes ? 1 : 0;
    }
    names.clear();
  };
  const Listing listing = fetch([&](const std::string& name, const std::string&, std::size_t) {
    names.push_back(name);
    if (names.size() >= window) flush();
  });
  flush();
  if (listing.lost.empty()) {
    static_cast<void>(compact());
    return removed;
  }
  // What was lost is not waited for any longer: the index starts anew, after the elements it still listed are gone.
  std::vector<Request> batch;
  for (const std::string& key : index_keys()) batch.push_back(Request::remove(key));
  for (const Reply& reply : context_.cluster.execute(batch)) expect(context_.cluster, reply);
  return removed;
}

}  // namespace mcds
