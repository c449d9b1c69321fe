// Putting an array into another number of copies: the steps of common/primitives/recopying.hpp for journals.
#include <algorithm>
#include <utility>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/structures/array/array.hpp"

namespace mcds {

namespace {

constexpr int most_rounds = 100;

// The roots to be, one for each new copy: `<size> <root>` after another.
std::string listed(std::span<const std::string> roots) {
  std::string text;
  for (const std::string& root : roots) append_all(text, {std::to_string(root.size()), " ", root});
  return text;
}

std::vector<std::string> taken_apart(std::string_view text) {
  std::vector<std::string> roots;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const auto size = parse_u64(text.substr(0, space));
    if (!size || space == std::string_view::npos || *size > text.size() - space - 1) return {};
    roots.emplace_back(text.substr(space + 1, *size));
    text.remove_prefix(space + 1 + *size);
  }
  return roots;
}

void expect_all(std::span<const std::optional<Failure>> failures) {
  for (const auto& failure : failures) {
    if (failure) throw Failure(*failure);
  }
}

class JournalMove {
 public:
  JournalMove(Recopying& recopying, std::string old_key, std::string new_key, const Journal::Options& options)
      : recopying_(recopying),
        old_key_(std::move(old_key)),
        new_key_(std::move(new_key)),
        options_(options),
        old_(recopying.old_context()),
        new_(recopying.new_context()),
        roots_(taken_apart(recopying.mark().moving)) {}

  void run() {
    recopying_.settle();
    take_staged();
    // First without holding up anybody, so that little is left to be staged while the roots are full.
    bool found = read();
    if (found) stage();
    for (int round = 0; found && (found = hold()); ++round) {
      if (round == most_rounds) throw Contention("other clients keep changing the array; try again");
      stage();
      if (let_go()) break;
    }
    publish();
  }

 private:
  // What a mover before this one may have removed already.
  void take_staged() {
    if (roots_.size() != new_.size()) roots_.clear();
    if (roots_.empty()) return;
    std::vector<JournalContents> contents(new_.size());
    expect_all(new_.run([&](std::size_t copy) {
      contents[copy] = Journal(new_.at(copy), new_key_, options_).read_staged(roots_[copy]);
    }));
    for (const JournalContents& copy : contents) take(copy);
    staged_ = lines_;
    staged_whole_ = whole_;
  }

  void take(const JournalContents& contents) {
    if (!contents.found) return;
    whole_ = whole_ || (contents.lost_segments == 0 && contents.foreign == 0);
    lines_ = unite(lines_, contents.lines);
  }

  // False: nothing is there.
  bool read() {
    std::vector<JournalContents> contents(old_.size());
    expect_all(old_.run(
        [&](std::size_t copy) { contents[copy] = Journal(old_.at(copy), old_key_, options_).read(); }));
    for (const JournalContents& copy : contents) take(copy);
    return std::any_of(contents.begin(), contents.end(), [](const auto& copy) { return copy.found; });
  }

  // False: nothing is there any more.
  bool hold() {
    held_.assign(old_.size(), {});
    expect_all(
        old_.run([&](std::size_t copy) { held_[copy] = Journal(old_.at(copy), old_key_, options_).hold(); }));
    const bool found =
        std::any_of(held_.begin(), held_.end(), [](const auto& held) { return held.contents.found; });
    for (const Journal::Held& held : held_) take(held.contents);
    return found;
  }

  // What is new, behind what is staged already; or all anew, in its place.
  void stage() {
    const bool behind = !roots_.empty() && staged_whole_ == whole_ && begins_with(lines_, staged_);
    if (behind && lines_.size() == staged_.size()) return;
    Journal::Options options = options_;
    options.lossy = !whole_ && !behind;
    const std::span<const JournalLine> added = std::span(lines_).subspan(behind ? staged_.size() : 0);
    const std::vector<std::string> before = roots_;
    std::vector<std::string> roots(new_.size());
    for (std::size_t copy = 0; copy < roots.size(); ++copy) {
      roots[copy] = Journal(new_.at(copy), new_key_, options).stage(added);
      if (behind) roots[copy] = joined(before[copy], roots[copy]);
      recopying_.keep_alive();
    }
    recopying_.write(listed(roots));
    if (!behind) remove_staged(before);
    roots_ = std::move(roots);
    staged_ = lines_;
    staged_whole_ = whole_;
  }

