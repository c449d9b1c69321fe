// Fetches the elements of a table or hash, and repairs its copies: restores elements and names that a copy
// lost. If all of that succeeds, the copy's index counts as complete.
#include <algorithm>
#include <unordered_set>

#include "common/structures/elements/elements.hpp"
#include "common/structures/elements/index.hpp"

namespace mcds {

namespace {

// The first window shows how large values are. After it, two windows are in flight.
constexpr std::size_t first_window = 1024;
constexpr std::size_t max_window = 4096;
constexpr std::size_t min_window = 16;
constexpr std::size_t window_bytes = 2 << 20;

}  // namespace

// Merges the copies' indexes, a shard at a time, and reads the elements of their names, a window at a time.
class Elements::Fetching {
 public:
  Fetching(const Elements& elements, const Visit& visit, bool partial)
      : elements_(elements),
        visit_(visit),
        partial_(partial),
        copies_(elements.copies_.size()),
        compared_(value_if_replicated(copies_, copies_)),
        filling_(compared_),
        unlisted_(copies_),
        absent_(copies_),
        damaged_(copies_),
        repairable_(copies_, true) {
    looks_ = elements_.indexes_->look(partial_);
    for (std::size_t copy = 0; copy < copies_; ++copy) damaged_[copy] = damaged(looks_[copy]);
    ElementIndex::Look::reconcile(looks_);
  }

  Listing run() {
    for (shard_ = 0; shard_ < index_shards; ++shard_) {
      take_shard();
      note_losses();
    }
    if (!filling_.names.empty()) flush();
    take_asked();
    finish();
    compact();
    return listing_;
  }

 private:
  using Names = std::unordered_set<std::string_view>;
  using Shard = ElementIndex::Look::Shard;

  // Names whose elements are read together.
  struct Window {
    explicit Window(std::size_t copies) : listed(copies) {}
    std::vector<std::string> names;
    std::vector<std::vector<bool>> listed;  // per copy: its index lists the name
    Versions::Reading reading;
  };

  void take_shard() {
    auto lists = elements_.copies_.each([&](std::size_t copy) { return looks_[copy].take(shard_); });
    std::vector<CopyState> states;
    for (std::size_t copy = 0; copy < copies_; ++copy)
      states.push_back({.failure = lists[copy].failure(), .has = looks_[copy].state(shard_) == Shard::whole});
    if (const auto failure = failure_of(QuorumPhase::reading, states)) {
      if (!partial_ || failure->code() == ErrorCode::bad_data) raise(*failure);
      ++listing_.unread_shards;
      return note_unreachable(*failure);
    }
    for (std::size_t copy = 0; copy < copies_; ++copy) {
      if (any(Shard::whole) && !states[copy].failure && !states[copy].has) absent_[copy].insert(shard_);
    }
    std::vector<Names> names(compared_);
    for (std::size_t copy = 0; copy < copies_; ++copy) {
      if (lists[copy].failure())
        repairable_[copy] = false;
      else if (copy < compared_)
        names[copy].insert(lists[copy].value().begin(), lists[copy].value().end());
    }
    for (std::size_t copy = 0; copy < copies_; ++copy) {
      if (lists[copy].failure()) continue;
      for (std::string& name : lists[copy].value()) {
        const bool reported = std::any_of(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(copy),
                                          [&](const Names& before) { return before.contains(name); });
        if (!reported) take_name(names.empty() ? std::move(name) : std::string(name), names);
      }
    }
  }

  void note_unreachable(const Failure& failure) {
    const auto same = [&](const Failure& one) { return one.server() == failure.server(); };
    if (std::ranges::none_of(listing_.unreachable, same)) listing_.unreachable.push_back(failure);
  }

  void take_name(std::string&& name, const std::vector<Names>& names) {
    ++listing_.names;
    if (filling_.names.empty()) filling_.names.reserve(largest_);
    for (std::size_t copy = 0; copy < compared_; ++copy)
      filling_.listed[copy].push_back(names[copy].contains(name));
    filling_.names.push_back(std::move(name));
    if (filling_.names.size() >= largest_) flush();
  }

  // Requests one window before it handles the previous one, so that the servers work meanwhile.
  void flush() {
    ask(filling_);
    take_asked();
    asked_ = std::exchange(filling_, Window(compared_));
    if (std::exchange(first_, false)) take_asked();
  }

  void ask(Window& window) const {
    window.reading = elements_.versions_.begin_read(elements_.keys_of(window.names));
  }

