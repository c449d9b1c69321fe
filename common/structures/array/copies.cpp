// Arrays whose journals have copies: their union, and making lost copies whole.
#include <algorithm>
#include <functional>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/rely.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/primitives/several/quorum.hpp"
#include "common/structures/array/array.hpp"

namespace mcds {

namespace {

constexpr int most_decisions = 8;  // while rivals decide, too
constexpr const char* being_ordered = "other clients are ordering its changes; try again";

// The ids of `wanted` that `lines` does not have, or adds although they are wanted forgotten.
std::vector<std::string> lacking_of(const std::vector<JournalLine>& lines,
                                    const std::vector<JournalLine>& wanted) {
  std::unordered_map<std::string_view, Change> changes;
  for (const JournalLine& line : lines) changes.emplace(line.id, line.change);
  std::vector<std::string> lacking;
  for (const JournalLine& line : wanted) {
    const auto found = changes.find(line.id);
    if (found == changes.end() || (line.change == Change::forgotten && found->second == Change::add))
      lacking.push_back(line.id);
  }
  return lacking;
}

// Where the lines that only `second` has go into `first`. Lines about the same element keep the order they
// have in `second`, whatever else the two disagree about. Who removes first gives each copy what it saw: so
// an addition that only one of the two has is behind a removal that only the other has.
class Placing {
 public:
  Placing(const std::vector<JournalLine>& first, const std::vector<JournalLine>& second, Newer newer,
          std::size_t decided)
      : second_(second),
        size_(first.size()),
        newer_(newer),
        highest_(second.size(), first.size()),
        lowest_of_all_(decided) {
    for (std::size_t i = 0; i < first.size(); ++i) places_.emplace(first[i].id, i);
    if (newer == Newer::neither) look_at_own(first);
    find_highest(blind_);
  }

  // Of second[i], if it is in `first` too.
  std::optional<std::size_t> place_of(std::size_t i) const {
    const auto place = places_.find(second_[i].id);
    return place == places_.end() ? std::nullopt : std::optional(place->second);
  }

  // How many lines of `first` come before second[i]; to be asked of all, in order.
  std::size_t next(std::size_t i) {
    const JournalLine& line = second_[i];
    const auto place = place_of(i);
    if (place) anchor_ = std::max(anchor_, *place + 1);
    // What removes an element that `second` does not have is about one of `first`.
    const bool blind = line.change == Change::remove && !lowest_.contains(line.element);
    const bool behind_all = newer_ == Newer::second || blind;
    const std::size_t wanted = behind_all ? size_ : between_own(line);
    const std::size_t chosen = place ? *place + 1 : std::max(std::min(wanted, highest_[i]), lowest_for(line));
    keep_above(line, chosen);
    return chosen;
  }

 private:
  using Places = std::unordered_map<std::string_view, std::size_t>;

  // The lines of `first` that `second` does not have. What removes an element that `first` does not have is
  // about one of `second`, which it lost.
  void look_at_own(const std::vector<JournalLine>& first) {
    std::unordered_set<std::string_view> ids;
    for (const JournalLine& line : second_) ids.insert(line.id);
    std::unordered_set<std::string_view> known;
    bool knows_any = false;
    for (std::size_t i = 0; i < first.size(); ++i) {
      const JournalLine& line = first[i];
      const bool own = !ids.contains(line.id);
      if (own && line.change == Change::remove) {
        if (known.contains(line.element))
          removed_.insert_or_assign(line.element, i);
        else
          blind_.emplace(line.element, i);
      }
      if (own && line.change == Change::clear && knows_any) cleared_ = i + 1;
      if (own && line.change == Change::add) {
        added_.emplace(line.element, i);
        any_added_ = std::min(any_added_, i);
      }
      if (line.change != Change::forgotten) known.insert(line.element);
      knows_any = knows_any || !own;
    }
  }

  // Where the line goes among those that only `first` has.
  std::size_t between_own(const JournalLine& line) const {
    const auto removed = removed_.find(line.element), added = added_.find(line.element);
    switch (line.change) {
      case Change::add:
        return std::max({anchor_, cleared_, removed == removed_.end() ? 0 : removed->second + 1});
      case Change::remove: return added == added_.end() ? anchor_ : std::min(anchor_, added->second);
      case Change::clear: return anchor_ == 0 ? anchor_ : std::min(anchor_, any_added_);
      default: return anchor_;
    }
  }

