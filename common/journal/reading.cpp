#include <algorithm>
#include <unordered_set>

#include "common/journal/journal.hpp"

namespace mcds {

std::string segment_key(const std::string& root, const std::string& id) {
  return root + ":s:" + id;
}

void JournalReading::take_root(const Context& context, Reply reply) {
  expect_read(context.cluster, reply);
  contents = JournalContents();
  contents.key = key;
  contents.server = reply.server;
  contents.cas = reply.cas;
  complete = true;
  if (reply.outcome != Outcome::hit) return;
  root_value = std::move(reply.value);
  root_value.reserve(sizeof root_value);  // on the heap, so that views into it are valid when this is moved
  auto decoded = decode_journal_root(root_value);
  if (!decoded)
    throw CorruptData("the value under " + key + " is not a journal; does another program use this name?",
                      context.cluster.address_of(reply.server));
  root = std::move(*decoded);
  contents.found = true;
  contents.incarnation = root.incarnation;
  contents.bytes = root_value.size();
  segments.assign(root.segments.size(), {});
  complete = root.segments.empty();
}

// Most journals take one trip. Larger ones take more, so that the size limit is checked in between.
void JournalReading::read_segments(const Context& context) {
  std::vector<Request> requests;
  for (const SegmentName& segment : root.segments)
    requests.push_back(Request::get(segment_key(key, segment.id)).placed_with(key));
  std::size_t bytes = root_value.size();
  complete = true;
  for (std::size_t from = 0; from < requests.size(); from += segments_per_read) {
    const std::size_t count = std::min(segments_per_read, requests.size() - from);
    auto replies = context.cluster.execute(std::span(requests).subspan(from, count));
    for (std::size_t n = 0; n < replies.size(); ++n) {
      expect_read(context.cluster, replies[n]);
      bytes += replies[n].value.size();
      if (replies[n].outcome == Outcome::hit)
        segments[from + n] = std::move(replies[n].value);
      else
        complete = false;
    }
    if (bytes > max_journal_size)
      throw CorruptData("the journal under " + key + " is larger than " +
                            std::to_string(max_journal_size >> 20) +
                            " MiB, the limit for one read; store less under one name",
                        context.cluster.address_of(contents.server));
  }
}

void JournalReading::reread_root(const Context& context) {
  const bool compares = contents.cas.value != 0;
  JournalReading again(key, context,
                       context.cluster.execute(compares ? Request::gets(key) : Request::get(key)));
  if (again.contents.found && again.root_value == root_value) {
    complete = true;  // the root has not changed, so the segment is lost
  } else {
    *this = std::move(again);
    root = contents.found ? *decode_journal_root(root_value) : JournalRoot();
  }
}

JournalContents JournalReading::finish() {
  for (const JournalLineView& line : views())
    contents.lines.push_back({line.change(), std::string(line.id()), std::string(line.element())});
  return std::move(contents);
}

std::size_t JournalReading::bytes() const {
  std::size_t bytes = root_value.size();
  for (const auto& segment : segments) bytes += segment ? segment->size() : 0;
  return bytes;
}

std::vector<JournalLineView> JournalReading::views() {
  std::vector<JournalLineView> views;
  views.reserve(bytes() / 32);  // few lines are shorter; pages that are not used cost nothing
  report_lines([&](const JournalLineView& line) { views.push_back(line); });
  keep_first_of_each(views);
  return views;
}

void JournalReading::report_lines(const ReportLine& report) {
  if (!contents.found) return;
  ForeignLines foreign;
  // The ids of removals of everything, and of lines that were compacted away.
  std::unordered_set<std::string_view> ids;
  const auto take = [&](std::string_view text) {
    bool has_lines = false;
    const std::uint64_t unknown_before = foreign.unknown;
    report_journal_lines(
        text,
        [&](const JournalLineView& line) {
          has_lines = true;
          const bool clears = line.change() == Change::clear;
          // A repetition that is executed late has no effect.
          if ((clears || line.change() == Change::forgotten) && ids.insert(line.id()).second && clears) {
            contents.loss = {};
            foreign.damaged = 0;
          }
          report(line);
        },
        &foreign);
    return has_lines || foreign.unknown != unknown_before;
  };
  for (std::size_t i = 0; i < root.segments.size(); ++i) {
    std::string segment = segment_key(key, root.segments[i].id);
    contents.bytes += segments[i] ? segments[i]->size() : 0;
    if (!segments[i]) ++contents.loss.segments;
    // A value without any line of ours, or of a later version, is another program's, and must not be removed
    // with the journal.
    if (!segments[i] || take(*segments[i])) contents.segments.push_back(std::move(segment));
  }
  take(root.tail);
  contents.loss.lines = foreign.damaged;
  contents.loss.unknown = foreign.unknown;
}

}  // namespace mcds
