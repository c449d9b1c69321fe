// Putting an array into another number of copies: the steps of common/primitives/several/recopying.hpp for
// journals.
#include <algorithm>
#include <utility>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/rely.hpp"
#include "common/structures/array/array.hpp"

namespace mcds {

namespace {

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
    if (!recopying_.taken_over()) rehearse();
    recopying_.settle();
    read_staged();
    in_rounds("the array", [&] {
      if (!hold()) return true;
      stage();
      return let_go();
    });
    publish();
  }

 private:
  // What is another program's is refused here, and what servers refuse, for its size or for want of memory:
  // the array stays as it is.
  void rehearse() {
    std::vector<std::string> roots;
    try {
      std::vector<std::vector<JournalLine>> copies;
      for (auto& copy :
           old_.each([&](std::size_t copy) { return Journal(old_.at(copy), old_key_, options_).read(); }))
        copies.push_back(std::move(copy.value().lines));
      const std::vector<JournalLine> lines = unite_all(std::move(copies));
      for (std::size_t copy = 0; copy < new_.size(); ++copy) {
        roots.push_back(Journal(new_.at(copy), new_key_, options_).stage(lines));
        recopying_.keep_alive();
      }
      if (!roots.empty()) {
        recopying_.write(listed(roots));
        recopying_.write({});
      }
    } catch (const Failure& refusal) {
      if (refusal.code() != ErrorCode::refused && refusal.code() != ErrorCode::bad_data) throw;
      recopying_.finish();
      drop(roots);
      throw;
    }
    drop(roots);
  }

  // What a mover before this one held, and may have removed already.
  void read_staged() {
    if (roots_.size() != new_.size()) roots_.clear();
    if (roots_.empty()) return;
    const auto contents = expect_all(new_.each([&](std::size_t copy) {
      return Journal(new_.at(copy), new_key_, options_).read_staged(roots_[copy]);
    }));
    for (const JournalContents& copy : contents) take(copy);
    unite_seen();
    staged_ = lines_;
    staged_whole_ = whole_;
  }

  void take(const JournalContents& contents) {
    if (!contents.found) return;
    whole_ = whole_ || !contents.loss.any();
    seen_.push_back(contents.lines);
  }

  void unite_seen() { lines_ = unite_all(std::exchange(seen_, {})); }

  // False: nothing is there any more. Where every old copy is there, they alone say what the array is: a
  // client that thawed them may have dropped a removal together with what it removes, so what was read
  // earlier would come back.
  bool hold() {
    held_ = expect_all(
        old_.each([&](std::size_t copy) { return Journal(old_.at(copy), old_key_, options_).hold(); }));
    const auto found =
        std::ranges::count_if(held_, [](const Journal::Held& held) { return held.contents.found; });
    if (found == 0) return false;
    whole_ = false;
    if (static_cast<std::size_t>(found) != held_.size()) {
      seen_.push_back(staged_);
      whole_ = staged_whole_;
    }
    for (const Journal::Held& held : held_) take(held.contents);
    unite_seen();
    return true;
  }

  // Nobody who was taken over from gets beyond the mark: the roots may be another array's by now.
  void stage() {
    Journal::Options options = options_;
    options.lossy = !whole_;
    const std::vector<std::string> before = roots_;
    std::vector<std::string> roots(new_.size());
    for (std::size_t copy = 0; copy < roots.size(); ++copy) {
      roots[copy] = Journal(new_.at(copy), new_key_, options).stage(lines_);
      recopying_.keep_alive();
    }
    recopying_.write(listed(roots));
    drop(before);
    roots_ = std::move(roots);
    staged_ = lines_;
    staged_whole_ = whole_;
  }

  void drop(const std::vector<std::string>& roots) {
    for (std::size_t copy = 0; copy < roots.size(); ++copy)
      Journal(new_.at(copy), new_key_, options_).drop_staged(roots[copy]);
  }

  // False: one was changed.
  bool let_go() {
    const auto gone = expect_all(old_.each([&](std::size_t copy) {
      return !held_[copy].contents.found || Journal(old_.at(copy), old_key_, options_).let_go(held_[copy]);
    }));
    return std::ranges::find(gone, false) == gone.end();
  }

  void publish() {
    if (roots_.empty()) return;
    rely_on(roots_.size() == new_.size(), "every new copy is staged before an old one is removed");
    // The old roots may have been removed by who took over, who knew more.
    recopying_.check();
    expect_all(new_.each([&](std::size_t copy) {
      const Context& context = new_.at(copy);
      expect(context.cluster,
             context.cluster.execute(Request::add(new_key_, roots_[copy], Exptime::never())));
    }));
  }

  Recopying& recopying_;
  std::string old_key_, new_key_;
  Journal::Options options_;
  Replicas old_, new_;
  std::vector<std::string> roots_;   // named in the mark, one for each new copy
  std::vector<JournalLine> staged_;  // what they name
  bool staged_whole_ = false;
  std::vector<std::vector<JournalLine>> seen_;
  std::vector<JournalLine> lines_;  // of what is held
  bool whole_ = false;              // a copy of it has lost nothing
  std::vector<Journal::Held> held_;
};

}  // namespace

void Array::move(Recopying& change, const std::string& name, const Journal::Options& options) {
  const KeptNumber to{change.mark().to};
  JournalMove(change, change.mark().from.key(change.old_context(), "array", name),
              to.key(change.new_context(), "array", name), options)
      .run();
  change.finish();
}

Array::Recopied Array::recopy() {
  const Recopied recopied = kept_.recopy();
  if (recopied.found) return recopied;
  const Reply json = context_.cluster.execute(Request::get(json_key_));
  if (expect_read(context_.cluster, json).outcome == Outcome::hit)
    throw Failure(ErrorCode::bad_data, "an array with the JSON encoding has one copy",
                  context_.cluster.address_of(json.server));
  return {};
}

}  // namespace mcds