  void find_highest(Places highest) {
    std::size_t of_clears = size_;
    for (std::size_t i = second_.size(); i-- > 0;) {
      const JournalLine& line = second_[i];
      if (line.change == Change::forgotten) continue;
      std::size_t& of_element = highest.try_emplace(line.element, size_).first->second;
      highest_[i] = std::min(of_clears, of_element);
      const std::size_t place = place_of(i).value_or(size_);
      of_element = std::min(of_element, place);
      if (line.change == Change::clear) of_clears = std::min(of_clears, place);
    }
  }

  std::size_t lowest_for(const JournalLine& line) const {
    if (line.change == Change::clear) return std::max(anchor_, lowest_of_all_);
    const auto found = lowest_.find(line.element);
    return std::max(lowest_of_all_, found == lowest_.end() ? 0 : found->second);
  }

  void keep_above(const JournalLine& line, std::size_t place) {
    if (line.change == Change::forgotten) return;
    if (line.change == Change::clear) lowest_of_all_ = std::max(lowest_of_all_, place);
    std::size_t& lowest = lowest_[line.element];
    lowest = std::max(lowest, place);
  }

  const std::vector<JournalLine>& second_;
  std::size_t size_;
  Newer newer_;
  Places places_;                   // in `first`, by id
  Places removed_, blind_, added_;  // only in `first`, by element: the last, those of what it lost, the first
  std::size_t cleared_ = 0;         // behind the last clear that is only in `first`
  std::size_t any_added_ = size_;   // the first addition that is only in `first`
  std::vector<std::size_t> highest_;  // of each line, from what follows it
  Places lowest_;                     // by element, from what came so far
  std::size_t lowest_of_all_;         // from what is decided, and the last clear
  std::size_t anchor_ = 0;            // behind all lines of `first` that came so far
};

// Of a line that one has and the other has forgotten: an addition was removed there, and remains so; what
// removes may have something to remove here.
const JournalLine& telling_more(const JournalLine& one, const JournalLine& other) {
  if (other.change == Change::forgotten) return one.change == Change::add ? other : one;
  return one.change == Change::forgotten && other.change != Change::add ? other : one;
}

// The lines that both have stand in one order.
bool agree(const std::vector<JournalLine>& one, const std::vector<JournalLine>& other) {
  if (std::ranges::equal(one, other, {}, &JournalLine::id, &JournalLine::id)) return true;
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < one.size(); ++i) places.emplace(one[i].id, i);
  std::size_t last = 0;
  for (const JournalLine& line : other) {
    const auto place = places.find(line.id);
    if (place == places.end()) continue;
    if (place->second < last) return false;
    last = place->second;
  }
  return true;
}

// Word of a decision (array.hpp): `= <number, 16 hex digits>.<16 of who decides>`, with an "a" behind it once
// the copy was written so. A later one is greater.
constexpr std::size_t ballot_size = 33;

bool is_ballot(const JournalLine& line) {
  return line.change == Change::forgotten && line.id.size() >= ballot_size;
}

// What a copy says of decisions.
struct Ballots {
  std::string promised, accepted;  // the latest of which it has word; as which it was written last
  std::size_t decided = 0;         // how many lines it had then

