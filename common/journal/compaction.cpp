// Seals and compacts journals without losing an acknowledged line.
//
// A full root accepts no appends (NOT_STORED), so only another sealer can make a sealer's cas fail. Of the
// clients that find it full, one claims the sealing, and the others wait a few milliseconds.
#include <algorithm>
#include <bit>
#include <unordered_set>

#include "common/journal/journal.hpp"
#include "common/primitives/seal.hpp"

namespace mcds {

namespace {

constexpr int max_compactions = 24;
constexpr int max_swaps = 24;
constexpr int max_looks = 8;  // for roots whose removal got no reply
constexpr int max_fill_rounds = 64;
constexpr std::size_t min_padding = 16;
constexpr std::size_t forgotten_ids = 256;
constexpr std::size_t max_inline_size = 48 * 1024;  // compaction leaves up to this size in the root itself

// No segment has this id, because ids are random and begin with a letter.
const std::string claim_id(16, '0');

// Returns the lines that `rewrite` kept and, where they were among them, the last ids that it dropped: what
// comes last is most likely to be repeated late.
std::vector<JournalLine> with_forgotten(const std::vector<JournalLine>& before, std::vector<JournalLine> kept,
                                        std::size_t most = forgotten_ids) {
  std::unordered_set<std::string> left;
  for (const JournalLine& line : kept) left.insert(line.id);
  std::vector<bool> dropped(before.size());
  std::size_t too_many = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    dropped[i] = !left.contains(before[i].id);
    too_many += dropped[i] ? 1 : 0;
  }
  too_many -= std::min(too_many, most);
  std::vector<JournalLine> result;
  auto next = kept.begin();
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (dropped[i] && too_many == 0)
      result.push_back({Change::forgotten, before[i].id, {}});
    else if (dropped[i])
      --too_many;
    while (!dropped[i] && left.contains(before[i].id)) {
      left.erase(next->id);
      result.push_back(std::move(*next++));
    }
  }
  std::move(next, kept.end(), std::back_inserter(result));
  return result;
}

bool starts_with(const std::vector<SegmentName>& all, const std::vector<SegmentName>& first) {
  return all.size() >= first.size() && std::equal(first.begin(), first.end(), all.begin(),
                                                  [](const auto& a, const auto& b) { return a.id == b.id; });
}

// Returns the segments that are not named.
std::vector<SegmentName> not_in(const std::vector<SegmentName>& named, std::vector<SegmentName> segments) {
  std::erase_if(segments, [&](const SegmentName& one) {
    return std::ranges::find(named, one.id, &SegmentName::id) != named.end();
  });
  return segments;
}

Request new_segment(const std::string& root, const std::string& id, const std::string& lines) {
  return Request::add(segment_key(root, id), lines, Exptime::never()).placed_with(root);
}

[[noreturn]] void fail_unknown() {
  throw UnknownOutcome(
      "no reply to the replacement, which may have been applied, and the journal has changed since; read it "
      "before you retry");
}

}  // namespace

// The holder of the claim seals, and the others wait. Without the claim they would all do the same work, but
// nothing would be lost. A crashed holder's claim expires.
bool Journal::claim() const {
  const auto exptime = Exptime::after(std::chrono::seconds(1), context_.clock.wall());
  const Reply reply =
      context_.cluster.execute(Request::add(segment_key(key_, claim_id), "C", exptime).placed_with(key_));
  return reply.outcome != Outcome::not_stored;
}

void Journal::give_up_claim() const {
  static_cast<void>(context_.cluster.execute(Request::remove(segment_key(key_, claim_id)).placed_with(key_)));
}

// Seals a root that was found full. gone: it no longer exists. of_nothing: it has no lines to seal. doubled:
// sealed, and the number of segments reached a power of two. Compaction is tried only then, so a journal that
// only grows is read twice in total and not for each segment.
Journal::Full Journal::seal_full() const {
  const Reply reply = context_.cluster.execute(Request::gets(key_));
  expect_read(context_.cluster, reply);
  if (reply.outcome != Outcome::hit) return Full::gone;
  const auto root = decode_journal_root(reply.value);
  if (root && root->tail.empty()) return Full::of_nothing;
  if (reply.cas.value == 0)
    throw NotApplied(ErrorCode::refused,
                     "the journal " + key_ +
                         " is full, and the server does not support cas, which continuing it needs; start "
                         "memcached without -C",
                     context_.cluster.address_of(reply.server));
  static_cast<void>(seal(reply));
  return std::has_single_bit(root->segments.size() + 1) ? Full::doubled : Full::sealed;
}

// Turns the tail into a segment: adds the segment under a fresh name, then replaces the root by cas with the
// names and an empty tail. Returns false if another client changed the root meanwhile or the outcome is
// unknown. A crash after the add leaves a segment that no root lists; it is evicted.
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
  // If two clients seal, one cas fails. Its segment is removed unless the cas got no reply: the root may list
  // it.
  if (!done && !swapped.unknown()) remove_segments(added);
  if (swapped.is(ReplyFailure::Kind::refused)) expect(context_.cluster, swapped);  // without memory
  return done;
}

