#include "common/primitives/journal.hpp"

#include <algorithm>
#include <unordered_set>

#include "common/base/errors.hpp"
#include "common/primitives/cas_update.hpp"

namespace mcds {

namespace {

constexpr int most_appends = 24;  // before a full or rivalled journal is given up
constexpr int most_lookups = 3;   // after lost replies
constexpr int most_compactions = 24;
constexpr int most_rereads = 8;
constexpr int most_fill_rounds = 64;
constexpr std::size_t smallest_padding = 16;
constexpr std::size_t forgotten_ids = 256;
constexpr std::size_t largest_inline = 48 * 1024;  // what compaction leaves in the root itself

// Those who only find the root full wait this long for whoever filled it on purpose.
constexpr CasUpdateOptions patience{.attempts = 0,
                                    .first_pause = std::chrono::milliseconds(4),
                                    .longest_pause = std::chrono::milliseconds(50)};

std::string segment_key(const std::string& root, const std::string& id) {
  return root + ":s:" + id;
}

CorruptData foreign_root(const Context& context, const std::string& key, std::size_t server) {
  return CorruptData("the value under " + key + " is no journal; is this name somebody else's?",
                     context.cluster.address_of(server));
}

// The lines that count: the first of each id.
std::vector<JournalLine> first_of_each(std::vector<JournalLine> lines) {
  std::unordered_set<std::string> seen;
  std::erase_if(lines, [&](const JournalLine& line) { return !seen.insert(line.id).second; });
  return lines;
}

std::string encode_all(std::span<const JournalLine> lines) {
  std::string text;
  for (const JournalLine& line : lines) text += encode(line);
  return text;
}

// One journal on its way through a JournalReader.
struct Reading {
  std::string key;
  JournalContents contents;
  std::string root_value;
  JournalRoot root;
  std::vector<std::string> segment_values;
  std::vector<bool> present;
  bool complete = false;
};

void take_root(const Context& context, Reading& reading, Reply reply) {
  expect_read(context.cluster, reply);
  reading.contents = JournalContents();
  reading.contents.server = reply.server;
  reading.complete = true;
  if (reply.outcome != Outcome::hit) return;
  reading.root_value = std::move(reply.value);
  auto root = decode_journal_root(reading.root_value);
  if (!root) throw foreign_root(context, reading.key, reply.server);
  reading.root = std::move(*root);
  reading.contents.found = true;
  reading.contents.incarnation = reading.root.incarnation;
  reading.contents.bytes = reading.root_value.size();
  reading.segment_values.assign(reading.root.segments.size(), {});
  reading.present.assign(reading.root.segments.size(), false);
  reading.complete = reading.root.segments.empty();
}

void read_segments(const Context& context, Reading& reading) {
  std::vector<Request> batch;
  for (const SegmentName& segment : reading.root.segments)
    batch.push_back(Request::get(segment_key(reading.key, segment.id)));
  auto replies = context.cluster.execute(batch);
  reading.complete = true;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    expect_read(context.cluster, replies[i]);
    reading.present[i] = replies[i].outcome == Outcome::hit;
    reading.segment_values[i] = std::move(replies[i].value);
    reading.complete = reading.complete && reading.present[i];
  }
}

// A segment is missing: was it compacted away, so that the root names others by now?
void reread_root(const Context& context, Reading& reading) {
  Reading again;
  again.key = reading.key;
  take_root(context, again, context.cluster.execute(Request::get(reading.key)));
  if (again.contents.found && again.root_value == reading.root_value) {
    reading.complete = true;  // as complete as it gets
  } else {
    reading = std::move(again);
    reading.root = reading.contents.found ? *decode_journal_root(reading.root_value) : JournalRoot();
  }
}

JournalContents finish(Reading& reading) {
  JournalContents& contents = reading.contents;
  if (!contents.found) return std::move(contents);
  const auto take = [&](std::string_view text) {
    DecodedLines decoded = decode_journal_lines(text);
    const bool cleared = std::any_of(decoded.lines.begin(), decoded.lines.end(),
                                     [](const JournalLine& line) { return line.change == Change::clear; });
    if (cleared) contents.lost_segments = contents.foreign = 0;
    contents.foreign += decoded.foreign;
    std::move(decoded.lines.begin(), decoded.lines.end(), std::back_inserter(contents.lines));
  };
  for (std::size_t i = 0; i < reading.root.segments.size(); ++i) {
    contents.segments.push_back(segment_key(reading.key, reading.root.segments[i].id));
    if (!reading.present[i]) {
      ++contents.lost_segments;
      continue;
    }
    contents.bytes += reading.segment_values[i].size();
    take(reading.segment_values[i]);
  }
  take(reading.root.tail);
  contents.lines = first_of_each(std::move(contents.lines));
  return std::move(contents);
}

}  // namespace