  // Takes them out of the lines.
  static Ballots taken_from(std::vector<JournalLine>& lines) {
    Ballots ballots;
    std::size_t others = 0;
    for (const JournalLine& line : lines) {
      if (!is_ballot(line)) {
        ++others;
        continue;
      }
      const std::string ballot = line.id.substr(0, ballot_size);
      ballots.promised = std::max(ballots.promised, ballot);
      if (line.id.size() == ballot_size || ballot < ballots.accepted) continue;
      ballots.accepted = ballot;
      ballots.decided = others;
    }
    if (!ballots.promised.empty()) std::erase_if(lines, is_ballot);
    return ballots;
  }
};

struct Ordered {
  std::vector<JournalLine>* lines;
  Ballots ballots;
};

// All lines of the copies, in the order that was decided last; else on which most of them agree; else which
// leaves most. Who removes gives each copy what was acknowledged before: so where a removal is before an
// addition in one copy, and behind it in another, it is not known to be later.
std::vector<JournalLine> unite_copies(const std::vector<Ordered>& copies) {
  using Rank = std::tuple<std::string_view, std::size_t>;
  std::vector<std::pair<Rank, const Ordered*>> ranked;
  for (const Ordered& one : copies) {
    const auto agrees = [&](const Ordered& other) { return agree(*one.lines, *other.lines); };
    const auto agreeing = static_cast<std::size_t>(std::ranges::count_if(copies, agrees));
    ranked.emplace_back(Rank(one.ballots.accepted, agreeing), &one);
  }
  std::ranges::stable_sort(ranked, [](const auto& one, const auto& other) {
    return std::pair(one.first, one.second->lines->size()) >
           std::pair(other.first, other.second->lines->size());
  });
  const Rank best = ranked.front().first;
  const bool one_order = std::get<1>(best) == copies.size();
  std::vector<JournalLine> all;
  for (std::size_t first = 0; first < (one_order ? 1 : ranked.size()) && ranked[first].first == best;
       ++first) {
    std::vector<JournalLine> united = *ranked[first].second->lines;
    const std::size_t decided = ranked[first].second->ballots.decided;
    for (std::size_t i = 0; i < ranked.size(); ++i) {
      if (i != first) united = unite(united, *ranked[i].second->lines, Newer::neither, decided);
    }
    if (first == 0 || replay(united).size() > replay(all).size()) all = std::move(united);
  }
  return all;
}

// Lines in another order may leave something else.
bool leaves_the_same(const std::vector<JournalLine>& lines, const std::vector<JournalLine>& all) {
  if (std::ranges::equal(lines, all, {}, &JournalLine::id, &JournalLine::id)) return true;
  std::vector<std::string> left = replay(lines), wanted = replay(all);
  std::ranges::sort(left);
  std::ranges::sort(wanted);
  return left == wanted;
}

// The lines would leave something else in the order that they have in `all`, which has them, too.
bool contradict(const std::vector<JournalLine>& lines, const std::vector<JournalLine>& all) {
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < all.size(); ++i) places.emplace(all[i].id, i);
  std::vector<JournalLine> ordered = lines;
  std::ranges::stable_sort(ordered, {}, [&](const JournalLine& line) { return places.at(line.id); });
  return !leaves_the_same(lines, ordered);
}

bool less(const JournalLoss& one, const JournalLoss& other) {
  return std::pair(one.segments, one.lines) < std::pair(other.segments, other.lines);
}

}  // namespace

std::vector<JournalLine> unite(const std::vector<JournalLine>& first, const std::vector<JournalLine>& second,
                               Newer newer, std::size_t decided) {
  Placing placing(first, second, newer, decided);
  std::vector<const JournalLine*> shared;
  for (const JournalLine& line : first) shared.push_back(&line);
  std::vector<std::vector<const JournalLine*>> behind(first.size() + 1);
  for (std::size_t i = 0; i < second.size(); ++i) {
    const std::size_t next = placing.next(i);
    const auto place = placing.place_of(i);
    if (place) {
      shared[*place] = &telling_more(first[*place], second[i]);
    } else {
      behind[next].push_back(&second[i]);
    }
  }
  std::vector<JournalLine> united;
  for (std::size_t i = 0; i <= first.size(); ++i) {
    if (i != 0) united.push_back(*shared[i - 1]);
    for (const JournalLine* line : behind[i]) united.push_back(*line);
  }
  rely_on(united.size() >= std::max(first.size(), second.size()), "a union has every line of both");
  return united;
}

std::vector<JournalLine> unite_all(std::vector<std::vector<JournalLine>> copies) {
  std::vector<Ordered> there;
  for (auto& lines : copies) {
    const Ballots ballots = Ballots::taken_from(lines);
    there.push_back({&lines, ballots});
  }
  return there.empty() ? std::vector<JournalLine>() : unite_copies(there);
}

struct Array::Union {
  struct Copy {
    std::optional<Failure> failure = {};   // it did not answer
    std::optional<Failure> unhealed = {};  // it did, and did not get what it lacks
    bool missing = false;                  // it answered, and has no journal
    bool lacks = false;                    // it answered, and is not whole
    bool vouches = false;                  // what is there has lost nothing
    Ballots ballots = {};
  };

  bool found = false;
  JournalLoss loss;  // of the copy that has lost least
  std::vector<JournalLine> lines;
  std::vector<Copy> copies;
  std::unordered_set<std::string> partial;  // ids of lines that not every copy has
  std::string promised, accepted;           // the latest of all copies, see Ballots
  bool torn = false;                        // copies contradict each other
  std::string ballot;                       // as which the copies are written, if any
  bool outbid = false;                      // another client decides
  std::size_t server = 0;