  // Writes back what differs before it reports the window's elements.
  void take_asked() {
    if (!asked_) return;
    Window window = *std::exchange(asked_, std::nullopt);
    auto items = elements_.versions_.finish_read(std::move(window.reading), std::exchange(items_, {}));
    const bool flood = std::ranges::any_of(items, &VersionedItem::flood);
    if (flood && window.names.size() > min_window) {
      items.clear();
      return take_in_pieces(window);
    }
    for (std::size_t i = 0; i < items.size(); ++i) note_missed(window, i, items[i]);
    const auto unanswered = repair(items);
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (!unanswered[i]) {
        bytes += report(window.names[i], items[i]);
        continue;
      }
      if (!partial_) raise(*unanswered[i]);
      note_unreachable(*unanswered[i]);
      ++listing_.unknown;
    }
    // Large values lead to small windows.
    largest_ = std::clamp(window_bytes / (bytes / window.names.size() + 1), min_window, max_window);
    if (largest_ == max_window) items_ = std::move(items);
  }

  // Reads the window again, in pieces so small that the largest possible elements fit into memory.
  void take_in_pieces(Window& window) {
    for (std::size_t from = 0; from < window.names.size(); from += min_window) {
      const std::size_t count = std::min(min_window, window.names.size() - from);
      const auto piece = [&](auto& all) {
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(from);
        return std::decay_t<decltype(all)>(begin, begin + static_cast<std::ptrdiff_t>(count));
      };
      Window some(compared_);
      some.names = piece(window.names);
      for (std::size_t copy = 0; copy < compared_; ++copy) some.listed[copy] = piece(window.listed[copy]);
      ask(some);
      asked_ = std::move(some);
      take_asked();
    }
  }

  void note_missed(const Window& window, std::size_t i, const VersionedItem& item) {
    for (std::size_t copy = 0; copy < compared_; ++copy) {
      if (item.copies[copy].failure) repairable_[copy] = false;
      if (repairable_[copy] && item.live() && !window.listed[copy][i])
        unlisted_[copy].push_back(&window.names[i]);
    }
    if (!item.divergent()) return;
    listing_.copies_whole = false;
    auto& divergent = listing_.divergent.emplace_back();
    divergent.name = window.names[i];
    for (const VersionedCopy& copy : item.copies) divergent.values.push_back(copy.value);
  }

  // Writes what each copy has lost or missed, its index first. Returns per item why it may not be answered.
  std::vector<std::optional<Failure>> repair(std::vector<VersionedItem>& items) {
    const SteadyTime before = elements_.context_.clock.steady();
    list_unlisted();
    std::vector<bool> lacking;  // for each copy of each item
    for (const VersionedItem& item : items) {
      for (std::size_t copy = 0; copy < compared_; ++copy)
        lacking.push_back(item.live() && !item.copies[copy].failure && !item.copies[copy].live());
    }
    auto unanswered = elements_.versions_.settle(items);
    for (std::size_t i = 0; i < items.size(); ++i) {
      for (std::size_t copy = 0; copy < compared_; ++copy) {
        const VersionedCopy& now = items[i].copies[copy];
        if (now.failure || unanswered[i]) repairable_[copy] = false;
        if (lacking[i * compared_ + copy] && now.live()) ++repaired_;
      }
    }
    if (elements_.context_.clock.steady() - before > ElementIndex::grace / 2) list_unlisted();
    for (auto& names : unlisted_) names.clear();
    return unanswered;
  }

  // A shard that this creates does not have all names yet, and is marked as incomplete until it is accepted.
  void list_unlisted() {
    const auto nothing = [](const auto& names) { return names.empty(); };
    if (std::ranges::all_of(unlisted_, nothing)) return;
    const auto listed = elements_.copies_.each([&](std::size_t copy) {
      if (unlisted_[copy].empty()) return;
      ElementIndex& index = elements_.index(copy);
      ElementIndex::Listing listing = index.begin_list(index.shares_of(unlisted_[copy]), true);
      if (!listing.created.empty()) damaged_[copy] = true;
      index.finish_list(listing, {});
      for (const auto& failure : listing.failures) {
        if (failure) raise(*failure);
      }
    });
    for (std::size_t copy = 0; copy < copies_; ++copy) {
      if (listed[copy].failure()) repairable_[copy] = false;
    }
  }

  // Visits the element and returns the size of its value in bytes.
  std::size_t report(std::string& name, VersionedItem& item) {
    const VersionedCopy* newest = item.newest();
    if (newest == nullptr || newest->removed) return 0;
    ++listing_.present;
    ++present_[index_shard_of(name)];
    Found found{std::move(name), newest->value, newest->server, shard_, newest->flags == ending_flags};
    const std::size_t size = found.value.size();
    visit_(found);
    return size;
  }

  // Records a lost shard. It is lost only if it is lost in every copy that had it.
  void note_losses() {
    if (any(Shard::lost) && !any(Shard::whole)) listing_.lost.push_back(elements_.index(0).shard_key(shard_));
    for (std::size_t copy = 0; copy < copies_; ++copy) {
      if (looks_[copy].state(shard_) == Shard::unreachable) repairable_[copy] = false;
    }
  }