std::string journal_line_id(const std::string& operation, std::size_t n) {
  return operation + '.' + std::to_string(n);
}

struct JournalReader::Readings {
  std::vector<Reading> all;
};

JournalReader::JournalReader(const Context& context, std::span<const std::string> keys)
    : context_(context), readings_(std::make_unique<Readings>()) {
  readings_->all.resize(keys.size());
  std::vector<Request> batch;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    readings_->all[i].key = keys[i];
    batch.push_back(Request::get(keys[i]));
  }
  auto replies = context.cluster.execute(batch);
  for (std::size_t i = 0; i < keys.size(); ++i) take_root(context, readings_->all[i], std::move(replies[i]));
}

JournalReader::~JournalReader() = default;

bool JournalReader::found(std::size_t index) const {
  return readings_->all.at(index).contents.found;
}

const std::string& JournalReader::incarnation(std::size_t index) const {
  return readings_->all.at(index).contents.incarnation;
}

JournalContents JournalReader::take(std::size_t index) {
  Reading& reading = readings_->all.at(index);
  for (int round = 0; round < most_rereads && !reading.complete; ++round) {
    read_segments(context_, reading);
    if (!reading.complete) reread_root(context_, reading);
  }
  JournalContents contents = finish(reading);
  reading = Reading();
  return contents;
}

JournalContents Journal::read() const {
  return JournalReader(context_, std::span(&key_, 1)).take(0);
}

// One change on its way into a journal.
struct Journal::Attempt {
  std::span<const JournalLine> lines;
  std::string incarnation;  // the journal's, if this change creates it; the same in every attempt
  Request request;
};

Journal::Attempt Journal::attempt(std::span<const JournalLine> lines) const {
  std::string text = encode_all(lines);
  if (text.size() > largest_change) {
    throw InvalidInput("one atomic change may take at most 256 KiB with its elements; make several of it");
  }
  std::string incarnation = context_.random.token();
  Request request =
      Request::append_or_create(key_, journal_header(incarnation), std::move(text), Exptime::never());
  return {lines, std::move(incarnation), std::move(request)};
}

// After a lost reply: how it went, if the change is there.
std::optional<Journal::Appended> Journal::look_up(const Attempt& attempt) const {
  const JournalContents contents = read();
  const std::string& id = attempt.lines.front().id;
  const bool there = std::any_of(contents.lines.begin(), contents.lines.end(),
                                 [&](const JournalLine& line) { return line.id == id; });
  if (!there) return std::nullopt;
  const bool created = contents.incarnation == attempt.incarnation;
  return Appended{.created = created,
                  .incarnation = created ? attempt.incarnation : std::string(),
                  .server = contents.server};
}

Journal::Appended Journal::settle(const Attempt& attempt, Reply reply) {
  int lookups = 0;
  try {
    return settle(attempt, std::move(reply), lookups);
  } catch (const UnknownOutcome&) {
    throw;
  } catch (const Failure& failure) {
    if (lookups == 0) throw;
    throw UnknownOutcome("an append got no reply, then: " + std::string(failure.what()), failure.server());
  }
}