// Appends padding to the root until nothing fits, so that no append can make a cas of the root fail. Without
// this, 64 appenders would starve compaction. A crash leaves the root padded; the next sealer drops that.
void Journal::fill() const {
  std::vector<Request> batch;
  for (std::size_t size = options_.max_padding; size >= min_padding; size /= 2)
    batch.push_back(Request::append(key_, padding_line(size)));
  for (int round = 0; round < max_fill_rounds; ++round) {
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
    // The lost segment comes after the others, because the removal of everything in them preceded the loss.
    if (options_.lossy) names.push_back(lost_segment());
  } catch (const Failure&) {
    remove_segments(names);
    throw;
  }
  return names;
}

namespace {

// Looks for the roots whose removals got no reply, and counts those that are gone as missing. A server that
// did not answer is asked again only after it has answered a health probe, hence the pauses.
void settle_removals(const Context& context, std::span<const JournalContents> seen,
                     std::vector<Reply>& replies) {
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (replies[i].unknown()) open.push_back(i);
  }
  for (int look = 1; !open.empty() && look <= max_looks; ++look) {
    back_off(context, look, journal_patience);
    std::vector<Request> gets;
    for (const std::size_t i : open) gets.push_back(Request::get(seen[i].key));
    std::vector<Reply> now = context.cluster.execute(gets);
    std::vector<std::size_t> failed;
    for (std::size_t n = 0; n < open.size(); ++n) {
      if (now[n].failed()) failed.push_back(open[n]);
      if (now[n].outcome == Outcome::miss) replies[open[n]] = std::move(now[n]);
    }
    open = std::move(failed);
  }
}

}  // namespace

std::vector<bool> remove_journals(const Context& context, std::span<const JournalContents> seen) {
  std::vector<Request> roots, segments;
  for (const JournalContents& journal : seen) {
    expect_cas(context.cluster, journal.server, journal.cas);
    roots.push_back(Request::remove_if(journal.key, journal.cas));
  }
  auto replies = context.cluster.execute(roots);
  settle_removals(context, seen, replies);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (replies[i].outcome != Outcome::deleted && replies[i].outcome != Outcome::miss) continue;
    for (const std::string& segment : seen[i].segments)
      segments.push_back(Request::remove(segment).placed_with(seen[i].key));
  }
  if (!segments.empty()) static_cast<void>(context.cluster.execute(segments));
  std::vector<bool> removed;
  for (const Reply& reply : replies)
    removed.push_back(expect(context.cluster, reply).outcome != Outcome::exists);
  return removed;
}

// A segment that is not removed is named by no root and will be evicted.
void Journal::remove_segments(std::span<const SegmentName> segments) const {
  std::vector<Request> batch;
  for (const SegmentName& segment : segments)
    batch.push_back(Request::remove(segment_key(key_, segment.id)).placed_with(key_));
  if (!batch.empty()) static_cast<void>(context_.cluster.execute(batch));
}

// Reads the root and the segments, then swaps the remaining lines in. A crash before the swap leaves the old
// journal, padded; a crash after it leaves old segments that no root lists. If the segments that were read
// are no longer the first ones, because another client sealed or compacted, it starts again.
bool Journal::compact(const Rewrite& rewrite, bool despite_loss, std::size_t max_segments) {
  for (int attempt = 0; attempt < max_compactions; ++attempt) {
    back_off(context_, attempt, journal_patience);
    if (attempt != 0) fill();
    const Reply reply = context_.cluster.execute(Request::gets(key_));
    const JournalReading seen(key_, context_, reply);
    if (!seen.contents.found || seen.root.segments.size() > max_segments) return false;
    std::string tail = without_padding(seen.root.tail);
    // Segments do not change, whatever is appended meanwhile. Therefore a tail is sealed first.
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
    if (contents.loss.unknown != 0 || (contents.loss.any() && !despite_loss)) return false;
    auto left = rewrite(contents.lines);
    if (!left) return true;
    const std::vector<JournalLine> lines = with_forgotten(contents.lines, *std::move(left));
    if (swap(old, lines, divided ? std::nullopt : std::optional(reply))) return true;
  }
  throw Contention("the journal " + key_ +
                   " could not be compacted because other clients kept changing it; try again");
}