  void finish() {
    for (const auto& look : looks_) {
      listing_.lines += look.lines();
      listing_.shards += look.shards();
    }
    // A shard that was lost with every manifest leaves no trace.
    const auto is_lost = [](const ElementIndex::Look& look) {
      return !look.manifest_failure() && !look.manifest_whole();
    };
    if (std::ranges::all_of(looks_, is_lost))
      listing_.lost.insert(listing_.lost.begin(), elements_.index(0).manifest_key());
    record_loss();
    if (compared_ == 0) {
      const auto& failure = looks_.front().manifest_failure();
      if (failure && partial_) note_unreachable(*failure);
      return;
    }
    listing_.repaired = repaired_;
    if (listing_.complete()) accept_repaired();
    listing_.copies_whole =
        listing_.copies_whole && std::ranges::find(repairable_, false) == repairable_.end();
  }

  // Records a loss, or that a recorded one is none. If a copy cannot, the next fetch does.
  void record_loss() const {
    const bool lost = !listing_.lost.empty();
    if (!listing_.unreachable.empty() || !std::ranges::all_of(looks_, &ElementIndex::Look::certain)) return;
    static_cast<void>(elements_.copies_.each([&](std::size_t copy) {
      if (looks_[copy].loss_recorded() != lost) elements_.index(copy).record_loss(lost);
    }));
  }

  void accept_repaired() {
    const auto accepted = elements_.copies_.each([&](std::size_t copy) {
      ElementIndex& index = elements_.index(copy);
      if (!repairable_[copy]) return;
      // A shard whose names are no elements any more was not listed, and would count as lost forever.
      if (!absent_[copy].empty()) index.create(absent_[copy]);
      if (damaged_[copy] || !absent_[copy].empty() || damaged(looks_[copy]))
        static_cast<void>(index.accept());
    });
    for (std::size_t copy = 0; copy < copies_; ++copy) {
      if (accepted[copy].failure()) repairable_[copy] = false;  // the next fetch tries again
    }
  }

  // Compacts shards of which more than half is dead, as far as is known. Young lines must stay.
  void compact() const {
    if (!listing_.complete() || !listing_.copies_whole) return;
    std::vector<std::size_t> shards;
    for (std::size_t shard = 0; shard < index_shards; ++shard) {
      const auto is_half_dead = [&](const ElementIndex::Look& look) {
        const auto& names = look.names(shard);
        return names.listed >= present_[shard] + elements_.options_.min_dead &&
               names.listed > 2 * present_[shard] && 2 * names.old >= names.listed;
      };
      if (std::ranges::any_of(looks_, is_half_dead)) shards.push_back(shard);
    }
    if (!shards.empty()) elements_.compact(shards, no_bound);
  }

  // Returns true if the shard has this state in any copy.
  bool any(Shard state) const {
    return std::ranges::any_of(looks_, [&](const auto& look) { return look.state(shard_) == state; });
  }

  static bool damaged(const ElementIndex::Look& look) {
    if (!look.manifest_whole()) return true;
    for (std::size_t shard = 0; shard < index_shards; ++shard) {
      if (look.state(shard) == Shard::lost) return true;
    }
    return false;
  }

  const Elements& elements_;
  const Visit& visit_;
  bool partial_;
  std::size_t copies_;
  std::size_t compared_;  // 0 for a single copy, which has nothing to compare
  std::vector<ElementIndex::Look> looks_;
  Window filling_;
  std::optional<Window> asked_;
  std::vector<VersionedItem> items_;  // of the previous window, for their memory
  bool first_ = true;                 // no window was requested yet
  std::vector<std::vector<const std::string*>>
      unlisted_;                               // per copy: names of this window that its index lacks
  std::vector<std::set<std::size_t>> absent_;  // per copy: shards that other copies have
  std::vector<bool> damaged_;                  // copies that were damaged, or that we marked so
  std::vector<bool> repairable_;               // copies that answered every request
  std::size_t repaired_ = 0;
  std::size_t largest_ = first_window;
  std::size_t shard_ = 0;
  std::array<std::size_t, index_shards> present_{};  // per shard
  Listing listing_;
};

std::set<std::string> Elements::listed() const {
  using Look = ElementIndex::Look;
  std::vector<Look> looks = indexes_->look(false);
  Look::reconcile(looks);
  std::set<std::string> names;
  for (std::size_t shard = 0; shard < index_shards; ++shard) {
    const auto lists = copies_.each([&](std::size_t copy) { return looks[copy].take(shard); });
    std::vector<CopyState> states;
    for (std::size_t copy = 0; copy < lists.size(); ++copy)
      states.push_back(
          {.failure = lists[copy].failure(), .has = looks[copy].state(shard) == Look::Shard::whole});
    if (const auto failure = failure_of(QuorumPhase::reading, states)) raise(*failure);
    for (const auto& list : lists) {
      if (!list.failure()) names.insert(list.value().begin(), list.value().end());
    }
  }
  return names;
}

Elements::Listing Elements::fetch(const Visit& visit, bool partial) const {
  Listing listing = Fetching(*this, visit, partial).run();
  if (listing.shards == 0 && listing.unreachable.empty()) expect_here();
  return listing;
}

}  // namespace mcds