// `lookups`: how often an append got no reply; it may then still be executed.
Journal::Appended Journal::settle(const Attempt& attempt, Reply reply, int& lookups) {
  bool sealed = false;
  const auto as_told = [&] {
    return Appended{.created = reply.created,
                    .sealed = sealed,
                    .incarnation = reply.created ? attempt.incarnation : std::string(),
                    .server = reply.server};
  };
  for (int round = 0; round < most_appends; ++round) {
    if (round != 0) reply = context_.cluster.execute(attempt.request);
    // A lost request may still have been executed, and have created what this one then only appended to.
    if (reply.unknown() || (lookups != 0 && reply.outcome == Outcome::stored)) {
      if (++lookups > most_lookups) {
        expect(context_.cluster, reply);
        return as_told();
      }
      try {
        if (auto appended = look_up(attempt)) {
          appended->sealed = sealed;
          return *appended;
        }
      } catch (const NotApplied&) {
        expect(context_.cluster, reply);
        return as_told();
      }
      continue;
    }
    if (expect(context_.cluster, reply).outcome == Outcome::stored) return as_told();
    // Full. Whoever filled it on purpose replaces it within milliseconds; else it is ours to seal.
    if (round % 3 == 2) {
      seal_full();
      sealed = true;
    } else {
      back_off(context_, round % 3 + 1, patience);
    }
  }
  throw Contention("the journal " + key_ +
                   " stays full: the server has no memory, or others keep filling it; try again");
}

Journal::Appended Journal::append(std::span<const JournalLine> lines,
                                  const std::function<bool()>& may_create) {
  const Attempt one = attempt(lines);
  if (!may_create) return settle(one, context_.cluster.execute(one.request));
  Reply reply = context_.cluster.execute(Request::append(key_, one.request.value));
  if (reply.outcome != Outcome::not_stored && !reply.unknown()) return settle(one, std::move(reply));
  try {
    if (!may_create()) {
      // Never executed so far; but it may be, once somebody else creates the journal.
      if (reply.unknown()) expect(context_.cluster, reply);
      return {.declined = true, .incarnation = {}, .server = reply.server};
    }
  } catch (const Failure&) {
    if (reply.unknown()) expect(context_.cluster, reply);
    throw;
  }
  if (!reply.unknown()) reply = context_.cluster.execute(one.request);
  return settle(one, std::move(reply));
}

std::vector<Journal::AdditionResult> Journal::append_each(const Context& context,
                                                          std::span<const Addition> additions) {
  std::vector<Attempt> attempts;
  std::vector<Request> batch;
  for (const Addition& addition : additions) {
    attempts.push_back(Journal(context, addition.key).attempt(addition.lines));
    batch.push_back(attempts.back().request);
  }
  auto replies = context.cluster.execute(batch);
  std::vector<AdditionResult> results(additions.size());
  for (std::size_t i = 0; i < additions.size(); ++i) {
    try {
      results[i].appended = Journal(context, additions[i].key).settle(attempts[i], std::move(replies[i]));
    } catch (const Failure& failure) {
      results[i].failure = failure;
    }
  }
  return results;
}

void Journal::seal_full() {
  const Reply reply = context_.cluster.execute(Request::gets(key_));
  expect_read(context_.cluster, reply);
  if (reply.outcome != Outcome::hit) return;
  auto root = decode_journal_root(reply.value);
  if (!root) throw foreign_root(context_, key_, reply.server);
  const std::string tail = without_padding(root->tail);
  std::vector<std::string> added;
  if (!tail.empty()) {
    const std::string id = context_.random.token();
    const Reply stored =
        context_.cluster.execute(Request::add(segment_key(key_, id), tail, Exptime::never()));
    if (stored.unknown()) return;
    expect(context_.cluster, stored);
    if (stored.outcome != Outcome::stored) return;
    added.push_back(segment_key(key_, id));
    root->segments.push_back({id, static_cast<std::uint64_t>(std::count(tail.begin(), tail.end(), '\n'))});
  }
  root->tail = {};
  const Reply swapped =
      context_.cluster.execute(Request::compare_and_set(key_, encode(*root), Exptime::never(), reply.cas));
  const bool certainly_not = swapped.outcome == Outcome::exists || swapped.outcome == Outcome::not_found ||
                             (swapped.failed() && !swapped.unknown());
  if (certainly_not) remove_all(added);
}

