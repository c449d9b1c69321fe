// Setting the elements of a table or hash: the steps that elements.hpp argues about, each in all copies side by side.
#include <algorithm>

#include "common/structures/elements/elements.hpp"

namespace mcds {

namespace {

constexpr int most_rounds = 6;

}  // namespace

class Elements::Setting {
 public:
  Setting(Elements& elements, std::span<const Element> batch)
      : elements_(elements), batch_(batch), listed_at_(batch.size()), settings_(elements.all_.size()) {
    for (auto& copy : settings_) {
      copy.resize(batch.size());
      for (std::size_t i = 0; i < batch.size(); ++i) copy[i].element = &batch[i];
    }
  }

  PerCopy run(bool relist) {
    if (relist) static_cast<void>(elements_.elsewhere());
    if (relist) list_where([](std::size_t) { return true; });
    for (int round = 0; round < most_rounds && any_open(); ++round) {
      on_open(&ElementsCopy::replace);
      if (!listed_any_ && any_missing() && elements_.elsewhere())
        continue;  // the same again, under other keys
      list_where([&](std::size_t i) { return (missing(i) && !listed_at_[i]) || to_list(i); });
      on_open(&ElementsCopy::add);
      list_where([&](std::size_t i) { return added_late(i); });
    }
    return results();
  }

 private:
  template <typename Test>
  bool in_any(std::size_t i, const Test& test) const {
    return std::any_of(settings_.begin(), settings_.end(), [&](const auto& copy) { return test(copy[i]); });
  }
  bool missing(std::size_t i) const {
    return in_any(i, [](const ElementSetting& one) { return !one.done; });
  }
  bool to_list(std::size_t i) const {
    return in_any(i, [](const ElementSetting& one) { return one.to_list; });
  }
  bool any_missing() const {
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      if (missing_everywhere(i)) return true;
    }
    return false;
  }
  bool missing_everywhere(std::size_t i) const {
    return std::all_of(settings_.begin(), settings_.end(),
                       [&](const auto& copy) { return !copy[i].done || copy[i].result.failure; }) &&
           missing(i);
  }
  bool any_open() const {
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      if (missing(i)) return true;
    }
    return false;
  }

  // Its line may have been old enough to be dropped before the element was there.
  bool added_late(std::size_t i) {
    for (auto& copy : settings_) {
      ElementSetting& one = copy[i];
      one.to_list =
          one.added_at && one.result.yes && *one.added_at - *listed_at_[i] > ElementIndex::grace / 2;
    }
    return to_list(i);
  }

  void on_open(void (ElementsCopy::*step)(std::span<ElementSetting* const>)) {
    std::vector<std::vector<ElementSetting*>> open(settings_.size());
    for (std::size_t copy = 0; copy < settings_.size(); ++copy) {
      for (ElementSetting& one : settings_[copy]) {
        if (!one.done) open[copy].push_back(&one);
      }
    }
    const auto failures = elements_.copies_.run([&](std::size_t copy) {
      if (!open[copy].empty()) (elements_.all_[copy].get()->*step)(open[copy]);
    });
    for (std::size_t copy = 0; copy < failures.size(); ++copy) {
      for (ElementSetting* one : open[copy]) {
        if (failures[copy]) one->fail(*failures[copy]);
      }
    }
  }

  // Listed is what any copy's index lists: which servers answer may be others for the index than for the element.
  template <typename Wanted>
  void list_where(const Wanted& wanted) {
    std::vector<std::size_t> numbers;
    std::vector<const std::string*> names;
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      if (!wanted(i)) continue;
      numbers.push_back(i);
      names.push_back(&batch_[i].name);
    }
    if (names.empty()) return;
    listed_any_ = true;
    const SteadyTime before = elements_.copies_.at(0).clock.steady();
    std::vector<std::vector<std::optional<Failure>>> lists(settings_.size());
    const auto failures = elements_.copies_.run(
        [&](std::size_t copy) { lists[copy] = elements_.all_[copy]->index().list(names); });
    for (std::size_t n = 0; n < numbers.size(); ++n) {
      std::vector<std::optional<Failure>> of_name;
      for (std::size_t copy = 0; copy < lists.size(); ++copy)
        of_name.push_back(failures[copy] ? failures[copy] : lists[copy][n]);
      note_listing(numbers[n], before, of_name);
    }
  }

  void note_listing(std::size_t i, SteadyTime when, const std::vector<std::optional<Failure>>& failures) {
    const auto nowhere = failure_of_all(failures);
    if (!nowhere) listed_at_[i] = when;
    for (std::size_t copy = 0; copy < settings_.size(); ++copy) {
      ElementSetting& one = settings_[copy][i];
      one.result.unlisted = failures[copy];
      if (nowhere && !one.done) one.fail(*nowhere);
      if (nowhere && one.to_list) {
        one.fail(UnknownOutcome("it is set, but it may not be listed; set it again with --relist",
                                nowhere->server()));
      }
      one.to_list = false;
    }
  }

  PerCopy results() {
    PerCopy results(settings_.size());
    for (std::size_t copy = 0; copy < settings_.size(); ++copy) {
      results[copy].reserve(batch_.size());
      for (ElementSetting& one : settings_[copy]) {
        if (!one.done)
          one.fail(Contention("others keep creating and removing this element; it was not set, try again"));
        results[copy].push_back(std::move(one.result));
      }
    }
    return results;
  }

  Elements& elements_;
  std::span<const Element> batch_;
  std::vector<std::optional<SteadyTime>> listed_at_;
  std::vector<std::vector<ElementSetting>> settings_;  // per copy
  bool listed_any_ = false;
};

Elements::PerCopy Elements::set_copies(std::span<const Element> elements, bool relist) {
  return Setting(*this, elements).run(relist);
}

}  // namespace mcds
