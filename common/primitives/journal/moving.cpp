// Taking a journal elsewhere; journal.hpp says what holds meanwhile.
#include "common/base/errors.hpp"
#include "common/primitives/journal/reading.hpp"

namespace mcds {

namespace {

constexpr int most_holds = 24;  // while others seal it, or it is full

}  // namespace

Journal::Held Journal::hold() const {
  for (int attempt = 0; attempt < most_holds; ++attempt) {
    back_off(context_, attempt, journal_patience);
    const Reply marked = context_.cluster.execute(Request::append(key_, std::string(moving_line)));
    if (marked.failed() && !marked.unknown()) expect(context_.cluster, marked);
    fill();
    const Reply reply = context_.cluster.execute(Request::gets(key_));
    JournalReading reading(key_, context_, reply);
    if (reading.contents.found && !is_moving(reading.root.tail)) {
      static_cast<void>(seal(reply));  // it was full, or was thawed
      continue;
    }
    reading.read_segments(context_);
    return {reading.finish(), reply.cas};
  }
  throw Contention("other clients keep rewriting the journal " + key_ + "; try again");
}

bool Journal::let_go(const Held& held) const {
  expect_cas(context_.cluster, held.contents.server, held.cas);
  const Reply reply = context_.cluster.execute(Request::remove_if(key_, held.cas));
  if (reply.failed() && !reply.unknown()) expect(context_.cluster, reply);
  if (reply.outcome == Outcome::deleted) {
    std::vector<Request> segments;
    for (const std::string& segment : held.contents.segments)
      segments.push_back(Request::remove(segment).lying_with(key_));
    if (!segments.empty()) static_cast<void>(context_.cluster.execute(segments));
  }
  return reply.outcome == Outcome::deleted || reply.outcome == Outcome::not_found;
}

bool Journal::thaw() const {
  const Reply reply = context_.cluster.execute(Request::gets(key_));
  expect_read(context_.cluster, reply);
  const bool held = reply.outcome == Outcome::hit && is_moving(reply.value);
  if (held) static_cast<void>(seal(reply));
  return held;
}

JournalContents Journal::read_staged(const std::string& root) const {
  Reply reply = Reply::of(Outcome::hit, context_.cluster.placement().server_of(key_));
  reply.value = root;
  JournalReading reading(key_, context_, std::move(reply));
  reading.read_segments(context_);
  return reading.finish();
}

void Journal::drop_staged(const std::string& root) const {
  if (const auto decoded = decode_journal_root(root)) remove_segments(decoded->segments);
}

}  // namespace mcds
