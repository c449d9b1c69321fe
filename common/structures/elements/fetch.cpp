// Fetching the elements of a table or hash, and healing its copies on the way.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "common/structures/elements/elements.hpp"

namespace mcds {

namespace {

// It tells how large values are; from then on two windows are on their way.
constexpr std::size_t first_window = 1024;
constexpr std::size_t largest_window = 4096;
constexpr std::size_t smallest_window = 16;
constexpr std::size_t window_bytes = 2 << 20;

}  // namespace

// The copies' indexes united, a shard at a time, and their names turned into elements, a window at a time.
class Elements::Fetching {
 public:
  Fetching(const Elements& elements, const Visit& visit)
      : elements_(elements),
        visit_(visit),
        copies_(elements.all_.size()),
        filling_(copies_),
        missed_(copies_),
        healable_(copies_, copies_ > 1) {
    std::vector<std::optional<ElementIndex::Look>> looks(copies_);
    const auto failures =
        elements_.copies_.run([&](std::size_t copy) { looks[copy].emplace(index(copy).look(copies_ > 1)); });
    for (std::size_t copy = 0; copy < copies_; ++copy) {
      if (failures[copy]) throw Failure(*failures[copy]);
      looks_.push_back(std::move(*looks[copy]));
    }
  }

  Listing run() {
    for (shard_ = 0; shard_ < index_shards; ++shard_) {
      take_shard();
      note_losses();
    }
    if (!filling_.names.empty()) flush();
    take_asked();
    finish();
    return listing_;
  }

 private:
  using Names = std::unordered_set<std::string_view>;

  // Names whose elements are asked for together.
  struct Window {
    explicit Window(std::size_t copies) : listed(copies), replies(copies) {}
    std::vector<std::string> names;
    std::vector<std::vector<bool>> listed;          // per copy: whether its index has the names
    std::vector<std::unique_ptr<Pending>> replies;  // per copy
    std::vector<std::optional<Failure>> failures;   // per copy: why there are no replies
  };

  const ElementIndex& index(std::size_t copy) const { return elements_.all_[copy]->index(); }

  void take_shard() {
    std::vector<std::vector<std::string>> lists(copies_);
    const auto failures =
        elements_.copies_.run([&](std::size_t copy) { lists[copy] = looks_[copy].take(shard_); });
    if (const auto failure = failure_of_all(failures)) throw Failure(*failure);
    std::vector<Names> names(copies_);
    for (std::size_t copy = 0; copy < copies_; ++copy) {
      if (failures[copy]) healable_[copy] = false;
      if (copies_ > 1) names[copy].insert(lists[copy].begin(), lists[copy].end());
    }
    for (std::size_t copy = 0; copy < copies_; ++copy) {
      for (std::string& name : lists[copy]) {
        const bool told = std::any_of(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(copy),
                                      [&](const Names& before) { return before.contains(name); });
        if (!told) take_name(copies_ > 1 ? name : std::move(name), names);
      }
    }
  }

  void take_name(std::string name, const std::vector<Names>& names) {
    ++listing_.names;
    for (std::size_t copy = 0; copy < copies_ && copies_ > 1; ++copy)
      filling_.listed[copy].push_back(names[copy].contains(name));
    filling_.names.push_back(std::move(name));
    if (filling_.names.size() >= largest_) flush();
  }

  // Asks for one window before it takes the one asked for before: servers work while we do.
  void flush() {
    filling_.failures = elements_.copies_.run(
        [&](std::size_t copy) { filling_.replies[copy] = elements_.all_[copy]->begin_get(filling_.names); });
    take_asked();
    asked_ = std::exchange(filling_, Window(copies_));
    if (std::exchange(first_, false)) take_asked();
  }

  void take_asked() {
    if (!asked_) return;
    Window window = *std::exchange(asked_, std::nullopt);
    PerCopy results(copies_);
    bool flood = false;
    for (std::size_t copy = 0; copy < copies_; ++copy) {
      const auto& failure = window.failures[copy];
      results[copy] = failure ? failed_results(window.names.size(), *failure)
                              : elements_.all_[copy]->finish_get(*window.replies[copy]);
      flood = flood || std::any_of(results[copy].begin(), results[copy].end(),
                                   [](const ElementResult& result) { return result.flood; });
    }
    if (flood && window.names.size() > smallest_window) {
      results.clear();
      return take_in_pieces(window);
    }
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < window.names.size(); ++i) bytes += take(window, i, results);
    heal();
    // Large values make small windows.
    largest_ = std::clamp(window_bytes / (bytes / window.names.size() + 1), smallest_window, largest_window);
  }