void Journal::fill() const {
  std::vector<Request> batch;
  for (std::size_t size = options_.largest_padding; size >= smallest_padding; size /= 2)
    batch.push_back(Request::append(key_, padding_line(size)));
  for (int round = 0; round < most_fill_rounds; ++round) {
    const auto replies = context_.cluster.execute(batch);
    if (replies.back().outcome != Outcome::stored) return;
  }
}

std::vector<SegmentName> Journal::write_segments(const std::vector<JournalLine>& lines,
                                                 std::vector<std::string>& keys) {
  std::vector<SegmentName> names;
  std::string text;
  std::uint64_t count = 0;
  const auto flush = [&] {
    if (text.empty()) return;
    const std::string id = context_.random.token();
    keys.push_back(segment_key(key_, id));
    const Reply stored = context_.cluster.execute(Request::add(keys.back(), text, Exptime::never()));
    expect(context_.cluster, stored);
    if (stored.outcome != Outcome::stored) throw Contention("a segment's name was taken; try again");
    names.push_back({id, count});
    text.clear();
    count = 0;
  };
  for (const JournalLine& line : lines) {
    const std::string one = encode(line);
    if (text.size() + one.size() > options_.segment_size) flush();
    text += one;
    ++count;
  }
  flush();
  return names;
}

void Journal::remove_all(const std::vector<std::string>& keys) const {
  std::vector<Request> batch;
  for (const std::string& key : keys) batch.push_back(Request::remove(key));
  // A segment that stays behind is named by nothing: eviction takes it.
  if (!batch.empty()) static_cast<void>(context_.cluster.execute(batch));
}

namespace {

// What `rewrite` left, with the ids it dropped remembered in front.
std::vector<JournalLine> with_forgotten(const std::vector<JournalLine>& before,
                                        std::vector<JournalLine> kept) {
  std::unordered_set<std::string> present;
  for (const JournalLine& line : kept) present.insert(line.id);
  std::vector<JournalLine> result;
  for (const JournalLine& line : before) {
    if (!present.contains(line.id)) result.push_back({Change::forgotten, line.id, {}});
  }
  if (result.size() > forgotten_ids) result.erase(result.begin(), result.end() - forgotten_ids);
  std::move(kept.begin(), kept.end(), std::back_inserter(result));
  return result;
}

}  // namespace

bool Journal::compact(const Rewrite& rewrite, bool despite_loss) {
  for (int attempt = 0; attempt < most_compactions; ++attempt) {
    back_off(context_, attempt, patience);
    if (attempt != 0) fill();
    const Reply reply = context_.cluster.execute(Request::gets(key_));
    expect_read(context_.cluster, reply);
    if (reply.outcome != Outcome::hit) return false;
    Reading reading;
    reading.key = key_;
    take_root(context_, reading, reply);
    if (!reading.complete) read_segments(context_, reading);
    JournalRoot root{reading.root.incarnation, {}, {}};
    const JournalContents contents = finish(reading);
    if (contents.lost_segments != 0) {
      // Compacted by somebody else meanwhile, or lost: the next round's root tells.
      if (attempt + 1 < most_rereads) continue;
      if (!despite_loss) return false;
    }
    const std::vector<JournalLine> lines = with_forgotten(contents.lines, rewrite(contents.lines));
    std::vector<std::string> added;
    const std::string inlined = encode_all(lines);
    try {
      if (inlined.size() <= std::min(largest_inline, options_.segment_size)) {
        root.tail = inlined;
      } else {
        root.segments = write_segments(lines, added);
      }
    } catch (const Failure&) {
      remove_all(added);
      throw;
    }
    const Reply swapped =
        context_.cluster.execute(Request::compare_and_set(key_, encode(root), Exptime::never(), reply.cas));
    if (swapped.outcome == Outcome::stored) {
      remove_all(contents.segments);
      return true;
    }
    if (!swapped.unknown()) remove_all(added);
    if (!swapped.unknown()) expect(context_.cluster, swapped);
  }
  throw Contention("others kept changing the journal " + key_ + " while it was compacted; try again");
}

}  // namespace mcds