  bool any(bool Copy::*is) const { return std::ranges::any_of(copies, std::mem_fn(is)); }
  bool complete() const { return found && !loss.any(); }
  bool lacks(std::size_t copy) const { return found && copies[copy].lacks; }
  // Why each copy is not known to have all lines.
  std::vector<std::optional<Failure>> behind() const {
    std::vector<std::optional<Failure>> behind;
    for (const Copy& copy : copies) behind.push_back(copy.failure ? copy.failure : copy.unhealed);
    return behind;
  }
  // Why too little is known; and why what is known is not in as many copies as an answer must be.
  std::optional<Failure> failure_of(Part part) const {
    return part == Part::reading ? mcds::failure_of(part, copies, std::mem_fn(&Copy::vouches))
                                 : mcds::failure_of(part, behind());
  }
  // Whether what is written needs a new number.
  bool needs_decision() const { return any(&Copy::lacks) && (torn || promised != accepted); }
  // An append may have reached one copy and be in transit to another.
  static bool may_be_late() { return true; }
};

Array::Union Array::read_copies() const {
  auto contents = copies_.each([&](std::size_t copy) { return journal(copy).read(); });
  Union all;
  all.server = context_.cluster.placement().server_of(kept_.key());
  std::vector<Ordered> there;
  for (auto& one : contents) {
    Union::Copy& copy = all.copies.emplace_back();
    copy.failure = one.failure();
    copy.missing = !one.failure() && !one.value().found;
    if (one.failure() || !one.value().found) continue;
    copy.vouches = !one.value().loss.any();
    if (!all.found || less(one.value().loss, all.loss)) all.loss = one.value().loss;
    all.found = true;
    copy.ballots = Ballots::taken_from(one.value().lines);
    all.promised = std::max(all.promised, copy.ballots.promised);
    all.accepted = std::max(all.accepted, copy.ballots.accepted);
    there.push_back({&one.value().lines, copy.ballots});
  }
  if (there.size() == 1)
    all.lines = std::move(*there.front().lines);
  else if (!there.empty())
    all.lines = unite_copies(there);
  all.ballot = all.accepted;
  for (std::size_t i = 0; i < contents.size(); ++i) {
    Union::Copy& copy = all.copies[i];
    if (copy.failure || (there.size() == 1 && !copy.missing)) continue;
    const JournalContents& one = contents[i].value();
    const auto ids = lacking_of(one.lines, all.lines);
    all.partial.insert(ids.begin(), ids.end());
    // Where every copy has lost something, none can be made more than equal.
    copy.lacks = copy.missing || !ids.empty() || (all.complete() && one.loss.any()) ||
                 copy.ballots.accepted != all.accepted || !leaves_the_same(one.lines, all.lines);
    all.torn = all.torn || (copy.lacks && contradict(one.lines, all.lines));
  }
  return all;
}

// A new number, of which most copies that answer have word, before what they hold then is united and written:
// whoever decides under a lower one is refused by one of them.
Array::Union Array::ask_for_decision(const Union& seen) const {
  const auto last = parse_hex64(std::string_view(seen.promised).substr(0, seen.promised.find('.')));
  const std::string ballot = hex64(last.value_or(0) + 1) + '.' + context_.random.token();
  const JournalLine word{Change::forgotten, ballot, {}};
  const auto asked = copies_.each([&](std::size_t copy) {
    if (seen.copies[copy].failure || seen.copies[copy].missing) return;
    journal(copy).append({&word, 1}, [&] { return journal(copy).read().found; });
  });
  Union all = read_copies();
  std::size_t promised = 0;
  for (std::size_t i = 0; i < all.copies.size(); ++i) {
    Union::Copy& copy = all.copies[i];
    if (!copy.failure) copy.failure = asked[i].failure();
    if (!copy.failure && copy.ballots.promised == ballot) ++promised;
  }
  all.outbid = promised < quorum(copies_.size());
  all.ballot = all.promised = ballot;
  if (!all.torn) return all;
  for (Union::Copy& copy : all.copies) copy.lacks = !copy.failure;
  return all;
}