  static bool begins_with(const std::vector<JournalLine>& lines, const std::vector<JournalLine>& first) {
    return lines.size() >= first.size() &&
           std::equal(first.begin(), first.end(), lines.begin(), [](const auto& one, const auto& other) {
             return one.id == other.id && one.change == other.change;
           });
  }

  static std::string joined(const std::string& root, const std::string& next) {
    const auto first = decode_journal_root(root);
    const auto second = decode_journal_root(next);
    JournalRoot both{first->incarnation, first->segments, {}};
    both.segments.insert(both.segments.end(), second->segments.begin(), second->segments.end());
    return encode(both);
  }

  // Otherwise they would take memory until they are evicted, or others are.
  void remove_staged(const std::vector<std::string>& roots) {
    if (roots.empty()) return;
    static_cast<void>(new_.run([&](std::size_t copy) {
      const auto root = decode_journal_root(roots[copy]);
      std::vector<Request> batch;
      for (std::size_t i = 0; root && i < root->segments.size(); ++i)
        batch.push_back(Request::remove(new_key_ + ":s:" + root->segments[i].id).lying_with(new_key_));
      if (!batch.empty()) static_cast<void>(new_.at(copy).cluster.execute(batch));
    }));
  }

  // False: one was changed.
  bool let_go() {
    std::vector<char> gone(old_.size(), 1);
    expect_all(old_.run([&](std::size_t copy) {
      if (!held_[copy].contents.found) return;
      gone[copy] = Journal(old_.at(copy), old_key_, options_).let_go(held_[copy]) ? 1 : 0;
    }));
    return std::find(gone.begin(), gone.end(), 0) == gone.end();
  }

  void publish() {
    if (roots_.empty()) return;
    // The old roots may have been removed by who took over, who knew more.
    recopying_.check();
    expect_all(new_.run([&](std::size_t copy) {
      const Context& context = new_.at(copy);
      expect(context.cluster,
             context.cluster.execute(Request::add(new_key_, roots_[copy], Exptime::never())));
    }));
  }

  Recopying& recopying_;
  std::string old_key_, new_key_;
  Journal::Options options_;
  Copies old_, new_;
  std::vector<std::string> roots_;
  std::vector<JournalLine> lines_;   // of all that was read
  std::vector<JournalLine> staged_;  // those that roots_ name
  bool staged_whole_ = false;
  bool whole_ = false;  // a copy had lost nothing
  std::vector<Journal::Held> held_;
};

}  // namespace

void Array::move(Recopying& recopying, const std::string& name, const Journal::Options& options) {
  Context old_keys = recopying.old_context();
  if (recopying.mark().from_unmarked) old_keys.copies = 1;
  JournalMove(recopying, copied_key(old_keys, "array", name),
              copied_key(recopying.new_context(), "array", name), options)
      .run();
  recopying.finish();
}

void Array::complete_recopy(const Context& context, const std::string& name, const Journal::Options& options,
                            const Recopying::Seen& left) {
  Recopying recopying(context, "array", name);
  recopying.take_over(left);
  move(recopying, name, options);
}

Array::Recopied Array::recopy() {
  const auto place = kept_.only_place();
  if (!place) {
    const Reply json = context_.cluster.execute(Request::get(json_key()));
    if (expect_read(context_.cluster, json).outcome == Outcome::hit)
      throw Failure(ErrorCode::bad_data, "an array with the JSON encoding has one copy",
                    context_.cluster.address_of(json.server));
    return {};
  }
  if (place->copies == context_.copies) return {.found = true, .from = place->copies};
  Recopying recopying(context_, "array", name_);
  recopying.begin(place->copies, place->unmarked, context_.copies);
  move(recopying, name_, options_);
  return {.found = true, .from = place->copies};
}

}  // namespace mcds