// Puts the lines in place of what was read: of the segments, which are the first that the root names, or of
// the tail, if the root has no segments. Everything appended or sealed since stays after them. `reply` is the
// reply to a gets of the root. Returns false if the root has other segments or another tail. If another
// client sealed the tail, the same lines may be the tail again: a late repetition, which must not come first.
bool Journal::swap(const JournalRoot& old, const std::vector<JournalLine>& lines,
                   std::optional<Reply> reply) const {
  const std::string text = encode_all(lines);
  const std::size_t room = std::min(max_inline_size, options_.segment_size);
  bool small = !options_.lossy && text.size() <= (old.segments.empty() ? room : room / 2);
  std::vector<SegmentName> added;
  if (!small) added = write_segments(lines);
  bool unknown = false, claimed = false;
  const auto ended = [&](bool done) {
    if (done || !unknown) remove_segments(done ? old.segments : added);
    if (claimed) give_up_claim();
    return done;
  };
  for (int attempt = 0; attempt < max_swaps; ++attempt) {
    // A full root changes only if another client seals it.
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
        !starts_with(root.segments, old.segments) || !tail.starts_with(old.tail) ||
        (!old.tail.empty() && !root.segments.empty())) {
      // Our swap without a reply, or another client's, was applied: what the root named before is left over.
      if (unknown && reading.contents.found && root.incarnation == old.incarnation) {
        remove_segments(not_in(root.segments, old.segments));
        remove_segments(not_in(root.segments, added));
      }
      return ended(false);
    }
    tail.erase(0, old.tail.size());
    const auto since = root.segments.begin() + static_cast<std::ptrdiff_t>(old.segments.size());
    if (small && added.empty() && since == root.segments.end() && tail.size() <= max_inline_size)
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

// Lines that exceed one change are written as segments, to which the root is then set by cas. A crash before
// the cas leaves segments that no root lists.
Journal::Appended Journal::replace(std::span<const JournalLine> lines,
                                   const std::function<bool()>& may_create) {
  std::string text;
  for (auto line = lines.begin(); line != lines.end() && text.size() <= options_.max_change; ++line)
    append_line(text, *line);
  if (text.size() <= options_.max_change) {
    try {
      return append(lines, may_create);
    } catch (const Failure& refusal) {
      if (refusal.code() != ErrorCode::refused) throw;  // it may be refused for its size
    }
  }
  require(lines.front().change == Change::clear, "what replaces a journal begins by removing everything");
  std::vector<SegmentName> added;
  try {
    added = write_segments(lines);
  } catch (const UnknownOutcome& failure) {
    throw NotApplied(ErrorCode::unavailable, failure.what(), failure.server());  // no root names them
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

// Returns the last ids of a journal, encoded to recognize late repetitions. Reads the segments that have
// them: a change that got no reply may have been sealed or compacted since. Looks into the older segments for
// lines in an unknown form only.
std::string Journal::remembered(JournalReading reading, std::size_t most) const {
  auto& names = reading.root.segments;
  auto lines = static_cast<std::size_t>(std::ranges::count(reading.root.tail, '\n'));
  auto first = names.end();
  while (first != names.begin() && lines < most) lines += (--first)->lines;
  if (names.size() <= segments_per_read) first = names.begin();  // in the same trip
  std::uint64_t unknown = 0;
  for (auto next = names.begin(); next != first;) {
    const auto end = next + std::min<std::ptrdiff_t>(first - next, segments_per_read);
    JournalReading older;
    older.key = key_;
    older.contents.found = true;
    older.root.segments.assign(next, end);
    older.segments.assign(older.root.segments.size(), {});
    older.read_segments(context_);
    older.report_lines([](const JournalLineView&) {});
    unknown += older.contents.loss.unknown;
    next = end;
  }
  names.erase(names.begin(), first);
  reading.segments.assign(names.size(), {});
  reading.read_segments(context_);
  const JournalContents contents = reading.finish();
  unknown += contents.loss.unknown;
  if (unknown != 0)
    throw CorruptData(
        "another program wrote lines in an unknown form to " + key_ +
            ", which would be lost; nothing was replaced: do it with that program, or use another name",
        context_.cluster.address_of(contents.server));
  return encode_all(with_forgotten(contents.lines, {}, most));
}

Journal::Appended Journal::replace_by(const std::vector<SegmentName>& added,
                                      const std::function<bool()>& may_create) {
  std::optional<CasUnique> unanswered;  // the token of a cas that got no reply
  std::size_t max_ids = forgotten_ids;
  std::string tail;
  std::vector<SegmentName> replaced;
  for (int attempt = 0; attempt < max_swaps; ++attempt) {
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
      remove_segments(replaced);
      return {.incarnation = {}, .server = reply.server};
    }
    // Both cas requests carry the same token, so at most one of them is applied.
    if (unanswered && !(*unanswered == reply.cas)) fail_unknown();
    const std::string incarnation = missing ? context_.random.token() : reading.root.incarnation;
    replaced = reading.root.segments;
    if (!unanswered) tail = remembered(std::move(reading), max_ids);
    const std::string root = encode(JournalRoot{incarnation, added, tail});
    const Reply swapped =
        context_.cluster.execute(missing ? Request::add(key_, root, Exptime::never())
                                         : Request::compare_and_set(key_, root, Exptime::never(), reply.cas));
    if (swapped.outcome == Outcome::stored) {
      remove_segments(replaced);
      return {.created = missing, .incarnation = missing ? incarnation : "", .server = swapped.server};
    }
    if (swapped.unknown()) unanswered = reply.cas;
    if (swapped.failed() && !swapped.unknown()) {
      if (unanswered) fail_unknown();
      // The root may be too large for an item, so remember fewer ids.
      max_ids /= 2;
      if (swapped.is(ReplyFailure::Kind::refused) && !tail.empty()) continue;
      expect(context_.cluster, swapped);
    }
  }
  if (unanswered) fail_unknown();
  throw Contention("the journal " + key_ +
                   " could not be replaced because other clients kept changing it; try again");
}

}  // namespace mcds