// Where no copy is known to be whole, all get what any has, and their roots go on saying that something is
// lost.
Array::Union Array::heal() const {
  const auto read = [&](bool second_look) {
    Union all = read_copies();
    // One that is not there was lost, or put elsewhere.
    while (second_look && all.found && all.any(&Union::Copy::missing) && kept_.elsewhere())
      all = read_copies();
    if (second_look && all.needs_decision()) all = ask_for_decision(all);
    if (const auto failure = all.failure_of(Part::reading)) raise(*failure);
    return all;
  };
  for (int attempt = 0;; ++attempt) {
    back_off(context_, attempt);
    bool outbid = false;
    std::vector<std::optional<Failure>> unhealed(copies_.size());
    const auto write = [&](const Union& all, std::size_t copy) {
      unhealed[copy] = mcds::attempt([&] { complete_copy(all, copy, outbid); }).failure();
    };
    Union all = repair(copies_, context_.clock, read, write);
    for (std::size_t copy = 0; copy < all.copies.size(); ++copy) all.copies[copy].unhealed = unhealed[copy];
    if (!outbid || attempt == most_decisions) return all;
  }
}

void Array::complete_copy(const Union& all, std::size_t copy, bool& outbid) const {
  // Created empty: a line that is added late would come behind its removal. The rewriting compares.
  const Context& context = copies_.at(copy);
  const std::string header = journal_header(context.random.token()) + lost_segment_line();
  if (all.copies[copy].missing)
    static_cast<void>(context.cluster.execute(Request::add(kept_.key(), header, Exptime::never())));
  const auto add = [&](std::vector<JournalLine> lines) {
    if (all.outbid || Ballots::taken_from(lines).promised > all.ballot) {
      outbid = true;
      throw Contention(being_ordered, context_.cluster.address_of(all.server));
    }
    std::vector<JournalLine> united = unite(all.lines, lines, Newer::second);
    if (all.ballot.empty()) return united;
    // Behind what is decided, before what has come since.
    const auto last = [&](const JournalLine& line) { return line.id == all.lines.back().id; };
    const auto place = all.lines.empty() ? united.begin() : std::ranges::find_if(united, last) + 1;
    united.insert(place, {Change::forgotten, all.ballot + 'a', {}});
    return united;
  };
  if (!journal(copy, !all.complete()).compact(add, true))
    throw Contention("it is not there any more; try again", context_.cluster.address_of(all.server));
}

// Why a copy is not known to have all that is there.
std::vector<std::optional<Failure>> Array::make_equal() const {
  return heal().behind();
}

Array::Contents Array::fetch_journals() const {
  const Union all = heal();
  if (const auto failure = all.failure_of(Part::answering)) raise(*failure);
  Contents contents;
  contents.found = all.found;
  contents.loss = all.loss;
  contents.elements = replay(all.lines);
  contents.lines = all.lines.size();
  contents.server = all.server;
  return contents;
}

// One order for all copies: what one of them drops none may keep. So nothing is dropped of an element of
// which a copy lacks a line: an addition would come back from one that has missed its removal, or be left
// where that was dropped.
std::optional<Array::Compacted> Array::compact_copies() {
  Union all = heal();
  if (all.any(&Union::Copy::lacks)) all = heal();
  if (!all.complete()) return std::nullopt;
  for (const Union::Copy& copy : all.copies) {
    if (copy.failure) return Compacted{all.lines.size(), all.lines.size(), copy.failure};
  }
  const auto is_partial = [&](const JournalLine& line) { return all.partial.contains(line.id); };
  const auto is_clear = [](const JournalLine& line) { return line.change == Change::clear; };
  const bool all_depend = !all.partial.empty() && std::ranges::any_of(all.lines, is_clear);
  std::unordered_set<std::string_view> kept_elements, dropped;
  for (const JournalLine& line : all.lines) {
    if (is_partial(line)) kept_elements.insert(line.element);
  }
  for (const JournalLine& line : all.lines) {
    if (!all_depend && !is_partial(line) && !kept_elements.contains(line.element)) dropped.insert(line.id);
  }
  for (const JournalLine& line : without_removed(all.lines)) dropped.erase(line.id);
  expect_all(copies_.each([&](std::size_t copy) {
    journal(copy).compact([&](const std::vector<JournalLine>& lines) {
      auto own = lines;
      if (Ballots::taken_from(own).promised > all.promised) throw Contention(being_ordered);
      std::vector<JournalLine> left = unite(all.lines, lines, Newer::second);
      std::erase_if(left, [&](const JournalLine& line) { return dropped.contains(line.id); });
      return left;
    });
  }));
  return Compacted{all.lines.size(), all.lines.size() - dropped.size()};
}

}  // namespace mcds
