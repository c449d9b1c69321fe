// Sealing and compaction; journal.hpp argues why nothing acknowledged is lost.
#include <algorithm>
#include <bit>
#include <unordered_set>

#include "common/base/errors.hpp"
#include "common/journal/reading.hpp"
#include "common/primitives/seal.hpp"

namespace mcds {

namespace {

constexpr int most_compactions = 24;
constexpr int most_swaps = 24;
constexpr int most_fill_rounds = 64;
constexpr std::size_t smallest_padding = 16;
constexpr std::size_t forgotten_ids = 256;
constexpr std::size_t largest_inline = 48 * 1024;  // what compaction leaves in the root itself

// No segment has it: ids are random, their first digit a letter.
const std::string claim_id(16, '0');

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

bool starts_with(const std::vector<SegmentName>& all, const std::vector<SegmentName>& first) {
  return all.size() >= first.size() && std::equal(first.begin(), first.end(), all.begin(),
                                                  [](const auto& a, const auto& b) { return a.id == b.id; });
}

Request new_segment(const std::string& root, const std::string& id, const std::string& lines) {
  return Request::add(segment_key(root, id), lines, Exptime::never()).lying_with(root);
}

// The ids of a root's own lines, the last of them, remembered for late repetitions.
std::string remembered(std::string_view tail, std::size_t most) {
  const std::vector<JournalLine> ids = with_forgotten(decode_journal_lines(tail), {});
  return encode_all(std::span(ids).last(std::min(most, ids.size())));
}

[[noreturn]] void fail_unknown() {
  throw UnknownOutcome(
      "no reply to a replacement, and the journal has changed since; check it before trying again");
}

}  // namespace

// Who holds it seals, the others wait; it only spares them doing the same. A dead holder's ends by itself.
bool Journal::claim() const {
  const auto exptime = Exptime::after(std::chrono::seconds(1), context_.clock.wall());
  const Reply reply =
      context_.cluster.execute(Request::add(segment_key(key_, claim_id), "C", exptime).lying_with(key_));
  return reply.outcome != Outcome::not_stored;
}

void Journal::give_up_claim() const {
  static_cast<void>(context_.cluster.execute(Request::remove(segment_key(key_, claim_id)).lying_with(key_)));
}

// Gone: it is not there any more. Of nothing: it has no lines that could be
// sealed. Doubled: sealed, into twice as many segments as when this was said last.
Journal::Full Journal::seal_full() const {
  const Reply reply = context_.cluster.execute(Request::gets(key_));
  expect_read(context_.cluster, reply);
  if (reply.outcome != Outcome::hit) return Full::gone;
  const auto root = decode_journal_root(reply.value);
  if (root && root->tail.empty()) return Full::of_nothing;
  if (reply.cas.value == 0)
    throw NotApplied(ErrorCode::refused,
                     "the journal " + key_ +
                         " is full, and the server does not support cas, with which it would be continued "
                         "elsewhere; start memcached without -C",
                     context_.cluster.address_of(reply.server));
  static_cast<void>(seal(reply));
  return std::has_single_bit(root->segments.size() + 1) ? Full::doubled : Full::sealed;
}

// The tail becomes a segment; false: another client changed the root meanwhile, or the outcome is unknown.
bool Journal::seal(const Reply& reply) const {
  JournalReading reading(key_, context_, reply);
  JournalRoot& root = reading.root;
  const std::string tail = without_padding(root.tail);
  std::vector<SegmentName> added;
  if (!tail.empty()) {
    const auto lines = static_cast<std::uint64_t>(std::count(tail.begin(), tail.end(), '\n'));
    added.push_back({context_.random.token(), lines});
    const Reply stored = context_.cluster.execute(new_segment(key_, added.back().id, tail));
    if (stored.unknown()) return false;
    if (expect(context_.cluster, stored).outcome != Outcome::stored) return false;
    root.segments.push_back(added.back());
  }
  root.tail = {};
  const Reply swapped =
      context_.cluster.execute(Request::compare_and_set(key_, encode(root), Exptime::never(), reply.cas));
  const bool done = swapped.outcome == Outcome::stored;
  if (!done && !swapped.unknown()) remove_segments(added);
  if (swapped.is(ReplyFailure::Kind::refused)) expect(context_.cluster, swapped);  // without memory
  return done;
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

std::vector<SegmentName> Journal::write_segments(std::span<const JournalLine> lines) const {
  std::vector<SegmentName> names;
  std::string text;
  const auto write = [&](const std::string& piece, std::size_t first, std::size_t last) {
    names.push_back({context_.random.token(), last - first});
    const Reply stored = context_.cluster.execute(new_segment(key_, names.back().id, piece));
    if (stored.is(ReplyFailure::Kind::refused)) names.pop_back();
    expect(context_.cluster, stored);
    if (stored.outcome != Outcome::stored) throw Contention("a segment's name was taken; try again");
  };
  const auto flush = [&] {
    lines_in_pieces(text, write);
    text.clear();
  };
  try {
    for (const JournalLine& line : lines) {
      const std::string one = encode(line);
      if (text.size() + one.size() > options_.segment_size) flush();
      text += one;
    }
    flush();
    // Behind them: what removes everything in them was there before the loss.
    if (options_.lossy) names.push_back(lost_segment());
  } catch (const Failure&) {
    remove_segments(names);
    throw;
  }
  return names;
}

std::vector<bool> remove_journals(const Context& context, std::span<const JournalContents> seen) {
  std::vector<Request> roots, segments;
  for (const JournalContents& journal : seen) {
    expect_cas(context.cluster, journal.server, journal.cas);
    roots.push_back(Request::remove_if(journal.key, journal.cas));
  }
  const auto replies = context.cluster.execute(roots);
  std::vector<bool> removed;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    removed.push_back(expect(context.cluster, replies[i]).outcome != Outcome::exists);
    if (replies[i].outcome != Outcome::deleted) continue;
    for (const std::string& segment : seen[i].segments)
      segments.push_back(Request::remove(segment).lying_with(seen[i].key));
  }
  if (!segments.empty()) static_cast<void>(context.cluster.execute(segments));
  return removed;
}

// What stays behind is named by nothing: eviction takes it.
void Journal::remove_segments(std::span<const SegmentName> segments) const {
  std::vector<Request> batch;
  for (const SegmentName& segment : segments)
    batch.push_back(Request::remove(segment_key(key_, segment.id)).lying_with(key_));
  if (!batch.empty()) static_cast<void>(context_.cluster.execute(batch));
}

bool Journal::compact(const Rewrite& rewrite, bool despite_loss, std::size_t most_segments) {
  for (int attempt = 0; attempt < most_compactions; ++attempt) {
    back_off(context_, attempt, journal_patience);
    if (attempt != 0) fill();
    const Reply reply = context_.cluster.execute(Request::gets(key_));
    const JournalReading seen(key_, context_, reply);
    if (!seen.contents.found || seen.root.segments.size() > most_segments) return false;
    std::string tail = without_padding(seen.root.tail);
    // Segments do not change: they are read and rewritten at leisure, whatever is appended meanwhile.
    const bool divided = !seen.root.segments.empty();
    if (divided && !std::exchange(tail, {}).empty()) static_cast<void>(seal(reply));
    JournalReading reading(key_, context_, divided ? context_.cluster.execute(Request::get(key_)) : reply);
    if (divided && reading.root.segments.empty()) continue;
    if (divided) reading.root.tail = {};
    reading.read_segments(context_);
    const JournalRoot old{reading.root.incarnation, reading.root.segments, tail};
    if (!reading.complete) {
      const JournalReading now(key_, context_, context_.cluster.execute(Request::get(key_)));
      if (!now.contents.found || !starts_with(now.root.segments, old.segments)) continue;
    }
    const JournalContents contents = reading.finish();
    if (contents.loss.any() && !despite_loss) return false;
    auto left = rewrite(contents.lines);
    if (!left) return true;
    const std::vector<JournalLine> lines = with_forgotten(contents.lines, *std::move(left));
    if (swap(old, lines, divided ? std::nullopt : std::optional(reply))) return true;
  }
  throw Contention("other clients kept changing the journal " + key_ + " while it was compacted; try again");
}

// The lines take the place of what was read: the segments, which are the first that the root names, or the
// tail, as long as it is in the root; all that was appended or sealed since stays behind them. `reply`: to a
// gets of the root. False: the root has other segments, or another tail, by now.
bool Journal::swap(const JournalRoot& old, const std::vector<JournalLine>& lines,
                   std::optional<Reply> reply) const {
  const std::string text = encode_all(lines);
  const std::size_t room = std::min(largest_inline, options_.segment_size);
  bool small = !options_.lossy && text.size() <= (old.segments.empty() ? room : room / 2);
  std::vector<SegmentName> added;
  if (!small) added = write_segments(lines);
  bool unknown = false, claimed = false;
  const auto ended = [&](bool done) {
    if (done || !unknown) remove_segments(done ? old.segments : added);
    if (claimed) give_up_claim();
    return done;
  };
  for (int attempt = 0; attempt < most_swaps; ++attempt) {
    // A full root that no other client seals does not change.
    if (attempt != 0 && !reply) {
      back_off(context_, attempt, journal_patience);
      claimed = claim() || claimed;
      fill();
    }
    const Reply seen = reply ? *std::exchange(reply, {}) : context_.cluster.execute(Request::gets(key_));
    if (seen.failed()) ended(false);
    const JournalReading reading(key_, context_, seen);
    const JournalRoot& root = reading.root;
    if (unknown && !added.empty() && starts_with(root.segments, added)) return ended(true);
    std::string tail = without_padding(root.tail);
    if (!reading.contents.found || root.incarnation != old.incarnation ||
        !starts_with(root.segments, old.segments) || !tail.starts_with(old.tail))
      return ended(false);
    tail.erase(0, old.tail.size());
    const auto since = root.segments.begin() + static_cast<std::ptrdiff_t>(old.segments.size());
    if (small && added.empty() && since == root.segments.end() && tail.size() <= largest_inline)
      tail.insert(0, text);
    else if (added.empty() && !text.empty())
      added = write_segments(lines);
    JournalRoot next{root.incarnation, added, tail};
    next.segments.insert(next.segments.end(), since, root.segments.end());
    const Reply swapped =
        context_.cluster.execute(Request::compare_and_set(key_, encode(next), Exptime::never(), seen.cas));
    if (swapped.outcome == Outcome::stored) return ended(true);
    unknown = unknown || swapped.unknown();
    if (swapped.is(ReplyFailure::Kind::refused) && std::exchange(small, false)) {
      reply = seen;
    } else if (swapped.failed() && !swapped.unknown()) {
      ended(false);
      expect(context_.cluster, swapped);
    }
  }
  return ended(false);
}

Journal::Appended Journal::replace(std::span<const JournalLine> lines,
                                   const std::function<bool()>& may_create) {
  if (encode_all(lines).size() <= options_.largest_change) {
    try {
      return append(lines, may_create);
    } catch (const Failure& refusal) {
      if (refusal.code() != ErrorCode::refused) throw;  // else perhaps for its size
    }
  }
  rely_on(lines.front().change == Change::clear, "what replaces a journal begins by removing everything");
  std::vector<SegmentName> added;
  try {
    added = write_segments(lines);
  } catch (const UnknownOutcome& failure) {
    throw NotApplied(ErrorCode::unavailable, failure.what(), failure.server());  // nothing names them
  }
  try {
    Appended replaced = replace_by(added, may_create);
    if (replaced.declined) remove_segments(added);
    return replaced;
  } catch (const UnknownOutcome&) {
    throw;
  } catch (const Failure&) {
    remove_segments(added);
    throw;
  }
}

Journal::Appended Journal::replace_by(const std::vector<SegmentName>& added,
                                      const std::function<bool()>& may_create) {
  std::optional<CasUnique> unanswered;  // what a cas without reply was compared with
  std::size_t most_ids = forgotten_ids;
  for (int attempt = 0; attempt < most_swaps; ++attempt) {
    back_off(context_, attempt, journal_patience);
    if (attempt != 0 && !unanswered) fill();
    const Reply reply = context_.cluster.execute(Request::gets(key_));
    if (unanswered && reply.outcome != Outcome::hit) fail_unknown();
    expect_read(context_.cluster, reply);
    const bool missing = reply.outcome == Outcome::miss;
    if (missing && may_create && !may_create())
      return {.declined = true, .incarnation = {}, .server = reply.server};
    JournalReading reading(key_, context_, reply);
    if (unanswered && starts_with(reading.root.segments, added)) {
      return {.incarnation = {}, .server = reply.server};
    }
    // A second cas with the same unique: at most one of the two is applied.
    if (unanswered && !(*unanswered == reply.cas)) fail_unknown();
    const std::string tail = remembered(reading.root.tail, most_ids);
    const std::string incarnation = missing ? context_.random.token() : reading.root.incarnation;
    const std::string root = encode(JournalRoot{incarnation, added, tail});
    const Reply swapped =
        context_.cluster.execute(missing ? Request::add(key_, root, Exptime::never())
                                         : Request::compare_and_set(key_, root, Exptime::never(), reply.cas));
    if (swapped.outcome == Outcome::stored) {
      remove_segments(reading.root.segments);
      return {.created = missing, .incarnation = missing ? incarnation : "", .server = swapped.server};
    }
    if (swapped.unknown()) unanswered = reply.cas;
    if (swapped.failed() && !swapped.unknown()) {
      if (unanswered) fail_unknown();
      // It may be too large for an item.
      most_ids /= 2;
      if (swapped.is(ReplyFailure::Kind::refused) && !tail.empty()) continue;
      expect(context_.cluster, swapped);
    }
  }
  if (unanswered) fail_unknown();
  throw Contention("other clients kept changing the journal " + key_ + " while it was replaced; try again");
}

}  // namespace mcds