  // Asks anew, for so few that the largest elements there can be are held at a time.
  void take_in_pieces(Window& window) {
    for (std::size_t from = 0; from < window.names.size(); from += smallest_window) {
      const std::size_t count = std::min(smallest_window, window.names.size() - from);
      const auto piece = [&](auto& all) {
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(from);
        return std::decay_t<decltype(all)>(begin, begin + static_cast<std::ptrdiff_t>(count));
      };
      Window some(copies_);
      some.names = piece(window.names);
      for (std::size_t copy = 0; copy < copies_ && copies_ > 1; ++copy)
        some.listed[copy] = piece(window.listed[copy]);
      some.failures = elements_.copies_.run(
          [&](std::size_t copy) { some.replies[copy] = elements_.all_[copy]->begin_get(some.names); });
      asked_ = std::move(some);
      take_asked();
    }
  }

  // The bytes of the i-th name's value.
  std::size_t take(Window& window, std::size_t i, PerCopy& results) {
    ElementResult* known = nullptr;
    std::size_t failed = 0;
    for (std::size_t number = 0; number < copies_; ++number) {
      auto& copy = results[number];
      if (copy[i].failure) {
        healable_[number] = false;
        ++failed;
      }
      if (known == nullptr && !copy[i].failure && (copy[i].yes || copy[i].removed)) known = &copy[i];
    }
    if (failed == copies_) throw Failure(*results.front()[i].failure);
    if (known == nullptr || !known->yes) return 0;
    note_missed(window, i, *known, results);
    ++listing_.present;
    Found found{std::move(window.names[i]), std::move(known->value), known->server, shard_};
    const std::size_t size = found.value.size();
    visit_(found);
    return size;
  }

  void note_missed(const Window& window, std::size_t i, const ElementResult& known, const PerCopy& results) {
    for (std::size_t copy = 0; copy < copies_ && copies_ > 1; ++copy) {
      const ElementResult& here = results[copy][i];
      if (!healable_[copy]) continue;
      const bool lost = !here.yes && !here.removed;
      if (lost) missed_[copy].elements.push_back({window.names[i], known.value});
      if (!lost && !window.listed[copy][i]) missed_[copy].names.push_back(window.names[i]);
    }
  }

  // Gives each copy what it turned out to have lost.
  void heal() {
    if (std::all_of(missed_.begin(), missed_.end(), [](const Missed& missed) { return missed.nothing(); }))
      return;
    const auto failures = elements_.copies_.run([&](std::size_t copy) {
      if (missed_[copy].nothing()) return;
      std::vector<const std::string*> names;
      for (const std::string& name : missed_[copy].names) names.push_back(&name);
      elements_.all_[copy]->refill(names, missed_[copy].elements);
    });
    for (std::size_t copy = 0; copy < copies_; ++copy) {
      if (failures[copy]) healable_[copy] = false;
      if (!failures[copy]) listing_.healed += missed_[copy].elements.size();
      missed_[copy] = Missed();
    }
  }

  // A shard is lost when it is in every copy that had it.
  void note_losses() {
    using Shard = ElementIndex::Look::Shard;
    const auto any = [&](Shard state) {
      return std::any_of(looks_.begin(), looks_.end(),
                         [&](const auto& look) { return look.state(shard_) == state; });
    };
    if (any(Shard::lost) && !any(Shard::whole)) listing_.lost.push_back(index(0).shard_key(shard_));
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
    if (copies_ == 1) {
      if (!whole(looks_.front())) listing_.lost.insert(listing_.lost.begin(), index(0).manifest_key());
      return;
    }
    if (listing_.complete()) accept_healed();
    listing_.copies_whole = std::find(healable_.begin(), healable_.end(), false) == healable_.end();
  }

  void accept_healed() {
    const auto failures = elements_.copies_.run([&](std::size_t copy) {
      if (healable_[copy] && damaged(looks_[copy])) static_cast<void>(elements_.all_[copy]->index().accept());
    });
    for (std::size_t copy = 0; copy < copies_; ++copy) {
      if (failures[copy]) healable_[copy] = false;  // the next fetch tries again
    }
  }

  static bool damaged(const ElementIndex::Look& look) {
    if (!look.manifest_whole()) return true;
    for (std::size_t shard = 0; shard < index_shards; ++shard) {
      if (look.state(shard) == ElementIndex::Look::Shard::lost) return true;
    }
    return false;
  }

  struct Missed {
    std::vector<std::string> names;  // not in the copy's index
    std::vector<Element> elements;   // not in the copy
    bool nothing() const { return names.empty() && elements.empty(); }
  };

  const Elements& elements_;
  const Visit& visit_;
  std::size_t copies_;
  std::vector<ElementIndex::Look> looks_;
  Window filling_;
  std::optional<Window> asked_;
  bool first_ = true;           // no window has been asked for
  std::vector<Missed> missed_;  // per copy
  std::vector<bool> healable_;  // copies that answered all along
  std::size_t largest_ = first_window;
  std::size_t shard_ = 0;
  Listing listing_;
};

Elements::Listing Elements::fetch_here(const Visit& visit) const {
  return Fetching(*this, visit).run();
}

}  // namespace mcds
