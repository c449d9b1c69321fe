// Fetching the elements of a table or hash, and healing its copies on the way.
#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include "common/structures/elements/elements.hpp"
#include "common/structures/elements/indexes.hpp"

namespace mcds {

namespace {

// It shows how large values are; from then on two windows are in flight.
constexpr std::size_t first_window = 1024;
constexpr std::size_t largest_window = 4096;
constexpr std::size_t smallest_window = 16;
constexpr std::size_t window_bytes = 2 << 20;

}  // namespace

// The copies' indexes united, a shard at a time, and their names turned into elements, a window at a time.
class Elements::Fetching {
 public:
  Fetching(const Elements& elements, const Visit& visit, bool partial)
      : elements_(elements),
        visit_(visit),
        partial_(partial),
        copies_(elements.copies_.size()),
        compared_(of_several(copies_, copies_)),
        filling_(compared_),
        unlisted_(copies_),
        absent_(copies_),
        damaged_(copies_),
        healable_(copies_, true) {
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

  // Names whose elements are asked for together.
  struct Window {
    explicit Window(std::size_t copies) : listed(copies) {}
    std::vector<std::string> names;
    std::vector<std::vector<bool>> listed;  // per copy: whether its index has the names
    Versions::Reading reading;
  };

  void take_shard() {
    auto lists = elements_.copies_.each([&](std::size_t copy) { return looks_[copy].take(shard_); });
    std::vector<CopyState> states;
    for (std::size_t copy = 0; copy < copies_; ++copy)
      states.push_back({.failure = lists[copy].failure(), .has = looks_[copy].state(shard_) == Shard::whole});
    if (const auto failure = failure_of(Part::reading, states)) {
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
        healable_[copy] = false;
      else if (copy < compared_)
        names[copy].insert(lists[copy].value().begin(), lists[copy].value().end());
    }
    for (std::size_t copy = 0; copy < copies_; ++copy) {
      if (lists[copy].failure()) continue;
      for (std::string& name : lists[copy].value()) {
        const bool told = std::any_of(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(copy),
                                      [&](const Names& before) { return before.contains(name); });
        if (!told) take_name(names.empty() ? std::move(name) : std::string(name), names);
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

  // Asks for one window before it takes the one asked for before: servers work while we do.
  void flush() {
    ask(filling_);
    take_asked();
    asked_ = std::exchange(filling_, Window(compared_));
    if (std::exchange(first_, false)) take_asked();
  }

  void ask(Window& window) const {
    window.reading = elements_.versions_.begin_read(elements_.keys_of(window.names));
  }

  // What is reported was written back first.
  void take_asked() {
    if (!asked_) return;
    Window window = *std::exchange(asked_, std::nullopt);
    auto items = elements_.versions_.finish_read(std::move(window.reading), std::exchange(items_, {}));
    const bool flood = std::ranges::any_of(items, &VersionedItem::flood);
    if (flood && window.names.size() > smallest_window) {
      items.clear();
      return take_in_pieces(window);
    }
    for (std::size_t i = 0; i < items.size(); ++i) note_missed(window, i, items[i]);
    const auto unanswered = heal(items);
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (!unanswered[i]) {
        bytes += tell(window.names[i], items[i]);
        continue;
      }
      if (!partial_) raise(*unanswered[i]);
      note_unreachable(*unanswered[i]);
      ++listing_.unknown;
    }
    // Large values make small windows.
    largest_ = std::clamp(window_bytes / (bytes / window.names.size() + 1), smallest_window, largest_window);
    if (largest_ == largest_window) items_ = std::move(items);
  }

  // Asks anew, for so few that the largest elements there can be are held at a time.
  void take_in_pieces(Window& window) {
    for (std::size_t from = 0; from < window.names.size(); from += smallest_window) {
      const std::size_t count = std::min(smallest_window, window.names.size() - from);
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
      if (item.copies[copy].failure) healable_[copy] = false;
      if (healable_[copy] && item.live() && !window.listed[copy][i])
        unlisted_[copy].push_back(&window.names[i]);
    }
    if (!item.divergent()) return;
    listing_.copies_whole = false;
    auto& divergent = listing_.divergent.emplace_back();
    divergent.name = window.names[i];
    for (const VersionedCopy& copy : item.copies) divergent.values.push_back(copy.value);
  }

  // Gives each copy what it turned out to have lost or missed, its index first. Why what was read is no
  // answer.
  std::vector<std::optional<Failure>> heal(std::vector<VersionedItem>& items) {
    const SteadyTime before = elements_.context_.clock.steady();
    list_unlisted();
    std::vector<bool> lacking;  // each copy of each
    for (const VersionedItem& item : items) {
      for (std::size_t copy = 0; copy < compared_; ++copy)
        lacking.push_back(item.live() && !item.copies[copy].failure && !item.copies[copy].live());
    }
    auto unanswered = elements_.versions_.settle(items);
    for (std::size_t i = 0; i < items.size(); ++i) {
      for (std::size_t copy = 0; copy < compared_; ++copy) {
        const VersionedCopy& now = items[i].copies[copy];
        if (now.failure || unanswered[i]) healable_[copy] = false;
        if (lacking[i * compared_ + copy] && now.live()) ++healed_;
      }
    }
    if (elements_.context_.clock.steady() - before > ElementIndex::grace / 2) list_unlisted();
    for (auto& names : unlisted_) names.clear();
    return unanswered;
  }

  // A shard that is created so has not all names yet, and says so until it is accepted.
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
      if (listed[copy].failure()) healable_[copy] = false;
    }
  }

  // The bytes of its value.
  std::size_t tell(std::string& name, VersionedItem& item) {
    const VersionedCopy* newest = item.newest();
    if (newest == nullptr || newest->removed) return 0;
    ++listing_.present;
    ++present_[index_shard_of(name)];
    Found found{std::move(name), newest->value, newest->server, shard_, newest->flags == ending_flags};
    const std::size_t size = found.value.size();
    visit_(found);
    return size;
  }

  // A shard is lost when it is in every copy that had it.
  void note_losses() {
    if (any(Shard::lost) && !any(Shard::whole)) listing_.lost.push_back(elements_.index(0).shard_key(shard_));
    for (std::size_t copy = 0; copy < copies_; ++copy) {
      if (looks_[copy].state(shard_) == Shard::unreachable) healable_[copy] = false;
    }
  }

  void finish() {
    for (const auto& look : looks_) {
      listing_.lines += look.lines();
      listing_.shards += look.shards();
    }
    const auto whole = [](const ElementIndex::Look& look) { return look.manifest_whole(); };
    if (compared_ == 0) {
      const auto& failure = looks_.front().manifest_failure();
      if (failure && partial_) note_unreachable(*failure);
      if (!failure && !whole(looks_.front()))
        listing_.lost.insert(listing_.lost.begin(), elements_.index(0).manifest_key());
      return;
    }
    listing_.healed = healed_;
    if (listing_.complete()) accept_healed();
    listing_.copies_whole = listing_.copies_whole && std::ranges::find(healable_, false) == healable_.end();
  }

  void accept_healed() {
    const auto accepted = elements_.copies_.each([&](std::size_t copy) {
      ElementIndex& index = elements_.index(copy);
      if (!healable_[copy]) return;
      // One whose names are no elements any more was not listed, and would count as lost for ever.
      if (!absent_[copy].empty()) index.create(absent_[copy]);
      if (damaged_[copy] || !absent_[copy].empty() || damaged(looks_[copy]))
        static_cast<void>(index.accept());
    });
    for (std::size_t copy = 0; copy < copies_; ++copy) {
      if (accepted[copy].failure()) healable_[copy] = false;  // the next fetch tries again
    }
  }

  // What more than half of is dead, as far as is known; lines that are young must stay.
  void compact() const {
    if (!listing_.complete() || !listing_.copies_whole) return;
    std::vector<std::size_t> shards;
    for (std::size_t shard = 0; shard < index_shards; ++shard) {
      const auto is_half_dead = [&](const ElementIndex::Look& look) {
        const auto& names = look.names(shard);
        return names.listed >= present_[shard] + elements_.options_.least_dead &&
               names.listed > 2 * present_[shard] && 2 * names.old >= names.listed;
      };
      if (std::ranges::any_of(looks_, is_half_dead)) shards.push_back(shard);
    }
    if (!shards.empty()) elements_.compact(shards, no_bound, {});
  }

  // Whether it is so in a copy.
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
  std::size_t compared_;  // copies that are: a single one is what it is
  std::vector<ElementIndex::Look> looks_;
  Window filling_;
  std::optional<Window> asked_;
  std::vector<VersionedItem> items_;  // of the window before, for their memory
  bool first_ = true;                 // no window has been asked for
  std::vector<std::vector<const std::string*>>
      unlisted_;                               // per copy: what its index lacks, of the window taken
  std::vector<std::set<std::size_t>> absent_;  // per copy: shards that others have
  std::vector<bool> damaged_;                  // copies that said so, or that we made so
  std::vector<bool> healable_;                 // copies that answered all along
  std::size_t healed_ = 0;
  std::size_t largest_ = first_window;
  std::size_t shard_ = 0;
  std::array<std::size_t, index_shards> present_{};  // of each shard
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
    if (const auto failure = failure_of(Part::reading, states)) raise(*failure);
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
