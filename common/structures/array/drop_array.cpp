// Removes an array that is a journal.
//
// The JSON array was removed before, because it would become the array if the journal disappeared first. A
// root without segments is removed by compare-and-delete. A root with segments is first replaced, by cas,
// with an empty one that still names them; then the segments are removed, and then this root if nothing was
// added. An element that another client adds meanwhile stays in the empty array, as if that client had
// created it. A crash in between leaves an empty array. The next change or drop uses it as any other, and it
// names the segments that remain to be removed.
#include <algorithm>

#include "common/primitives/cas_update.hpp"
#include "common/structures/array/array.hpp"

namespace mcds {

namespace {

constexpr int max_removals = 100;  // while other clients change it

// Compaction keeps the same number of ids, so that a change that is executed late is not applied twice.
constexpr std::size_t max_ids = 256;

// Returns a root without elements that names the same segments. Its removal of everything follows them, so
// that none counts as lost once it is removed.
std::string emptied(const Context& context, const JournalRoot& root, std::span<const std::string> ids) {
  std::string tail;
  for (const std::string& id : ids) append_line(tail, {Change::forgotten, id, {}});
  append_line(tail, {Change::clear, journal_line_id(context.random.token(), 0), {}});
  return encode(JournalRoot{root.incarnation, root.segments, tail});
}

void add_ids(std::vector<std::string>& ids, std::string_view lines) {
  report_journal_lines(lines, [&](const JournalLineView& line) { ids.emplace_back(line.id()); });
}

bool leaves_elements(std::string_view text) {
  std::vector<JournalLineView> lines;
  report_journal_lines(text, [&](const JournalLineView& line) { lines.push_back(line); });
  keep_first_of_each(lines);
  return !replay(lines).empty();
}

// Returns true if the key does not exist any more.
bool is_gone(const Context& context, const Reply& reply) {
  const Outcome outcome = expect(context.cluster, reply).outcome;
  return outcome == Outcome::deleted || outcome == Outcome::not_found;
}

}  // namespace

bool Array::drop_journal() const {
  std::optional<std::string> left;  // the root that this run has emptied
  try {
    return drop_journal(left);
  } catch (const CorruptData&) {
    throw;
  } catch (const Failure& failure) {
    if (!left) throw;
    throw half_dropped(failure);
  }
}

bool Array::drop_journal(std::optional<std::string>& left) const {
  std::vector<Request> removals;   // of the segments that the root names
  std::size_t kept_ids = max_ids;  // fewer if the server accepts only smaller items
  for (int attempt = 0; attempt < max_removals; ++attempt) {
    back_off(context_, attempt);
    const Reply reply = context_.cluster.execute(Request::gets(key_));
    if (expect_read(context_.cluster, reply).outcome == Outcome::miss) return attempt != 0;
    expect_cas(context_.cluster, reply.server, reply.cas);
    JournalReading reading(key_, context_, reply);
    if (left && reply.value.starts_with(*left)) {
      for (const Reply& removed : context_.cluster.execute(removals)) {
        if (!is_gone(context_, removed))
          throw Contention("another client writes to the array's parts; run the command again");
      }
      removals.clear();
      if (leaves_elements(std::string_view(reply.value).substr(left->size()))) return true;
    } else {
      // Another client has sealed or compacted it, or created another journal.
      if (left) {
        reading.read_segments(context_);
        if (!replay(reading.views()).empty()) return true;
      }
      if (!reading.root.segments.empty()) {
        std::vector<std::string> ids;
        removals = removals_of(reading.root, ids);
        add_ids(ids, reading.root.tail);
        const std::size_t count = std::min(kept_ids, ids.size());
        std::string next = emptied(context_, reading.root, std::span(ids).last(count));
        const Reply swapped =
            context_.cluster.execute(Request::compare_and_set(key_, next, Exptime::never(), reply.cas));
        if (swapped.is(ReplyFailure::Kind::refused) && count != 0)
          kept_ids = count / 2;
        else if (expect(context_.cluster, swapped).outcome == Outcome::stored)
          left = std::move(next);
        continue;
      }
    }
    if (is_gone(context_, context_.cluster.execute(Request::remove_if(key_, reply.cas)))) return true;
  }
  throw Contention("other clients keep changing the array; try again");
}

// Returns the compare-and-deletes of the root's segments and adds the ids of their lines to `ids`. Throws
// CorruptData if a segment holds another program's data.
std::vector<Request> Array::removals_of(const JournalRoot& root, std::vector<std::string>& ids) const {
  std::vector<Request> removals;
  for (std::size_t from = 0; from < root.segments.size(); from += segments_per_read) {
    std::vector<Request> reads;
    for (std::size_t i = from; i < std::min(from + segments_per_read, root.segments.size()); ++i)
      reads.push_back(Request::gets(segment_key(key_, root.segments[i].id)).placed_with(key_));
    const auto replies = context_.cluster.execute(reads);
    for (std::size_t i = 0; i < reads.size(); ++i) {
      if (expect_read(context_.cluster, replies[i]).outcome == Outcome::miss) continue;
      const std::size_t before = ids.size();
      add_ids(ids, replies[i].value);
      if (ids.size() == before)
        throw CorruptData(
            reads[i].key + " holds another program's data, not a part of the array; remove the key",
            context_.cluster.address_of(replies[i].server));
      removals.push_back(removal_of(reads[i].key, replies[i].cas).placed_with(key_));
    }
  }
  return removals;
}

}  // namespace mcds
