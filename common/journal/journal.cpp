#include "common/journal/journal.hpp"

#include <algorithm>
#include <utility>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/journal/reading.hpp"
#include "common/primitives/cas_update.hpp"

namespace mcds {

namespace {

constexpr int most_appends = 24;  // before a full or rivalled journal is given up
constexpr int most_lookups = 3;   // after lost replies
constexpr int most_rereads = 8;

}  // namespace

std::string journal_line_id(const std::string& operation, std::size_t n) {
  std::string id;
  append_all(id, {operation, ".", std::to_string(n)});
  return id;
}

JournalReader::JournalReader(Context context) : context_(std::move(context)) {}

JournalReader JournalReader::read(const Context& context, std::span<const std::string> keys, Roots roots) {
  JournalReader reader(context);
  auto& readings = reader.readings_;
  readings.resize(keys.size());
  std::vector<Request> batch;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    readings[i].key = keys[i];
    batch.push_back(roots == Roots::to_compare ? Request::gets(keys[i]) : Request::get(keys[i]));
  }
  auto replies = context.cluster.execute(batch);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    JournalReading& one = readings[i];
    one.failure = attempt([&] { one.take_root(context, std::move(replies[i])); }).failure();
  }
  return reader;
}

JournalReader::~JournalReader() = default;
JournalReader::JournalReader(JournalReader&&) noexcept = default;

const std::optional<Failure>& JournalReader::failure(std::size_t index) const {
  return readings_.at(index).failure;
}

bool JournalReader::found(std::size_t index) const {
  return readings_.at(index).contents.found;
}

const std::string& JournalReader::incarnation(std::size_t index) const {
  return readings_.at(index).contents.incarnation;
}

// With its segments.
JournalReading& JournalReader::read_whole(std::size_t index) {
  JournalReading& reading = readings_.at(index);
  if (reading.failure) raise(*reading.failure);
  for (int round = 0; round < most_rereads && !reading.complete; ++round) {
    reading.read_segments(context_);
    if (!reading.complete) reading.reread_root(context_);
  }
  return reading;
}

JournalContents JournalReader::take(std::size_t index) {
  return std::exchange(read_whole(index), JournalReading()).finish();
}

JournalContents JournalReader::take(std::size_t index, const TellLine& tell) {
  return std::exchange(read_whole(index), JournalReading()).finish(tell);
}

JournalContents Journal::read() const {
  return JournalReader::read(context_, std::span(&key_, 1)).take(0);
}

Journal::Attempt Journal::attempt_of(std::span<const JournalLine> lines) const {
  for (std::size_t i = 1; i < lines.size(); ++i)
    rely_on(lines[i].id != lines[i - 1].id, "the lines of a change have ids of their own");
  return attempt_of(encode_all(lines), lines.front().id);
}

Journal::Attempt Journal::attempt_of(std::string text, std::string id) const {
  if (text.size() > options_.largest_change) {
    throw InvalidInput("one atomic change with its elements may have at most 256 KiB; split it");
  }
  std::string incarnation = context_.random.token();
  Request request = Request::append_or_create(
      key_, journal_header(incarnation) + (options_.lossy ? lost_segment_line() : "") + options_.birth,
      std::move(text), Exptime::never());
  request.must_compare = options_.compares;
  return {std::move(id), std::move(incarnation), std::move(request)};
}

// After a lost reply: how it went, if the change is there.
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
    throw UnknownOutcome("an append got no reply, then: " + std::string(failure.what()), failure.server());
  }
}

// `lookups`: how often an append got no reply; it may then still be executed.
Journal::Appended Journal::settle(const Attempt& attempt, Reply reply, int& lookups) {
  bool doubled = false;
  int full_of_nothing = 0;  // in a row
  const auto as_told = [&] {
    return Appended{.created = reply.created,
                    .doubled = doubled,
                    .repeated = lookups != 0,
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
          appended->doubled = doubled;
          appended->repeated = lookups > 1;
          return *appended;
        }
      } catch (const NotApplied&) {
        expect(context_.cluster, reply);
        return as_told();
      }
      continue;
    }
    if (expect(context_.cluster, reply).outcome == Outcome::stored) return as_told();
    // Full. A client that filled it on purpose replaces it within milliseconds; otherwise one of us seals it.
    if (round % 3 == 2 && (round > most_appends / 2 || claim())) {
      const Full full = seal_full();
      give_up_claim();
      // It is being taken elsewhere, or was, or was evicted.
      if (full == Full::gone && attempt.request.op == Op::append && lookups == 0)
        return {.declined = true, .incarnation = {}, .server = reply.server};
      // Another may have sealed it just before; then it is not so the next time.
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
  // Not executed so far, but it may be once another client creates the journal.
  if (reply.unknown() && (full.failure() || !full.value())) expect(context_.cluster, reply);
  if (!full.value()) return {.declined = true, .incarnation = {}, .server = reply.server};
  if (!reply.unknown()) reply = context_.cluster.execute(one.request);
  return settle(one, std::move(reply));
}

}  // namespace mcds
