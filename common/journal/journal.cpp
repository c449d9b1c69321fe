#include "common/journal/journal.hpp"

#include <algorithm>

#include "common/base/bytes.hpp"

namespace mcds {

namespace {

constexpr int max_appends = 24;  // before an append to a full or contended journal fails
constexpr int max_lookups = 3;   // after lost replies
constexpr int max_rereads = 8;

}  // namespace

std::string journal_line_id(const std::string& operation, std::size_t n) {
  std::string id;
  append_all(id, {operation, ".", std::to_string(n)});
  return id;
}

JournalReader::JournalReader(const Context& context, std::span<const std::string> keys, RootRead roots)
    : context_(context), readings_(keys.size()) {
  std::vector<Request> batch;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    readings_[i].key = keys[i];
    batch.push_back(roots == RootRead::to_compare ? Request::gets(keys[i]) : Request::get(keys[i]));
  }
  auto replies = context.cluster.execute(batch);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    JournalReading& one = readings_[i];
    one.failure = attempt([&] { one.take_root(context, std::move(replies[i])); }).failure();
  }
}

// Reads the segments too. If one is missing because a concurrent compaction removed it, the root names others
// by then, and the reading starts again. If the root has not changed, the segment is lost.
JournalReading JournalReader::read_whole(std::size_t index) {
  if (failed(index)) raise(*failure(index));
  JournalReading& reading = readings_.at(index);
  for (int round = 0; round < max_rereads && !reading.complete; ++round) {
    reading.read_segments(context_);
    if (!reading.complete) reading.reread_root(context_);
  }
  return std::exchange(reading, JournalReading());
}

JournalReading Journal::read_whole() const {
  return JournalReader(context_, std::span(&key_, 1)).read_whole(0);
}

JournalContents Journal::read() const {
  return read_whole().finish();
}

Journal::Attempt Journal::attempt_of(std::span<const JournalLine> lines) const {
  for (std::size_t i = 1; i < lines.size(); ++i)
    require(lines[i].id != lines[i - 1].id, "the lines of a change have ids of their own");
  return attempt_of(encode_all(lines), lines.front().id);
}

Journal::Attempt Journal::attempt_of(std::string text, std::string id) const {
  if (text.size() > options_.max_change) {
    throw InvalidInput("one atomic change with its elements may have at most 256 KiB; split it");
  }
  std::string incarnation = context_.random.token();
  Request request = Request::append_or_create(
      key_, journal_header(incarnation) + (options_.lossy ? lost_segment_line() : "") + options_.birth,
      std::move(text), Exptime::never());
  request.must_compare = options_.compares;
  request.seems_missing = options_.seems_missing;
  return {std::move(id), std::move(incarnation), std::move(request)};
}

// Returns the result of a change whose reply was lost, or nullopt if the journal does not have it.
std::optional<Journal::Appended> Journal::look_up(const Attempt& attempt) const {
  const JournalContents contents = read();
  const bool there =
      std::ranges::any_of(contents.lines, [&](const JournalLine& line) { return line.id == attempt.id; });
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
    throw UnknownOutcome(
        "an append got no reply and may have been applied, then: " + std::string(failure.what()),
        failure.server());
  }
}

// `lookups` counts the appends without reply, which may still be executed.
Journal::Appended Journal::settle(const Attempt& attempt, Reply reply, int& lookups) {
  bool doubled = false;
  int full_of_nothing = 0;  // in a row
  const auto as_reported = [&] {
    return Appended{.created = reply.created,
                    .doubled = doubled,
                    .incarnation = reply.created ? attempt.incarnation : std::string(),
                    .server = reply.server};
  };
  for (int round = 0; round < max_appends; ++round) {
    if (round != 0) reply = context_.cluster.execute(attempt.request);
    // A request without reply may have been executed, and may have created the journal.
    if (reply.unknown() || (lookups != 0 && reply.outcome == Outcome::stored)) {
      if (++lookups > max_lookups) {
        expect(context_.cluster, reply);
        return as_reported();
      }
      try {
        if (auto appended = look_up(attempt)) {
          appended->doubled = doubled;
          return *appended;
        }
      } catch (const NotApplied&) {
        expect(context_.cluster, reply);
        return as_reported();
      }
      continue;
    }
    if (expect(context_.cluster, reply).outcome == Outcome::stored) return as_reported();
    // The root is full. A client that filled it on purpose replaces it within milliseconds; otherwise one of
    // those that wait seals it.
    if (round % 3 == 2 && (round > max_appends / 2 || claim())) {
      const Full full = seal_full();
      give_up_claim();
      // The journal is being moved, was dropped, or was evicted.
      if (full == Full::gone && attempt.request.op == Op::append && lookups == 0)
        return {.declined = true, .incarnation = {}, .server = reply.server};
      // Another client may have sealed it just before; then the next attempt finds lines.
      full_of_nothing = full == Full::of_nothing ? full_of_nothing + 1 : 0;
      if (full_of_nothing == 2)
        throw NotApplied(
            ErrorCode::refused,
            "the journal " + key_ +
                " has no room for a change of this size: the server is out of memory, or its items are "
                "too small (-I)",
            context_.cluster.address_of(reply.server));
      doubled = doubled || full == Full::doubled;
    } else {
      back_off(context_, round % 3 + 1, journal_patience);
    }
  }
  throw Contention("the journal " + key_ +
                   " stays full: the server has no memory, or other clients keep filling it; try again");
}

Journal::Appended Journal::append(std::span<const JournalLine> lines,
                                  const std::function<bool()>& may_create) {
  Attempt one = attempt_of(lines);
  if (!may_create) return settle(one, context_.cluster.execute(one.request));
  one.request = Request::append(key_, std::move(one.request.value));
  Reply reply = context_.cluster.execute(one.request);
  if (reply.outcome != Outcome::not_stored && !reply.unknown()) return settle(one, std::move(reply));
  const auto full = attempt([&] { return may_create(); });
  // It was not executed, but it may be once another client creates the journal.
  if (reply.unknown() && (full.failure() || !full.value())) expect(context_.cluster, reply);
  if (!full.value()) return {.declined = true, .incarnation = {}, .server = reply.server};
  if (!reply.unknown()) reply = context_.cluster.execute(one.request);
  return settle(one, std::move(reply));
}

}  // namespace mcds
